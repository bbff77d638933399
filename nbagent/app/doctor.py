"""What works here and what is missing, in a line each. Contains no secrets: keys are said to be there, never shown."""

from __future__ import annotations

import asyncio
import importlib.metadata
import os
import sys
from dataclasses import dataclass
from pathlib import Path

from nbagent.config import Settings, own_file

_PACKAGES = ("ipython", "ipykernel", "ipywidgets", "anywidget", "anthropic", "nbclient", "jupyterlab", "notebook")
_WANTED_IPYKERNEL = (7, 4)


NESTED = (
    "nest_asyncio is applied in this kernel. nbagent does not need it and works with it; if a Stop takes long, restart "
    "the kernel and leave nest_asyncio.apply() out: notebooks can await without it."
)


@dataclass(frozen=True, slots=True)
class Finding:
    """One thing looked at: `level` is ok, note or problem; `text` says what and, if not ok, what to do."""

    level: str
    text: str


def examine(settings: Settings, folder: Path) -> list[Finding]:
    """Look at versions, the key, the server's address, the folder; no network."""
    findings = [Finding("ok", f"Python {sys.version.split()[0]}, nbagent {_version('jupyter-nbagent')}")]
    findings.append(Finding("ok", ", ".join(f"{name} {_version(name)}" for name in _PACKAGES if _version(name))))
    findings.append(_ipykernel())
    if getattr(asyncio, "_nest_patched", False):
        findings.append(Finding("note", NESTED))
    findings.append(_key(settings))
    findings.append(_writable(folder))
    findings.append(
        Finding("ok", f"Your own settings: {own_file()} ({'in use' if own_file().is_file() else 'not there yet'}).")
    )
    findings += [
        Finding("note", f"Left out: {text}. A project's file may only narrow what is allowed.")
        for text in settings.ignored
    ]
    return findings


def report(findings: list[Finding]) -> str:
    """Return the findings as text, a line each."""
    marks = {"ok": "✓", "note": "·", "problem": "✗"}
    return "\n".join(f"{marks[finding.level]} {finding.text}" for finding in findings)


def _version(package: str) -> str:
    try:
        return importlib.metadata.version(package)
    except importlib.metadata.PackageNotFoundError:
        return ""


def _ipykernel() -> Finding:
    version = _version("ipykernel")
    parts = tuple(int(p) for p in version.split(".")[:2] if p.isdigit())
    if parts >= _WANTED_IPYKERNEL:
        return Finding("ok", f"ipykernel {version}: buttons work while a cell runs, also after a reload of the page.")
    return Finding(
        "note",
        f"ipykernel {version} works, with limits: after a reload of the page the view comes back only when the cell "
        f"ends. Better: pip install 'ipykernel>=7.4', then restart the kernel.",
    )


def _key(settings: Settings) -> Finding:
    if (endpoint := settings.endpoints.get(settings.model.partition("/")[0])) is not None:
        at = f"the endpoint {endpoint.name} ({endpoint.base_url or endpoint.provider})"
        if endpoint.api_key_env and not os.environ.get(endpoint.api_key_env, "").strip():
            return Finding("problem", f"No key: {at} wants it in {endpoint.api_key_env}, which is not set.")
        return Finding(
            "ok", f"The model is at {at}{f', key in {endpoint.api_key_env}' if endpoint.api_key_env else ''}."
        )
    server = settings.base_url or os.environ.get("ANTHROPIC_BASE_URL", "")
    if os.environ.get("ANTHROPIC_API_KEY", "").strip() or os.environ.get("ANTHROPIC_AUTH_TOKEN", "").strip():
        return Finding("ok", f"A key is set; server: {server or 'api.anthropic.com'}.")
    if server:
        return Finding("ok", f"No key is set; server: {server} (a server of your own may need none).")
    return Finding(
        "problem",
        "No key: set ANTHROPIC_API_KEY before you start Jupyter (never in the notebook), or ANTHROPIC_BASE_URL for a "
        "server of your own. The demo needs neither: make demo.",
    )


def _writable(folder: Path) -> Finding:
    if os.access(folder, os.W_OK):
        return Finding("ok", f"Sessions are kept under {folder / '.nbagent'}.")
    return Finding("note", f"{folder} can't be written, so sessions live in memory only.")
