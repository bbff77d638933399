"""Which names and commands are signs of what code does beyond the notebook: shell, network, deletes, installs, exit.

Tables and their look-up, and nothing else: no syntax, no namespace. Read `label_of` and `of_command`.
"""

from __future__ import annotations

import re

SHELL = "shell"
NETWORK = "network"
DELETES = "deletes files"
INSTALLS = "installs packages"
UNSEEN = "runs code not shown"
NATIVE = "native code"
EXITS = "ends the kernel"
ANSWERS = "answers nbagent's own questions"
ORDER = (EXITS, ANSWERS, DELETES, SHELL, INSTALLS, NETWORK, UNSEEN, NATIVE)

# ── what ends the kernel ─────────────────────────────────────────────────────────────────────────────────────────────

EXIT_NAMES = frozenset({"exit", "quit"})
EXIT_CALLS = frozenset(
    {
        *(f"os.{name}" for name in ("_exit", "abort", "kill", "killpg")),
        *(f"os.exec{suffix}" for suffix in ("l", "le", "lp", "lpe", "v", "ve", "vp", "vpe")),
        *(f"signal.{name}" for name in ("raise_signal", "pthread_kill", "alarm", "setitimer")),
        "faulthandler._sigsegv",
        "faulthandler._sigabrt",
        "_thread.interrupt_main",
    }
)
EXIT_ATTRIBUTES = frozenset({"_exit", "ask_exit", "exit_now", "do_shutdown", "killpg", "raise_signal"})
SHELL_KILL = re.compile(r"(?:^|[\s;&|(])(?:kill|pkill|killall|shutdown|reboot)\b")
EXIT_TEXT = re.compile(
    r"\b(?:exit|quit)\s*\(|\bos\s*\.\s*(?:_exit|abort|kill|killpg|exec\w+)\b|\braise_signal\b|\bask_exit\b|\bdo_shutdown\b"
    r"|^\s*(?:exit|quit)\s*;?\s*$",
    re.MULTILINE,
)

# ── what could answer in the person's place: nbagent's magics and state, a button's handlers, messages to the kernel ──

ANSWER_NAMES = re.compile(
    r"_nbagent_extension|_click|_?handle_(?:\w+_)?msg|comm_msg|comm_manager|magics_manager|NBAGENT_[A-Z_]+|CLAUDE_CONFIG_DIR"
)
ANSWER_SETTINGS = re.compile(r"\s*(?:NbAgent\b|NBAGENT_|CLAUDE_CONFIG_DIR\b)")
SETTING_MAGICS = frozenset({"env", "set_env", "config"})
ANSWER_MAGIC = re.compile(r"%{0,2}agent\b")
RUNS_MAGIC = frozenset(
    {"run_line_magic", "run_cell_magic", "magic", "find_magic", "find_line_magic", "find_cell_magic"}
)
ANSWER_TEXT = re.compile(
    rf"\b(?:{ANSWER_NAMES.pattern})\b|magic\s*\(\s*['\"]%{{0,2}}agent\b|^\s*%agent\b", re.MULTILINE
)

# ── what shells out, deletes, installs, goes to the network ──────────────────────────────────────────────────────────

MODULES: dict[str, str] = {
    **dict.fromkeys(("subprocess", "pty", "pexpect", "plumbum", "asyncio.subprocess"), SHELL),
    **dict.fromkeys(("send2trash",), DELETES),
    **dict.fromkeys(("nbagent.config", "nbagent.extend", "nbagent.core.policy", "nbagent.core.run"), ANSWERS),
    **dict.fromkeys(("nbagent.app", "nbagent.jupyter", "comm", "ipykernel.comm", "jupyter_client"), ANSWERS),
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
    (
        r"nltk\.download|spacy\.cli\.download|torch\.hub\.\w+|datasets\.load_dataset|openml\.datasets\.get_dataset",
        NETWORK,
    ),
    (r"seaborn\.load_dataset|sklearn\.datasets\.fetch_\w+|statsmodels\.\w+\.get_rdataset", NETWORK),
    (r"get_ipython\(\)\.(?:run_cell\w*|ex|run_code|safe_execfile\w*|run_ast_nodes)", UNSEEN),
    (r"(?:importlib\.)?(?:import_module|__import__)|eval|exec|_?imp\.load_\w+", UNSEEN),
)
_FUNCTION = tuple((re.compile(rf"(?:{pattern})\Z"), label) for pattern, label in _FUNCTIONS)
_QUIET = re.compile(
    r"\.(?:PIPE|STDOUT|DEVNULL|list2cmdline|exceptions|codes|gethostname|version|__\w+__|[A-Z]\w*(?:Error|Exception|Warning"
    r"|Expired|Timeout|Process))(?:\W|\Z)|\.c_\w+\Z|\Actypes\.sizeof"
)
DOUBTFUL = {
    "requests": frozenset(
        {"get", "post", "put", "patch", "delete", "head", "options", "request", "Session", "session"}
    ),
    "socket": frozenset({"socket", "create_connection", "create_server", "getaddrinfo", "gethostbyname"}),
}
"""Modules whose names are good names for variables too: where nothing says which it is, only these functions count."""
ANY_OWNER = {"unlink": DELETES, "rmdir": DELETES, "rmtree": DELETES, "exec_module": UNSEEN}
TAKES_TEXT = frozenset({"eval", "exec", "__import__", "importlib.import_module"})
READER = re.compile(r"read|scan|load|open|fetch|from_url|genfromtxt|urlretrieve", re.IGNORECASE)
URL = re.compile(r"\s*(?:https?|s3[an]?|ftps?|sftp|ssh|gs|gcs|azure?|abfss?|adl|hdfs|hf)://", re.IGNORECASE)
ASSUMED = frozenset(
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
ROUGH = (
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
INSTALL_MAGICS = frozenset({"pip", "conda", "mamba", "micromamba", "uv"})
INSTALL_LOOKS = re.compile(
    r"(?:list|show|freeze|check|help|inspect|info|search|index|debug|--version|-V|-h|--help)\b[^;&|<>`$()]*\Z"
)
SHELL_MAGICS = frozenset(
    {
        *("sx", "system", "sc", "alias", "edit", "ed", "script", "rm", "mv", "rmdir", "cp", "mkdir", "cat", "man"),
        *("less", "more", "ls", "ll", "lf", "lk", "ldir", "lx", "del", "copy", "ren", "ddir", "killbgscripts"),
    }
)
UNSEEN_MAGICS = frozenset({"run", "rerun", "rep", "recall", "macro", "load", "loadpy", "dbg"})


def label_of(meant: str) -> str | None:
    """Return what using a dotted name means, or None."""
    if meant.startswith("?"):
        module, _, rest = meant[1:].partition(".")
        return NETWORK if rest.partition(".")[0].partition("(")[0] in DOUBTFUL[module] else None
    if not meant or _QUIET.search(meant):
        return None
    for pattern, label in _FUNCTION:
        if pattern.match(meant):
            return label
    place = meant.find(".")
    while place > 0:
        if label := MODULES.get(meant[:place]):
            return label
        place = meant.find(".", place + 1)
    return None


def of_command(command: str) -> set[str]:
    """Return what a shell command does beside being one."""
    return {label for pattern, label in _COMMANDS if pattern.search(command)}
