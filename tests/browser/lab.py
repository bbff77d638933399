"""A real JupyterLab (or Notebook 7) server for the tests, and the browser that visits it.

`Lab.open` opens a notebook in a tab of its own and gives it as a `page.Notebook`. Nothing here sleeps: each wait is
bounded by `PATIENCE`. This module knows nothing of nbagent. Read `Lab.open` first.
"""

from __future__ import annotations

import json
import os
import re
import shutil
import socket
import subprocess
import sys
import threading
from contextlib import asynccontextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, Self

import nbformat

from tests.browser.page import PATIENCE, Notebook
from tests.source import ROOT

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Mapping, Sequence

    from playwright.async_api import Browser, BrowserContext, Playwright

CHROMIUM_NAMES = ("chromium", "chromium-browser", "google-chrome-stable", "google-chrome", "chrome",
                  "/Applications/Google Chrome.app/Contents/MacOS/Google Chrome")  # fmt: skip
CHROMIUM_FLAGS = (
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--disable-dev-shm-usage",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
)

App = Literal["lab", "notebook"]
"""Which front end the server opens: JupyterLab or Notebook 7."""

START = """
import runpy, sys
root, module = sys.argv[1:3]
sys.path.insert(0, root)
from tests.support.ports import OwnPorts
OwnPorts.instance()  # the server starts kernels, too, and not only this one does
del sys.path[0], sys.argv[1:3]
runpy.run_module(module, run_name="__main__", alter_sys=True)
"""
"""How the server is started: as `python -m` would, with ports for its kernels that no other test process gives away."""

MODULES = {"lab": "jupyterlab", "notebook": "notebook"}
TRAITS = {"lab": "LabApp", "notebook": "JupyterNotebookApp"}

CellSpec = str | tuple[Literal["code", "markdown", "raw"], str]
"""One cell to open a notebook with: the source of a code cell, or a pair of cell type and source."""


def find_chromium() -> str:
    """Return the system's Chromium or Chrome; fail with what to do (never skip) where there is none."""
    found = next((path for name in CHROMIUM_NAMES if (path := shutil.which(name))), None)
    assert found, (
        f"no browser: none of {', '.join(CHROMIUM_NAMES)} is on the PATH. "
        "Run `make test` as root on Debian or Ubuntu, which installs it, or `apt-get install chromium`."
    )
    return found


# ── the server ───────────────────────────────────────────────────────────────────────────────────────────────────────

SETTINGS: dict[str, dict[str, Any]] = {
    "apputils-extension/notification": {"fetchNews": "false", "checkForUpdates": False, "doNotDisturbMode": True},
    "apputils-extension/themes": {"adaptive-theme": True},  # so that the tab's color scheme chooses light or dark
    "docmanager-extension/plugin": {"autosave": False},  # a test says itself when it saves
    "notebook-extension/tracker": {"kernelShutdown": True},
}

PAGE_CONFIG = {
    "buildCheck": False,
    "buildAvailable": False,
    "disabledExtensions": {"@jupyterlab/extensionmanager-extension": True, "@jupyterlab/lsp-extension": True},
}
"""What slows JupyterLab's start and is not under test."""

KERNEL_ENV = """\
import json, os, pathlib
os.environ.update(json.loads(pathlib.Path({path!r}).read_text()))
del json, os, pathlib
"""


