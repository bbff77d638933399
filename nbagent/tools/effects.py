"""A static look at code: what it might do beyond the notebook. It may raise a question and never answers one.

Code that hides its intent (a computed name, a function of another cell) gets through; the approval of code is what
protects. This module must not run, import or evaluate anything of the code. Read `effects`, then `_Look`.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterable, Mapping

from nbagent.core.tools import Kind
from nbagent.tools import cellcode
from nbagent.tools.dotted import Dotted

SHELL = "shell"
NETWORK = "network"
DELETES = "deletes files"
INSTALLS = "installs packages"
UNSEEN = "runs code not shown"
NATIVE = "native code"
EXITS = "ends the kernel"
_ORDER = (EXITS, DELETES, SHELL, INSTALLS, NETWORK, UNSEEN, NATIVE)

# ── what ends the kernel ─────────────────────────────────────────────────────────────────────────────────────────────

_NAMES = frozenset({"exit", "quit"})
_MODULE_CALLS = frozenset(
    {
        *(f"os.{name}" for name in ("_exit", "abort", "kill", "killpg")),
        *(f"os.exec{suffix}" for suffix in ("l", "le", "lp", "lpe", "v", "ve", "vp", "vpe")),
        *(f"signal.{name}" for name in ("raise_signal", "pthread_kill", "alarm", "setitimer")),
        "faulthandler._sigsegv",
        "faulthandler._sigabrt",
        "_thread.interrupt_main",
    }
)
_ATTRIBUTES = frozenset({"_exit", "ask_exit", "exit_now", "do_shutdown", "killpg", "raise_signal"})
_SHELL_KILL = re.compile(r"(?:^|[\s;&|(])(?:kill|pkill|killall|shutdown|reboot)\b")
_TEXTUAL = re.compile(
    r"\b(?:exit|quit)\s*\(|\bos\s*\.\s*(?:_exit|abort|kill|killpg|exec\w+)\b|\braise_signal\b|\bask_exit\b|\bdo_shutdown\b"
    r"|^\s*(?:exit|quit)\s*;?\s*$",
    re.MULTILINE,
)

# ── what shells out, deletes, installs, goes to the network ──────────────────────────────────────────────────────────

_MODULES: dict[str, str] = {
    **dict.fromkeys(("subprocess", "pty", "pexpect", "plumbum", "asyncio.subprocess"), SHELL),
    **dict.fromkeys(("send2trash",), DELETES),
    **dict.fromkeys(("pip", "ensurepip", "micropip", "piplite", "conda.cli"), INSTALLS),
    **dict.fromkeys(("runpy", "code"), UNSEEN),
    **dict.fromkeys(("ctypes", "cffi"), NATIVE),
    **dict.fromkeys(("requests", "httpx", "httpx2", "aiohttp", "urllib.request", "urllib3", "http.client"), NETWORK),
    **dict.fromkeys(("http.server", "socket", "socketserver", "ftplib", "smtplib", "imaplib", "poplib"), NETWORK),
    **dict.fromkeys(("telnetlib", "nntplib", "xmlrpc", "paramiko", "asyncssh", "fabric", "websockets"), NETWORK),
    **dict.fromkeys(("websocket", "pycurl", "boto3", "botocore", "aiobotocore", "s3fs", "gcsfs", "adlfs"), NETWORK),
    **dict.fromkeys(("google.cloud", "azure.storage", "huggingface_hub", "kagglehub", "kaggle", "yfinance"), NETWORK),
    **dict.fromkeys(("anthropic", "openai", "wget", "gdown", "tweepy", "slack_sdk", "webbrowser"), NETWORK),
}
"""What any use of a module means, but for its exceptions and constants."""

_FUNCTIONS: tuple[tuple[str, str], ...] = (
    (r"os\.(?:system|popen|exec\w+|spawn\w+|posix_spawnp?|startfile|fork|forkpty)", SHELL),
    (r"asyncio\.(?:create_subprocess_\w+)", SHELL),
    (r"get_ipython\(\)\.(?:system\w*|getoutput\w*)", SHELL),
    (r"(?:IPython\.utils\.process|IPython\.utils\._process_\w+)\.\w+", SHELL),
    (r"os\.(?:remove|unlink|rmdir|removedirs|renames?|replace|truncate)|shutil\.(?:rmtree|move)", DELETES),
    (r"pathlib\.(?:Posix|Windows)?Path(?:\(\))?\.(?:unlink|rmdir|rename|replace)", DELETES),
    (r"asyncio\.(?:open_connection|start_server)|os\.sendfile", NETWORK),
    (r"seaborn\.load_dataset|sklearn\.datasets\.fetch_\w+|statsmodels\.\w+\.get_rdataset", NETWORK),
    (r"get_ipython\(\)\.(?:run_cell\w*|ex|run_code|safe_execfile\w*|run_ast_nodes)", UNSEEN),
    (r"(?:importlib\.)?(?:import_module|__import__)|eval|exec|_?imp\.load_\w+", UNSEEN),
)
_FUNCTION = tuple((re.compile(rf"(?:{pattern})\Z"), label) for pattern, label in _FUNCTIONS)
_QUIET = re.compile(
    r"\.(?:PIPE|STDOUT|DEVNULL|list2cmdline|exceptions|codes|gethostname|version|__\w+__|[A-Z]\w*(?:Error|Exception|Warning"
    r"|Expired|Timeout|Process))(?:\W|\Z)|\.c_\w+\Z|\Actypes\.sizeof"
)
_DOUBTFUL = {
    "requests": frozenset(
        {"get", "post", "put", "patch", "delete", "head", "options", "request", "Session", "session"}
    ),
    "socket": frozenset({"socket", "create_connection", "create_server", "getaddrinfo", "gethostbyname"}),
}
"""Modules whose names are good names for variables too: where nothing says which it is, only these functions count."""
_ANY_OWNER = {"unlink": DELETES, "rmdir": DELETES, "rmtree": DELETES, "exec_module": UNSEEN}
_TAKES_TEXT = frozenset({"eval", "exec", "__import__", "importlib.import_module"})
_READER = re.compile(r"read|scan|load|open|fetch|from_url|genfromtxt|urlretrieve", re.IGNORECASE)
_URL = re.compile(r"\s*(?:https?|s3[an]?|ftps?|sftp|ssh|gs|gcs|azure?|abfss?|adl|hdfs|hf)://", re.IGNORECASE)
_ASSUMED = frozenset(
    {
        *(
            "httpx",
            "aiohttp",
            "urllib",
            "urllib3",
            "ftplib",
            "smtplib",
            "paramiko",
            "boto3",
            "pexpect",
            "asyncio",
            "pathlib",
        )
    }
)
_ROUGH = (
    (re.compile(r"\bsubprocess\s*\.|\bos\s*\.\s*(?:system|popen|spawn)"), SHELL),
    (re.compile(r"\bos\s*\.\s*(?:remove|unlink|rmdir)\b|\brmtree\b|\.unlink\s*\("), DELETES),
    (re.compile(r"\b(?:requests|httpx|urllib|socket|boto3|paramiko)\s*\."), NETWORK),
    (re.compile(r"(?<![\w.])(?:eval|exec|__import__)\s*\("), UNSEEN),
)

_COMMAND = r"(?:^|[\s;&|(`\"'/])(?:sudo\s+)?"
_COMMANDS: tuple[tuple[re.Pattern[str], str], ...] = (
    (re.compile(_COMMAND + r"(?:rm|rmdir|unlink|shred|mv|del|rd|truncate)\b|\s-delete\b|\bgit\s+clean\b", re.MULTILINE), DELETES),
    (
        re.compile(
            r"\b(?:pip[\d.]*|pipx|uv|conda|mamba|micromamba|apt|apt-get|brew|npm|yum|dnf|apk|poetry|gem|cargo)\s"
            r"(?:[^;&|\n]*\s)?(?:install|uninstall|add|remove|sync|update|upgrade|create|ci)\b"
        ),
        INSTALLS,
    ),
    (
        re.compile(
            _COMMAND + r"(?:curl|wget|ssh|scp|sftp|rsync|nc|ncat|netcat|telnet|ftp|aws|gsutil|gcloud|az|kaggle)\b(?!\.)"
            r"|\bgit\s+(?:clone|fetch|pull|push|remote|submodule)\b",
            re.MULTILINE,
        ),
        NETWORK,
    ),
)  # fmt: skip
_INSTALL_MAGICS = frozenset({"pip", "conda", "mamba", "micromamba", "uv"})
_INSTALL_LOOKS = re.compile(
    r"(?:list|show|freeze|check|help|inspect|info|search|index|debug|--version|-V|-h|--help)\b[^;&|<>`$()]*\Z"
)
_SHELL_MAGICS = frozenset(
    {
        *("sx", "system", "sc", "alias", "edit", "ed", "script", "rm", "mv", "rmdir", "cp", "mkdir", "cat", "man"),
        *("less", "more", "ls", "ll", "lf", "lk", "ldir", "lx", "del", "copy", "ren", "ddir", "killbgscripts"),
    }
)
_UNSEEN_MAGICS = frozenset({"run", "rerun", "rep", "recall", "macro", "load", "loadpy", "dbg"})


def effects(code: str, namespace: Mapping[str, object] | None = None) -> frozenset[str]:
    """Return what `code` (a cell: Python, magics and `!` lines) looks as if it could do beyond the notebook.

    The labels are the plain words of this module's constants, such as "deletes files". Code that is neither Python nor
    IPython's has none. With the `namespace` of the kernel, names that other cells made are known for what they are
    (`sp` for subprocess, a table called `requests`); their values are not touched.
    """
    found = set(_Look(namespace).cell(code))
    if exits_kernel(code):
        found.add(EXITS)
    return frozenset(found)


def kind_of(code: str, otherwise: Kind, namespace: Mapping[str, object] | None = None) -> Kind:
    """Return the row of the policy table for running `code`: `otherwise` where its look raises no question."""
    found = effects(code, namespace)
    return Kind.PROTECTED if EXITS in found else Kind.RISKY_CODE if found else otherwise


def in_words(found: Iterable[str]) -> str:
    """Return effects as the end of a title, " (deletes files, network)", or ""."""
    given = set(found)
    said = [label for label in _ORDER if label in given]
    return f" ({', '.join(said)})" if said else ""


def exits_kernel(code: str) -> bool:
    """Tell whether `code` (a cell: Python, magics and `!` lines) looks as if it could end or kill the kernel.

    True for exit() and quit(), os._exit, os.kill, os.exec*, signal.raise_signal and their like, also imported by name
    or fetched with getattr, and for shell lines that kill. `sys.exit` is not among them: it only stops the code.
    """
    parts = cellcode.split(code)
    if any(_SHELL_KILL.search(command) for command in parts.shell):
        return True
    if parts.tree is None:
        return bool(_TEXTUAL.search(code))
    aliases = _aliases(parts.tree)
    bodies = [parts.tree, *(tree for _, rest in parts.magics if (tree := cellcode.parse(cellcode.python_of(rest))))]
    return any(_suspicious(node, aliases) for body in bodies for node in ast.walk(body))


def _aliases(tree: ast.AST) -> dict[str, str]:
    """Map local names to the dotted names that they were imported as."""
    names: dict[str, str] = {}
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            names.update({alias.asname or alias.name: alias.name for alias in node.names})
        elif isinstance(node, ast.ImportFrom) and node.module:
            names.update({alias.asname or alias.name: f"{node.module}.{alias.name}" for alias in node.names})
    return names


def _suspicious(node: ast.AST, aliases: dict[str, str]) -> bool:
    if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Load):
        return node.id in _NAMES or aliases.get(node.id, "") in _MODULE_CALLS
    if isinstance(node, ast.Attribute):
        owner = aliases.get(node.value.id, node.value.id) if isinstance(node.value, ast.Name) else ""
        return node.attr in _ATTRIBUTES or f"{owner}.{node.attr}" in _MODULE_CALLS or _kills_process(node)
    if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id in {"getattr", "setattr"}:
        return any(isinstance(a, ast.Constant) and a.value in _ATTRIBUTES | {"kill", "abort"} for a in node.args)
    return False


def _kills_process(node: ast.Attribute) -> bool:
    """Whether it is `psutil.Process().kill` or the like on the kernel's own process."""
    call = node.value
    if node.attr not in {"kill", "terminate", "suspend", "send_signal"} or not isinstance(call, ast.Call):
        return False
    return not call.args and ast.unparse(call.func) in {"psutil.Process", "Process"}


