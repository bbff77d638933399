"""Arguments by which a harmless command does something else: run another, write where nobody looks, fetch settings.

A rule with a pattern (`find *`) never covers them; one with the exact text does. The lists name what is known; what is
not on them is covered by the rule that the person wrote for that command. Read `power_of`.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence

from nbagent.tools.commandwords import Word
from nbagent.tools.commandwraps import RUNNERS, SHELLS

_LONG: dict[str, tuple[str, ...]] = {
    "find": ("-exec", "-execdir", "-ok", "-okdir", "-delete", "-fprint", "-fprint0", "-fprintf", "-fls", "-files0-from"),
    "fd": ("-x", "-X", "--exec", "--exec-batch"),
    "git": ("--upload-pack", "--receive-pack", "--exec", "--exec-path", "--config-env", "--ext-diff", "--textconv",
            "--output", "--open-files-in-pager", "--template", "--git-dir", "--work-tree", "--paginate", "--extcmd",
            "--tool", "--smtp-server", "--sendmail-cmd", "--to-cmd", "--cc-cmd", "--remote", "--config",
            "--separate-git-dir", "--upload-archive", "--contents", "--no-index"),
    "tar": ("--to-command", "--checkpoint-action", "--use-compress-program", "--rsh-command", "--info-script",
            "--new-volume-script", "--rmt-command", "--absolute-names", "--files-from"),
    "rsync": ("--rsh", "--rsync-path", "--config", "--files-from", "--write-batch", "--log-file", "--remove-source-files"),
    "sort": ("--output", "--compress-program", "--files0-from", "--temporary-directory"),
    "sed": ("--in-place", "--file"),
    "curl": ("--config", "--output", "--remote-name", "--output-dir", "--upload-file", "--proxy", "--netrc", "--engine",
             "--trace", "--trace-ascii", "--dump-header", "--cookie-jar", "--libcurl", "--unix-socket", "--preproxy"),
    "wget": ("--output-document", "--execute", "--input-file", "--use-askpass", "--post-file", "--body-file", "--config",
             "--directory-prefix", "--output-file", "--append-output", "--rejected-log", "--save-cookies"),
    "rg": ("--pre", "--hostname-bin"),
    "zip": ("--unzip-command", "-TT", "-T", "--test"),
    "make": ("--eval", "--file", "--makefile", "--directory"),
    "pip": ("--index-url", "--extra-index-url", "--trusted-host", "--target", "--config-settings", "--python"),
    "npm": ("--script-shell", "--node-options", "--registry", "--prefix", "--globalconfig", "--userconfig", "--call"),
    "docker": ("--privileged", "--volume", "--mount", "--pid", "--device", "--cap-add", "--security-opt", "--host",
               "--volumes-from", "--network", "--userns"),
    "date": ("--set", "--file"),
    "man": ("--pager", "--html", "--preprocessor", "--config-file"),
    "less": ("--lesskey-file", "--lesskey-src", "--log-file"),
    "split": ("--filter",),
    "dd": ("of",),
    "gcc": ("-wrapper", "-fplugin", "-specs", "--specs"),
    "ssh": ("-o", "-F", "-E"),
    "scp": ("-o", "-F", "-S", "-D"),
    "sftp": ("-o", "-F", "-S", "-b", "-D"),
    "psql": ("--file", "--output", "--log-file"),
    "sqlite3": ("-cmd", "-init"),
    "mysql": ("--init-command", "--pager", "--tee"),
    "jq": ("--from-file",),
    "diff": ("--to-file", "--from-file"),
    "xargs": ("-",),
}  # fmt: skip
"""Command → long options (and options with one dash that are words) that ask, abbreviated too."""

_SHORT: dict[str, str] = {
    "git": "", "tar": "IFPT", "rsync": "eM", "sort": "oT", "sed": "if", "curl": "KoOTxnDcJ", "wget": "OeioaP",
    "pip": "it", "docker": "v", "date": "sf", "man": "PHC", "less": "koO", "make": "fCI", "psql": "foL", "jq": "f",
    "gawk": "fliEe", "gcc": "B",
}  # fmt: skip
"""Command → letters that ask, alone or in a bundle (`-xIF`)."""

_SAME = {
    "fdfind": "fd", "gfind": "find", "gtar": "tar", "bsdtar": "tar", "gsed": "sed", "pip3": "pip", "pnpm": "npm",
    "yarn": "npm", "npx": "npx", "podman": "docker", "g++": "gcc", "cc": "gcc", "clang": "gcc", "gmake": "make",
    "awk": "gawk", "mawk": "gawk", "nawk": "gawk", "more": "less", "mariadb": "mysql", "egrep": "grep", "fgrep": "grep",
}  # fmt: skip
_EDITORS = frozenset({"vi", "vim", "nvim", "view", "emacs", "nano", "ed", "ex", "pico", "code", "edit"})
_RUN_MORE = frozenset({"source", ".", "alias", "enable", "bind", "complete", "mapfile", "readarray", "hash", "set",
                       "shopt", "trap", "export", "declare", "typeset", "local", "readonly", "unset", "npx", "bunx",
                       "uvx", "pipx", "crontab", "osascript", "powershell", "pwsh", "cmd"})  # fmt: skip
_PYTHON = re.compile(r"\A(?:python|pypy|ipython)[\d.]*\Z")
_LANGUAGES: dict[str, tuple[str, tuple[str, ...]]] = {
    "node": ("epri", ("--eval", "--print", "--require", "--import", "--loader", "--experimental-loader", "--env-file")),
    "deno": ("", ("eval", "repl", "--allow-all", "--allow-run")),
    "bun": ("epr", ("--eval", "--print", "--preload", "x")),
    "perl": ("eEnpiMmI", ()),
    "ruby": ("enpirI", ()),
    "php": ("rBRFEdc", ("--run",)),
    "lua": ("eli", ()),
    "julia": ("eELi", ("--eval", "--print", "--load")),
    "Rscript": ("e", ()),
    "R": ("ef", ("--file",)),
}
_GIT_ASKS = frozenset({"config", "submodule", "bisect", "filter-branch", "difftool", "mergetool", "hook", "send-email",
                       "daemon", "instaweb", "archive", "bundle", "fast-import", "upload-pack", "receive-pack", "shell",
                       "credential", "http-backend", "remote-ext", "update-index", "maintenance", "scalar", "p4",
                       "svn", "cvsimport", "web--browse", "help", "init-db"})  # fmt: skip
_SED = re.compile(
    r"\A\s*(?:(?:\d+|\$|/(?:[^/\\\n]|\\.)*/)(?:\s*,\s*(?:[+~]?\d+|\$|/(?:[^/\\\n]|\\.)*/))?)?\s*!?\s*"
    r"(?:[pdqQ=nNDPgGhHxlz]|s(?P<d>[/|,#:@])(?:(?!(?P=d))[^\\\n;]|\\.)*(?P=d)(?:(?!(?P=d))[^\\\n;]|\\.)*(?P=d)[gpiIm0-9]*)?\s*\Z"
)


def power_of(words: Sequence[Word], *, open_ended: bool = False) -> str:
    """Return what in a command could do more than its name says, "" where nothing is known to.

    `open_ended`: more arguments come from elsewhere, so that any of them may be there.
    """
    if not words:
        return ""
    name = words[0].text.rpartition("/")[2]
    name = _SAME.get(name, name)
    rest = words[1:]
    if (why := _by_name(name, rest)) or (why := _by_options(name, rest)):
        return why
    special = _SPECIAL.get(name)
    if special is not None and (why := special(rest)):
        return why
    if _has_powers(name):
        if open_ended:
            return f"{name} gets arguments that nobody sees"
        if any(word.glob and word.raw[:1] in {"*", "?", "["} for word in rest):
            return f"a name of a file could be an option of {name}"
    return ""


def _has_powers(name: str) -> bool:
    return name in _LONG or name in _SHORT or name in _SPECIAL or name in _LANGUAGES or bool(_PYTHON.match(name))


def _by_name(name: str, rest: Sequence[Word]) -> str:
    if name in SHELLS or name in _RUN_MORE:
        return f"{name} runs other commands"
    if name in RUNNERS - {"find", "fd", "ssh"}:
        return f"{name} runs another command"
    if name in _EDITORS:
        return f"{name} can run anything"
    if _PYTHON.match(name):
        return _interpreter(name, rest, "ci", ("-",))
    if name in _LANGUAGES:
        return _interpreter(name, rest, *_LANGUAGES[name])
    return ""


def _interpreter(name: str, rest: Sequence[Word], letters: str, options: tuple[str, ...]) -> str:
    """Say whether an interpreter is given code: in an argument, or on its input."""
    for word in rest:
        text = word.text
        if text in options or any(text.startswith(f"{option}=") for option in options if option.startswith("--")):
            return f"{name} {text} runs code"
        if not text.startswith("-"):
            return ""
        if re.match(rf"\A-[A-Za-z0-9]*[{letters or '!'}]", text):
            return f"{name} {text[:20]} runs code"
        if text == "-m":
            return ""
    informs = any(word.text in {"--version", "-V", "--help", "-h", "-v"} for word in rest)
    return "" if informs else f"{name} runs what it is given on its input"


def _by_options(name: str, rest: Sequence[Word]) -> str:
    known, letters = _LONG.get(name, ()), _SHORT.get(name, "")
    for word in rest:
        text = word.text
        option = text.partition("=")[0]
        if option == "--":
            break
        if option.startswith("--") and len(option) > 3:  # a long option, whole or shortened
            if any(one == option or (one.startswith(option) and one.startswith("--")) for one in known):
                return f"{name} {option} does more than {name} alone"
        elif option in known or (name in {"ssh", "scp", "sftp", "gcc"} and option.startswith(tuple(known))):
            return f"{name} {option} does more than {name} alone"
        elif letters and re.match(rf"\A-[A-Za-z0-9]*[{letters}]", text):
            return f"{name} {text[:20]} does more than {name} alone"
    return ""


def _git(rest: Sequence[Word]) -> str:
    at = 0
    while at < len(rest) and rest[at].text.startswith("-"):
        if rest[at].text not in {"--no-pager", "--no-optional-locks", "--literal-pathspecs", "--version", "--help"}:
            return f"git {rest[at].text} changes how git works"
        at += 1
    command = rest[at].text if at < len(rest) else ""
    if command in _GIT_ASKS:
        return f"git {command} can run other commands"
    for word in rest[at + 1 :]:
        if re.match(r"\A[a-z]+::", word.text) or "ext::" in word.text:
            return f"{word.text[:30]} makes git run a command"
        if command == "rebase" and re.match(r"\A-[a-z]*[xi]|--(?:exec|interactive)", word.text):
            return f"git rebase {word.text} runs commands"
        if command == "grep" and re.match(r"\A-O", word.text):
            return "git grep -O opens a pager"
        if command in {"clone", "fetch", "pull", "push", "ls-remote"} and re.match(
            r"\A-[a-z]*[uc](?!\w{3})", word.text
        ):
            if command == "push" and word.text == "-u":
                continue
            return f"git {command} {word.text} changes what git runs"
    return ""


def _tar(rest: Sequence[Word]) -> str:
    first = rest[0].text if rest else ""
    bundled = first and not first.startswith("-") and re.fullmatch(r"[A-Za-z]+", first) and set(first) & set("IFPT")
    return f"tar {first} does more than tar alone" if bundled else ""


def _sed(rest: Sequence[Word]) -> str:
    scripts: list[str] = []
    expected = False
    for word in rest:
        if expected or (not word.text.startswith("-") and not scripts):
            scripts.append(word.text)
            expected = False
        elif word.text in {"-e", "--expression"}:
            expected = True
        elif word.text.startswith(("-e", "--expression=")):
            scripts.append(word.text.removeprefix("--expression=").removeprefix("-e"))
        elif word.text.startswith("-") and not re.fullmatch(
            r"-[nErsuz]+|--(?:quiet|regexp-extended|posix|debug)", word.text
        ):
            return f"sed {word.text[:20]} is not known to be harmless"
    known = all(_SED.match(piece) for script in scripts for piece in re.split(r"[;\n]", script))
    return "" if known else "this sed script can write files or run commands"


def _awk(rest: Sequence[Word]) -> str:
    text = " ".join(word.text for word in rest)
    found = re.search(r"system\s*\(|getline|\||>|close\s*\(|@|ENVIRON|ARGV|printf?\s.*>|-[A-Za-z]*[fliE]\b", text)
    return f"this awk program can write files or run commands ({found[0].strip()[:12]})" if found else ""


def _curl(rest: Sequence[Word]) -> str:
    for word in rest:
        if word.text.startswith("@") or re.search(r"(?:=|\A-[dF])@|\Afile:", word.text, re.IGNORECASE):
            return "curl sends or reads a file"
    return ""


def _make(rest: Sequence[Word]) -> str:
    set_here = next(
        (word.text for word in rest if re.match(r"\A\.?[A-Z_]*(?:SHELL|FLAGS)\w*\s*[:?+]?=", word.text)), ""
    )
    return f"make {set_here[:20]} changes what make runs" if set_here else ""


def _uniq(rest: Sequence[Word]) -> str:
    files = [word for word in rest if not word.text.startswith("-")]
    return "uniq writes its second file" if len(files) > 1 else ""


def _sql(rest: Sequence[Word]) -> str:
    text = " ".join(word.text for word in rest)
    found = re.search(
        r"\\[!ogw|]|\\copy|(?i:\bcopy\b.*\bprogram\b)|\.(?:shell|system|load|output|once|read|import)\b|load_extension",
        text,
    )
    return f"{found[0].strip()} leaves the data base" if found else ""


def _npm(rest: Sequence[Word]) -> str:
    first = next((word.text for word in rest if not word.text.startswith("-")), "")
    return f"npm {first} runs any package" if first in {"exec", "x", "dlx", "explore", "config", "set"} else ""


def _less(rest: Sequence[Word]) -> str:
    return next((f"less {word.text[:20]} is a command of less" for word in rest if word.text[:1] == "+"), "")


def _index(rest: Sequence[Word]) -> str:
    """Say whether a name of a variable has an index: the shell works it out, with the commands in it, also in quotes."""
    found = next((word.text for word in rest if re.search(r"\[.*(?:\$|`)", word.text, re.DOTALL)), "")
    return f"{found[:20]} can run a command: bash works out what stands in […]" if found else ""


_SPECIAL: dict[str, Callable[[Sequence[Word]], str]] = {
    "less": _less,
    **dict.fromkeys(("[", "getopts", "let", "printf", "read", "test", "wait"), _index),
    "git": _git,
    "tar": _tar,
    "sed": _sed,
    "gawk": _awk,
    "curl": _curl,
    "make": _make,
    "uniq": _uniq,
    "psql": _sql,
    "sqlite3": _sql,
    "mysql": _sql,
    "npm": _npm,
}