class Lab:
    """A JupyterLab server on loopback with an empty root folder, and a browser to visit it with.

    `env` is what kernels started from now on find in their environment, beside the server's own.
    """

    def __init__(self, root: Path, browser: Browser, app: App = "lab") -> None:
        self.root = root / "files"
        self.app: App = app
        self.browser = browser
        self.log: list[str] = []
        self._settings = root / "settings"
        self._env_file = root / "kernel-env.json"
        self._ready = threading.Event()
        self._process: subprocess.Popen[str] | None = None
        self._context: BrowserContext | None = None
        self._count = 0
        self.url = ""
        self.set_env({})
        self.root.mkdir()

    def set_env(self, env: Mapping[str, str]) -> None:
        """Replace what kernels started from now on find in their environment."""
        self._env_file.write_text(json.dumps(dict(env)), encoding="utf-8")

    def start(self) -> Self:
        """Start the server and return when it takes requests."""
        for name, values in SETTINGS.items():
            folder, _, plugin = name.partition("/")
            path = self._settings / "@jupyterlab" / folder / f"{plugin}.jupyterlab-settings"
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(json.dumps(values), encoding="utf-8")
        page_config = Path(os.environ["JUPYTER_CONFIG_DIR"]) / "labconfig" / "page_config.json"
        page_config.parent.mkdir(parents=True, exist_ok=True)
        page_config.write_text(json.dumps(PAGE_CONFIG), encoding="utf-8")
        startup = Path(os.environ["IPYTHONDIR"]) / "profile_default" / "startup" / "00-kernel-env.py"
        startup.parent.mkdir(parents=True, exist_ok=True)
        startup.write_text(KERNEL_ENV.format(path=str(self._env_file)), encoding="utf-8")
        with socket.socket() as probe:
            probe.bind(("127.0.0.1", 0))
            port = probe.getsockname()[1]
        options = {
            "ServerApp.port": port,
            "ServerApp.port_retries": 50,  # somebody else may have it by then: the server says which one it got
            "ServerApp.ip": "127.0.0.1",
            "ServerApp.root_dir": self.root,
            "ServerApp.disable_check_xsrf": True,
            "ServerApp.allow_root": True,
            "IdentityProvider.token": "",
            f"{TRAITS[self.app]}.user_settings_dir": self._settings,
            f"{TRAITS[self.app]}.workspaces_dir": self._settings / "workspaces",
            f"{TRAITS[self.app]}.expose_app_in_browser": True,
            "LabApp.news_url": "",
        }
        flags = [f"--{name}={value}" for name, value in options.items()]
        self._process = subprocess.Popen(
            [sys.executable, "-c", START, str(ROOT), MODULES[self.app], "--no-browser", *flags],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.PIPE,
            text=True,
            start_new_session=True,
        )
        threading.Thread(target=self._drain, args=(self._process,), daemon=True).start()
        assert self._ready.wait(2 * PATIENCE), f"JupyterLab did not start:\n{self.server_log()}"
        assert self._process.poll() is None, f"JupyterLab ended:\n{self.server_log()}"
        return self

    def _drain(self, process: subprocess.Popen[str]) -> None:
        assert process.stderr is not None
        with process.stderr as lines:
            for line in lines:
                self.log.append(line)
                if not self.url and (said := re.search(r"http://127\.0\.0\.1:\d+", line)):
                    self.url = said.group()
                    self._ready.set()
        self._ready.set()  # it ended: `start` looks

    def address(self, name: str) -> str:
        """Return the address of a page of its own that shows the notebook `name`."""
        if self.app == "notebook":
            return f"{self.url}/notebooks/{name}"
        return f"{self.url}/lab/workspaces/{self.next_name('w')}/tree/{name}"

    def next_name(self, stem: str) -> str:
        """Return a name that was not used before."""
        self._count += 1
        return f"{stem}{self._count}"

    def server_log(self, lines: int = 60) -> str:
        """Return the end of what the server (and its kernels) logged."""
        return "".join(self.log[-lines:])

    def stop(self) -> None:
        """Stop the server and its kernels."""
        if self._process is None:
            return
        self._process.terminate()
        try:
            self._process.wait(PATIENCE)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait(PATIENCE)

    @asynccontextmanager
    async def open(
        self,
        cells: Sequence[CellSpec] | nbformat.NotebookNode,
        *,
        name: str = "",
        theme: Literal["light", "dark"] = "light",
        viewport: tuple[int, int] = (1280, 1000),
        env: Mapping[str, str] | None = None,
    ) -> AsyncIterator[Notebook]:
        """Open a new notebook with `cells` in a tab of its own; at the end its kernel is gone and the tab closed.

        `env` is what its kernel finds in its environment beside the server's.
        """
        name = name or f"{self.next_name('notebook')}.ipynb"
        path = self.root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        nbformat.write(cells if isinstance(cells, nbformat.NotebookNode) else new_notebook(cells), path)
        if env is not None:
            self.set_env(env)
        if self._context is None:  # one for all: the next tab finds JupyterLab's scripts in the browser's cache
            self._context = await self.browser.new_context(reduced_motion="reduce")
        tabs: list[Notebook] = []
        notebook = Notebook(self, self._context, name, theme, viewport, tabs)
        try:
            await notebook.visit()
            yield notebook
            notebook.check_own_errors()
        except BaseException:
            await notebook.keep_failure()
            raise
        finally:
            await self._end_kernels(self._context, notebook.name)  # it may have been renamed
            for tab in tabs:
                await tab.page.close()

    async def _end_kernels(self, context: BrowserContext, name: str) -> None:
        reply = await context.request.get(f"{self.url}/api/sessions")
        for session in await reply.json():
            if session["path"] == name:
                await context.request.delete(f"{self.url}/api/sessions/{session['id']}")


def new_notebook(cells: Sequence[CellSpec]) -> nbformat.NotebookNode:
    """Return a notebook of Python 3 with `cells`, ids cell-0, cell-1, …"""
    notebook = nbformat.v4.new_notebook()
    notebook.metadata["kernelspec"] = {"name": "python3", "display_name": "Python 3", "language": "python"}
    for index, spec in enumerate(cells):
        kind, source = ("code", spec) if isinstance(spec, str) else spec
        cell = getattr(nbformat.v4, f"new_{kind}_cell")(source)
        cell["id"] = f"cell-{index}"
        notebook.cells.append(cell)
    return notebook


async def start_browser(playwright: Playwright) -> Browser:
    """Start the system's Chromium."""
    return await playwright.chromium.launch(executable_path=find_chromium(), args=list(CHROMIUM_FLAGS))
