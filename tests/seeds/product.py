"""The whole of nbagent in a shell of this process: a home and a folder of their own, and cells as a person writes them."""

from __future__ import annotations

import inspect
import json
import subprocess
from dataclasses import dataclass
from pathlib import Path

from IPython.core.interactiveshell import InteractiveShell

from nbagent.app.answer import Answer
from nbagent.app.cell import run_agent_cell
from nbagent.app.extension import Extension
from nbagent.app.reports import command
from nbagent.core.messages import Message

SCRIPTS = "-m scripted:tests.seeds.scripts"


@dataclass
class Product:
    """One kernel of one person: `home` with their own files, `folder` with the notebook's."""

    shell: InteractiveShell
    home: Path
    folder: Path
    extension: Extension

    async def cell(self, script: str, prompt: str = "go on", options: str = "") -> Answer:
        """Run `%%agent` with the script of that name."""
        return await run_agent_cell(self.extension, f"{options} {SCRIPTS}:{script}".strip(), prompt)

    async def line(self, text: str) -> str:
        """Run `%agent TEXT` and return what it says."""
        said = command(self.extension, text)
        return await said if inspect.isawaitable(said) else said

    def messages(self) -> list[Message]:
        """The transcript of the conversation."""
        assert self.extension.last is not None
        return list(self.extension.last.session.transcript)

    def results(self) -> list[str]:
        """The texts of all results, in order."""
        blocks = [b for m in self.messages() if m["role"] == "user" for b in m["content"] if b["type"] == "tool_result"]
        return ["\n".join(part.get("text", "") for part in block["content"]) for block in blocks]

    def told(self) -> str:
        """All that the model was told beside results."""
        blocks = [b for m in self.messages() if m["role"] == "user" for b in m["content"] if b["type"] == "text"]
        return "\n".join(block["text"] for block in blocks)

    def write(self, name: str, text: str | dict) -> Path:
        """Write a file of the folder, or of the home (`~/…`)."""
        path = self.home / name[2:] if name.startswith("~/") else self.folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text if isinstance(text, str) else json.dumps(text), encoding="utf-8")
        return path

    def git(self, *words: str) -> None:
        """Run git in the folder."""
        subprocess.run(["git", *words], cwd=self.folder, check=True)

    def trusts(self) -> None:
        """The person says yes to all that the folder's files hold now."""
        files = self.extension.files
        files.load()
        if (doubt := files.doubt) is not None:
            files.answer(doubt, yes=True)