class _Look:
    """One look at a cell and at the code that it holds as text (`exec("…")`), to a small depth."""

    def __init__(self, namespace: Mapping[str, object] | None, depth: int = 4) -> None:
        self._namespace = namespace
        self._depth = depth

    def cell(self, code: str) -> set[str]:
        """Return the labels of a cell."""
        parts = cellcode.split(code)
        found: set[str] = set()
        for command in parts.shell:
            found |= {SHELL, *_of_command(command)}
        for name, rest in parts.magics:
            found |= self._magic(name, rest)
        if parts.tree is not None:
            found |= self._tree(parts.tree)
        elif parts.shell or parts.magics:  # IPython may well read what this look could not
            found |= {label for pattern, label in _ROUGH if pattern.search(code)}
        return found

    def _magic(self, name: str, rest: str) -> set[str]:
        if name in _INSTALL_MAGICS:
            return set() if _INSTALL_LOOKS.match(rest) else {INSTALLS, *_of_command(rest)}
        if name in _SHELL_MAGICS:
            return {SHELL, *_of_command(f"{name} {rest}")}
        if name in _UNSEEN_MAGICS:
            return {UNSEEN, NETWORK} if _URL.search(rest) else {UNSEEN}
        if name == "pastebin":
            return {NETWORK}
        return self._inner(cellcode.python_of(rest))

    def _inner(self, code: str) -> set[str]:
        return _Look(self._namespace, self._depth - 1).cell(code) if code and self._depth > 0 else set()

    def _tree(self, tree: ast.AST) -> set[str]:
        names = Dotted(tree, _ASSUMED, frozenset(_DOUBTFUL), self._namespace)
        found: set[str] = set()
        harmless: set[int] = set()
        for node in ast.walk(tree):  # a call comes before its function
            if isinstance(node, ast.Import | ast.ImportFrom):
                found |= _of_import(node)
            elif isinstance(node, ast.Call):
                found |= self._call(node, names)
                if _is_harmless(node, names):
                    harmless.add(id(node.func))
            elif isinstance(node, ast.Name | ast.Attribute | ast.Subscript) and id(node) not in harmless:
                found |= _of_reference(node, names)
        return found

    def _call(self, node: ast.Call, names: Dotted) -> set[str]:
        called = names.of(node.func)
        label = _label_of(called)
        given = [*node.args, *(keyword.value for keyword in node.keywords)]
        found: set[str] = set()
        fetched = names.of(node)
        if not fetched.endswith("()") and (fetched_label := _label_of(fetched)):  # getattr(os, "system")
            found.add(fetched_label)
        if label == SHELL:
            parts = [names.text(part) for argument in given for part in ast.walk(argument)]
            found |= _of_command(" ".join(part for part in parts if part))
        elif label == UNSEEN and given:
            found |= self._inner(names.text(given[0]) or "")
        if called.startswith("get_ipython().run_") and called.endswith("_magic"):
            head, *rest = [names.text(argument) or "" for argument in given] or [""]
            mark, end = ("%%", "\n") if "cell" in called else ("%", " ")
            found |= self._inner(f"{mark}{head} {end.join(rest)}") if head else {UNSEEN}
        if called == "getattr" and len(node.args) > 1 and names.text(node.args[1]) is None:
            owner = names.of(node.args[0])
            found |= {UNSEEN} if owner in {"os", "shutil", *_MODULES} else set()
        name = node.func.attr if isinstance(node.func, ast.Attribute) else getattr(node.func, "id", "")
        if _READER.search(name) and any(_URL.match(names.text(argument) or "") for argument in given):
            found.add(NETWORK)
        return found


