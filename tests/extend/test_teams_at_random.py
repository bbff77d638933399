"""A team and a person at work in one repository, at random: what a person has is never lost, and nobody gets stuck.

`RANDOM_TEAMS=50` runs as many.
"""

from __future__ import annotations

import os
import random
import re
from pathlib import Path

import pytest

from nbagent.extend.worktrees import Answers, Conflicted, Merged, NotAccepted
from tests.extend.git_rig import Repo, lines, notebook, sources

pytestmark = pytest.mark.slow
RUNS = int(os.environ.get("RANDOM_TEAMS", "2"))
STEPS = 25
TEXTS = ("a.txt", "b.txt", "dir/c.txt", "new é.txt")
NOTEBOOKS = ("work/n.ipynb", "other.ipynb")


class Walk:
    """One repository, a team of three, and what a person wrote into their own files."""

    def __init__(self, tmp: Path, seed: int) -> None:
        self.chance = random.Random(seed)
        self.repo = Repo(tmp)
        self.repo.write("a.txt", lines())
        self.repo.write("dir/c.txt", lines())
        if self.chance.random() < 0.6:
            self.repo.commit("two")
        self.team = self.repo.team("work")
        self.words = 0

    def edit(self, top: Path, who: str) -> None:
        """Change, make, delete or move something in a checkout."""
        path = self.chance.choice(TEXTS + NOTEBOOKS)
        file = top / path
        self.words += 1
        word = f"{who}{self.words}"
        if self.chance.random() < 0.1:
            file.unlink(missing_ok=True)
        elif path in NOTEBOOKS:
            cells = list((sources(file.read_text()) if file.exists() else {"a": "1", "b": "2"}).items())
            at = self.chance.randrange(len(cells) + 1)
            if self.chance.random() < 0.5 or at == len(cells):
                cells.insert(at, (word, word))
            elif self.chance.random() < 0.5:
                cells[at] = (cells[at][0], word)
            else:
                cells.insert(0, cells.pop(at))
            self.repo.write(path, notebook(**dict(cells)), top)
        else:
            text = file.read_text().splitlines(keepends=True) if file.exists() else lines().splitlines(keepends=True)
            text[self.chance.randrange(len(text))] = f"{word}\n"
            self.repo.write(path, "".join(text), top)

    def mine(self) -> set[str]:
        """Every word that the person wrote and has now."""
        files = [self.repo.top / path for path in TEXTS + NOTEBOOKS]
        return {word for file in files if file.exists() for word in re.findall(r"Pat\d+", file.read_text())}

    def known(self) -> set[str]:
        """Every word of the person's that the team saw, and may have changed on purpose."""
        told = self.repo.git("log", "-p", "-m", "--first-parent", "--branches=nbagent/fix/*", "--format=")
        return set(re.findall(r"Pat\d+", told))

    async def step(self) -> None:
        before = self.repo.looks()
        name = self.chance.choice(["ana", "bo", "cy"])
        what = self.chance.choice(["work", "work", "work", "merge", "merge", "update", "person", "commit", "accept"])
        if what == "person":
            self.edit(self.repo.top, "Pat")
        elif what == "commit":
            self.repo.commit("Pat's")
        elif what == "accept":
            await self.accept()
        else:
            copy = await self.team.add(name)
            if what == "work":
                self.edit(copy.path, name)
                if self.chance.random() < 0.7:
                    await self.team.commit(copy, "work")
            elif what == "merge":
                told = await self.team.merge(name)
                if isinstance(told, Conflicted):
                    sides = {file.path: self.chance.choice(["ours", "theirs"]) for file in told.files}
                    assert isinstance(await self.team.resolve(name, {}, sides), Merged), (told, sides)
            elif await self.team.names() and "lead" in await self.team.names():
                await self.team.update(copy)
            assert self.repo.looks() == before, what
        for one in await self.team.names():
            assert self.repo.git("diff", "--check", self.repo.git("rev-parse", "main"), f"nbagent/fix/{one}") == ""

    async def accept(self) -> None:
        """Accept; where something is in the way, nothing changed, and the person's side settles what conflicts."""
        before, had = self.repo.looks(), self.mine() - self.known()
        try:
            await self.team.accept()
        except NotAccepted as told:
            assert self.repo.looks() == before
            assert told.files
            if not told.conflicts:
                return
            try:
                await self.team.accept(answers=Answers(sides=dict.fromkeys(told.files, "theirs")))
            except NotAccepted as again:
                assert not again.conflicts
                assert self.repo.looks() == before
                return
        assert had <= self.mine()


@pytest.mark.parametrize("seed", range(RUNS))
async def test_a_person_and_a_team_at_random_lose_nothing_of_the_persons(tmp_path, seed):
    walk = Walk(tmp_path, seed)
    await walk.team.begin()
    for _ in range(STEPS):
        await walk.step()
    await walk.accept()
    had = walk.mine()
    await walk.team.discard()
    assert had == walk.mine()
    assert walk.repo.git("for-each-ref", "--format=%(refname)") == "refs/heads/main"
