"""Command lines, each labelled by hand with what the rules of `RULES` say of it; ⏎ is a line break."""

from __future__ import annotations

RULES = """
allow Bash(git *)
allow Bash(npm run test:*)
allow shell(make)
allow Bash(find *)
allow Bash(python *)
allow Bash(sed *)
allow Bash(awk *)
allow Bash(tar *)
allow Bash(curl https://example.com/*)
allow Bash(lint*)
allow Bash(echo *)
allow Bash(grep *)
allow Bash(sort *)
allow Bash(xargs *)
allow Bash(ssh *)
allow Bash(python -c "print(1)")
allow Bash(pytest:*)
allow Bash(mkdir *)
allow Edit(build/**)
allow Bash(touch *)
allow Bash(printf *)
allow Bash(test *)
allow Bash(less *)
ask Bash(git push *)
ask Bash(*--force*)
deny Bash(rm *)
deny Bash(git push --force *)
deny Bash(sudo:*)
deny Read(private/**)
deny Edit(locked/**)
"""

ALLOW = r"""
printf '%s [%d]' total 3
test -f a.txt && git status
less a.txt
git status
git log --oneline -5
git
git add . && git commit -m "a; b"
git commit -m 'rm -rf everything'
git commit -m "it's done"
git  log   --stat
 git log
git log; git status
git log | head -5
git log | grep fix | wc -l
git log |& head -5
git log & git status
git status || git log
git log 2>/dev/null
git log 2>&1
git log > /dev/null
git log >/dev/null 2>&1
git log &>/dev/null
git add .;
(git add . && git status)
{ git add .; git status; }
! git diff
git diff # what changed
'git' status
g"it" status
\git status
git \⏎  status
timeout 5 git log
timeout -k 5 10s git log
timeout --signal=KILL 5 git log
time git log
time -p git log
nice git log
nice -n 5 git log
nice -5 git log
nohup git log
stdbuf -oL git log
stdbuf -o L git log
command git log
builtin echo hi
env git log
env LANG=C git log
LANG=C git log
LC_ALL=C TZ=UTC git log
nohup nice timeout 5 git log
NO_COLOR=1 pytest -q
PYTHONUNBUFFERED=1 python train.py
npm run test
npm run test -- --watch
make
find . -name '*.py'
find . -name "*.pyc" -type f
find src -newer a.txt -print
python train.py
python train.py --epochs 3
python -m pytest -q
python -u train.py
python -c "print(1)"
python -c 'print(1)'
sed -n 1,5p a.txt
sed s/a/b/ a.txt
sed 's/a/b/g; s/c/d/' a.txt
sed -e 's/x/y/' -e 5p a.txt
awk '{print $1}' a.txt
awk -F, '{s += $2} END {print s}' a.txt
tar cf a.tar src
tar -xzf a.tar.gz
tar tf a.tar
curl https://example.com/data.csv
lint
lint src
linter src
echo hi
echo hi > build/log.txt
echo hi >> build/deep/log.txt
git log > build/log.txt
echo hi >| build/x
sort a.txt
sort -k2 -n a.txt
grep -r TODO .
grep TODO < a.txt
xargs echo
find . -name x -print | xargs echo
cd sub && git add x
ls && git add x
cat a.txt | sort
mkdir -p build/x
mkdir build; touch build/y
git log --format=%h
git log -- a.txt
git log HEAD~3..HEAD
git show HEAD^
git stash
echo 'a $(b) `c`'
echo "a | b > c"
git fetch origin
git checkout -b x
echo *.txt
grep TODO *.py
"""
ASK = r"""
git > /dev/null -c core.pager=x log
git 2>&1 log
X=a'b'\c git log
LANG=a'b'git log
ls *.csv | grep x
git push -u=x
npm run test:unit
gitk
gitx status
ls
ls -la; pwd
docker ps
git add . && docker ps
docker ps && git add .
git log | docker load
git log $(docker ps)
git log `docker ps`
git log "$(cat a.txt)"
git log <(docker ps)
git log > out.txt
git log >> .bashrc
git log > $OUT
git log &> out.txt
git log >& out.txt
git log <> out.txt
> out.txt
echo hi > build/../x.txt
echo hi > build/*
cd sub; echo hi > build/x
git log $FLAGS
git log ${FLAGS}
git log "$FLAGS"
git log --format=$'%h'
git log {a,b}
git log $((1+1))
$GIT log
PATH=. git log
LD_PRELOAD=./x.so git log
GIT_PAGER=less git log
GIT_SSH_COMMAND=sh git fetch
env PATH=. git log
env -S 'git log'
env -i git log
FOO=bar
LANG=$(id) git log
PYTHONSTARTUP=x.py python train.py
./git log
/tmp/git log
sub/git status
git -c core.pager=less log
git -C /tmp log
git --git-dir=x log
git --exec-path=. log
git fetch --upload-pack=./x origin
git fetch --upload-pa=./x origin
git clone -u ./x origin
git clone ext::sh
git log --output=x
git log --outp x
git diff --ext-diff
git diff --no-index /etc/passwd a.txt
git grep --open-files-in-pager=sh x
git grep -Osh x
git rebase -x ./run main
git rebase -i main
git config alias.x '!sh'
git submodule foreach ls
git bisect run ./x
git difftool
git -p log
git push origin main
git push
npm run tests
npm run build
npm install
make all
make -f x
find . -exec ls {} +
find . -execdir ls {} ;
find . -delete
find . -ok ls {} \;
find . -fprintf out %p
find . -fls out
find . *
python
python -
python -c "print(2)"
python -c "print(1)" x
python -c 'import os'
python -Bc 'import os'
python -i train.py
echo 'import os' | python
python < train.py > x
python <<< 'import os'
sed -i s/a/b/ a.txt
sed -ni p a.txt
sed --in-place s/a/b/ a.txt
sed -f script a.txt
sed 'w out' a.txt
sed s/a/b/w a.txt
sed 's/a/id/e' a.txt
sed '1e id' a.txt
sed 's/a/b/;e' a.txt
awk 'BEGIN {system("id")}'
awk '{print > "out"}' a.txt
awk '{print | "sh"}' a.txt
awk -f prog a.txt
printf -v 'a[$(id)]' x
test -v 'a[$(id)]'
test -v "a[\`id\`]" && git status
less '+!id' a.txt
less +F a.txt
tar xf a.tar --to-command=sh
tar --checkpoint=1 --checkpoint-action=exec=sh -cf a.tar .
tar cf a.tar --use-compress-program=./x .
tar -cIsh -f a.tar .
tar cfI a.tar sh .
tar --to-com=sh -xf a.tar
tar cf a.tar *
curl https://example.com.evil.org/x
curl http://example.com/x
curl https://example.com/x -o .profile
curl https://example.com/x -d @a.txt
curl https://example.com/x --config x
curl https://example.com/x -T a.txt
sort -o a.txt a.txt
sort --compress-program=sh a.txt
sort a.txt -oa.txt
xargs sh
xargs sh -c 'id'
xargs -I{} echo {}
xargs docker ps
xargs find
xargs git log
xargs python
ssh host -o ProxyCommand=sh
ssh -oProxyCommand=sh host
bash -c 'git log'
sh script.sh
eval git log
exec git log
source a.sh
. a.sh
timeout git log
timeout -x 5 git log
time -f x git log
nice -x git log
command -v docker
nohup docker ps
timeout 5 docker ps
if true; then git log; fi
for x in a b; do git log; done
while true; do git log; done
git() { docker ps; }; git log
git log; git() { sh; }
[ -f a.txt ] && git log
[[ -f a.txt ]] && git log
export PATH=. && git log
alias git=sh
cat <<EOF⏎hello⏎EOF
git commit -F - <<'EOF'⏎text⏎EOF
git log 'unclosed
git log "unclosed
git log )
git log ;;
git log &&
| git log
git log⏎id
trap 'git log' EXIT
coproc git log
git log | sh
git log | bash
git log | xargs sh
cat .env
cp a.txt .git/hooks/pre-commit
git log > .git/config
mkdir -p .claude
touch .bashrc
git log --force
echo hi | tee build/x
python ~/x.py > /tmp/x
kill 1
"""
DENY = r"""
> out rm x
2>/dev/null rm x
>out echo; rm x
! ! rm x
'r'\m x
rm>x y
rm x
rm -rf x
rm
  rm   -rf   x
/bin/rm x
\rm x
'rm' x
r"m" x
RM x
git log; rm x
git log && rm x
git log || rm x
git log | rm x
git log & rm x
(rm x)
{ rm x; }
! rm x
git log $(rm x)
git log `rm x`
git log "$(rm x)"
git log "`rm x`"
git log <(rm x)
echo > $(rm x)
X=$(rm x)
X=1 rm x
LD_PRELOAD=y rm x
env rm x
env X=1 rm x
env -i rm x
timeout 5 rm x
timeout -s KILL 5 rm x
nohup rm x
nice -n 3 rm x
xargs rm
find . | xargs rm -f
find . | xargs -0 -n1 rm
find . -exec rm {} +
find . -exec rm {} \;
sudo ls
sudo -u bob rm x
bash -c 'rm x'
bash -lc "git log; rm x"
sh -c 'sh -c "rm x"'
eval rm x
eval "rm x"
ssh host rm x
ssh host 'rm x'
time rm x
command rm x
exec rm x
if true; then rm x; fi
for x in a; do rm $x; done
while rm x; do :; done
f() { rm x; }
case x in x) rm x;; esac
bash <<< 'rm x'
rm x > /dev/null
>out rm x
git push --force origin
git push --force
git log && git push --force origin main
cat private/key.txt
cat ./private/key.txt
cat sub/../private/key.txt
cat PRIVATE/key.txt
cat < private/key.txt
grep x private
grep -r x private/
head -5 a.txt private/deep/x
cd private && cat x
cat sub/private/x
git log > locked/x
echo hi | tee locked/x
cp a.txt locked/x
touch locked/x
mv locked/x a.txt
sed -i s/a/b/ locked/x
cat a.txt > sub/locked/x
watch rm x
setsid rm x
sudo
"""


def lines(text: str) -> list[str]:
    """The lines of a table; ⏎ is a line break in a command."""
    return [line.replace("⏎", "\n") for line in text.strip("\n").split("\n")]