def _is_harmless(node: ast.Call, names: Dotted) -> bool:
    """Whether a call runs text that is literally there, which is looked at by itself, or only looks like `requests`."""
    called = names.of(node.func)
    if called in _TAKES_TEXT or called.startswith("get_ipython().run_"):
        return bool(node.args) and names.is_literal(node.args[0])
    if called in {"?requests.head", "?requests.get"}:  # frame.head(5)
        return not node.keywords and all(isinstance(a, ast.Constant) and type(a.value) is not str for a in node.args)
    return False


def _of_reference(node: ast.Name | ast.Attribute | ast.Subscript, names: Dotted) -> set[str]:
    if not isinstance(node.ctx, ast.Load):
        return set()
    found = {_ANY_OWNER[node.attr]} if isinstance(node, ast.Attribute) and node.attr in _ANY_OWNER else set[str]()
    label = _label_of(names.of(node))
    return {*found, label} if label else found


def _of_import(node: ast.Import | ast.ImportFrom) -> set[str]:
    """Return what an import hands on under a name by which a later cell would not be known."""
    if isinstance(node, ast.Import):
        hidden = [f"{alias.name}.x" for alias in node.names if alias.asname and alias.asname != alias.name]
    elif not node.module or node.level:
        return set()
    else:
        every = {"os": "os.system", "shutil": "shutil.rmtree"}.get(node.module, f"{node.module}.x")
        named = [alias.name for alias in node.names if alias.name != "import_module"]
        hidden = [every if name == "*" else f"{node.module}.{name}" for name in named]
    return {label for name in hidden if (label := _label_of(name))}


def _label_of(meant: str) -> str | None:
    """Return what using a dotted name means, or None."""
    if meant.startswith("?"):
        module, _, rest = meant[1:].partition(".")
        return NETWORK if rest.partition(".")[0].partition("(")[0] in _DOUBTFUL[module] else None
    if not meant or _QUIET.search(meant):
        return None
    for pattern, label in _FUNCTION:
        if pattern.match(meant):
            return label
    place = meant.find(".")
    while place > 0:
        if label := _MODULES.get(meant[:place]):
            return label
        place = meant.find(".", place + 1)
    return None


def _of_command(command: str) -> set[str]:
    """Return what a shell command does beside being one."""
    return {label for pattern, label in _COMMANDS if pattern.search(command)}
