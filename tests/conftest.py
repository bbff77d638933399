"""What holds for every test: no network but loopback, nobody's real home or key, the same examples each time, no skips.

Read `pytest_configure` first.
"""

from __future__ import annotations

import gc
import ipaddress
import json
import os
import shutil
import sys
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING, Any

import hypothesis
import pytest
from hypothesis.configuration import set_hypothesis_home_dir

from tests.support.ports import OwnPorts
from tests.support.warm import Warm

if TYPE_CHECKING:
    from collections.abc import Iterator

ROOT = Path(__file__).parents[1]
HOME_KEY = pytest.StashKey[Path]()
WARM_KEY = pytest.StashKey[Warm]()

# ── nobody's home, key or settings ───────────────────────────────────────────────────────────────────────────────────

HOME_FOLDERS = {
    "HOME": "",
    "USERPROFILE": "",
    "XDG_CONFIG_HOME": "config",
    "XDG_DATA_HOME": "data",
    "XDG_CACHE_HOME": "cache",
    "XDG_STATE_HOME": "state",
    "IPYTHONDIR": "ipython",
    "JUPYTER_CONFIG_DIR": "jupyter/config",
    "JUPYTER_DATA_DIR": "jupyter/data",
    "JUPYTER_RUNTIME_DIR": "jupyter/runtime",
}
FOREIGN_PREFIXES = ("ANTHROPIC_", "NBAGENT_", "CLAUDE_", "AWS_", "GOOGLE_", "HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY")


def isolate(home: Path) -> None:
    """Point this process, and so every kernel and server that it starts, at an empty home without keys or proxies."""
    for name in [n for n in os.environ if n.upper().startswith(FOREIGN_PREFIXES)]:
        del os.environ[name]
    for name, folder in HOME_FOLDERS.items():
        path = home / folder
        path.mkdir(parents=True, exist_ok=True)
        os.environ[name] = str(path)
    os.environ["MPLCONFIGDIR"] = str(ROOT / "build" / "matplotlib")  # kept: the first font scan takes seconds
    os.environ["MPLBACKEND"] = "agg"
    os.environ["NO_PROXY"] = "*"
    os.environ["PYDEVD_DISABLE_FILE_VALIDATION"] = "1"


OLD_KERNEL = """\
import sys
sys.path[0] = {folder!r}
from ipykernel import kernelapp
kernelapp.launch_new_instance()
"""


def use_ipykernel(version: str) -> None:
    """Make every kernel that a test starts, by whatever client or server, one of this version of ipykernel.

    By the kernel's spec in the empty home, the one way that no test goes around; only the kernel's process sees it.
    """
    folder = ROOT / "build" / "ipykernel" / version
    assert (folder / "ipykernel").is_dir(), f"there is no {folder}: make {folder.relative_to(ROOT)}"
    argv = [sys.executable, "-c", OLD_KERNEL.format(folder=str(folder)), "-f", "{connection_file}"]
    spec = {"argv": argv, "display_name": "Python 3", "language": "python", "metadata": {"debugger": True}}
    first = Path(os.environ["JUPYTER_DATA_DIR"]) / "first"
    path = first / "kernels" / "python3" / "kernel.json"
    path.parent.mkdir(parents=True)
    path.write_text(json.dumps(spec), encoding="utf-8")
    os.environ["JUPYTER_PATH"] = str(first)  # looked at before the environment's own kernels


EVERY_PLACE = (
    "places", "conformance", "failures/test_stops.py", "failures/test_place_rows.py", "app/test_magics_kernel.py",
    "app/test_replay.py", "app/test_undo_kernel.py", "browser/test_agent_cell.py", "browser/test_agent_stop.py",
    "browser/test_places.py",
)  # fmt: skip
"""What a place may break: run on every version of ipykernel, and in Notebook 7 (marker `places`)."""


SECOND_LINE = (
    "analysis/test_tasks.py::test_the_checker_refuses_wrong_solutions",
    *(f"analysis/test_tasks.py::test_the_script_leaves_a_notebook_that_its_checker_accepts[{name}-twin]"
      for name in ("survey", "texts", "geo", "parquet", "excel")),
    "app/teams/test_team.py::test_a_team_of_three_repairs_what_fails_merges_two_and_reports_the_conflict[11-",
    "app/test_killed.py::test_killed_at_50_points",
    "conformance/test_interleaving.py::test_interleavings_lose_nothing_and_can_be_undone[a thousand]",
    "failures/test_terminal.py::test_the_time_limit_holds_while_a_question_is_open_on_a_terminal",
    "maps/test_map.py::test_every_executor_gives_the_same_table",
)  # fmt: skip
"""Variants and repeats that take many seconds, where another test proves the same thing once: how their node ids begin.

`make test` leaves them out, `make test-long` has them (marker `long`); CI runs both.
"""


TOGETHER = ("conformance/test_nbclient_host.py", "demo/test_capabilities.py", "demo/test_data_analysis.py")
"""Files whose tests look at what ran once, for many seconds: all of one in the same process, where the others go to any."""


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config: pytest.Config, log: Any) -> Any:
    """What `--dist loadgroup` is here: its marks are not seen under pytest 9.2 (pytest-xdist 3.8)."""
    from xdist.scheduler import LoadScopeScheduling

    class Together(LoadScopeScheduling):
        def _split_scope(self, nodeid: str) -> str:
            file = nodeid.partition("::")[0]
            return file if file.removeprefix("tests/") in TOGETHER else nodeid

    return Together(config, log) if config.getvalue("dist") == "loadgroup" else None


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    for item in items:
        if any(item.path.is_relative_to(ROOT / "tests" / name) for name in EVERY_PLACE):
            item.add_marker(pytest.mark.places)
        if item.nodeid.removeprefix("tests/").startswith(SECOND_LINE):
            item.add_marker(pytest.mark.long)
    _found_by_make(items)


def _found_by_make(items: list[pytest.Item]) -> None:
    """Refuse a test that no target would run: `make test-kernel` finds the files of such tests by this word in them."""
    kernels = {item.path for item in items if item.get_closest_marker("kernel") and "browser" not in item.path.parts}
    missed = [path for path in kernels if "mark.kernel" not in path.read_text(encoding="utf-8")]
    if missed:
        raise pytest.UsageError(f"make test-kernel would not find {missed}: they need pytest.mark.kernel in their text")


collect_ignore = [] if sys.platform == "linux" else ["meta/test_warm.py"]  # kernels are forked there only


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--no-skips", action="store_true", help="a skipped test fails the session (make test)")
    parser.addoption("--front-end", default="lab", choices=["lab", "notebook"], help="what the browser tests open")
    parser.addoption(
        "--ipykernel", default="", help="version for every kernel, from build/ipykernel/ (make test-places)"
    )


def pytest_configure(config: pytest.Config) -> None:
    # jsonschema (nbformat's) imports it where it is there, which takes 2.7 s a worker, for a format that no notebook has
    sys.modules.setdefault("rfc3987_syntax", None)  # pyright: ignore[reportArgumentType]
    home = Path(tempfile.mkdtemp(prefix="nbagent-home-"))
    config.stash[HOME_KEY] = home
    isolate(home)
    OwnPorts.instance()
    if version := config.getoption("--ipykernel"):
        use_ipykernel(version)
    elif sys.platform == "linux":
        config.stash[WARM_KEY] = Warm(home / "warm")
    set_hypothesis_home_dir(home / "hypothesis")
    hypothesis.settings.register_profile("ci", derandomize=True, deadline=None, database=None, print_blob=True)
    hypothesis.settings.register_profile("quick", hypothesis.settings.get_profile("ci"), max_examples=15)
    hypothesis.settings.register_profile("explore", deadline=None, max_examples=1000)
    hypothesis.settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "ci"))


def pytest_collection_finish(session: pytest.Session) -> None:
    gc.collect()
    gc.freeze()  # half a million objects of imports and tests: each later collection looked through them, for half a second
    # not for JupyterLab: a page that is loaded again in the middle of a cell never heard of a forked kernel's state
    pages = any(item.get_closest_marker("browser") for item in session.items)
    starts = not pages and any(item.get_closest_marker("kernel") for item in session.items)
    if starts and not session.config.option.collectonly and (warm := session.config.stash.get(WARM_KEY, None)):
        warm.start()


def pytest_unconfigure(config: pytest.Config) -> None:
    if warm := config.stash.get(WARM_KEY, None):
        warm.stop()
    shutil.rmtree(config.stash[HOME_KEY], ignore_errors=True)


# ── no network but loopback ──────────────────────────────────────────────────────────────────────────────────────────


class NetworkReached(BaseException):
    """A test tried to leave this machine. Not an Exception, so that no retry or fallback swallows it."""


_reached: list[str] = []


def _is_here(host: Any) -> bool:
    text = (host.decode() if isinstance(host, bytes) else str(host or "")).partition("%")[0]
    if text in {"", "localhost", "0.0.0.0", "::"} or text.endswith((".localhost", ".invalid")):
        return True  # `.invalid` never resolves (RFC 2606): the way to test an unknown host
    try:
        return ipaddress.ip_address(text).is_loopback
    except ValueError:
        return False


def _watch(event: str, args: tuple[Any, ...]) -> None:
    if event == "socket.connect":
        address = args[1]
        host = address[0] if isinstance(address, tuple) else ""  # a str is a Unix socket's path
    elif event == "socket.getaddrinfo":
        host = args[0]
    else:
        return
    if not _is_here(host):
        _reached.append(str(host))
        raise NetworkReached(f"a test tried to reach {host!r}; only loopback is allowed")


sys.addaudithook(_watch)


@pytest.fixture(autouse=True)
def _no_network() -> Iterator[None]:
    before = len(_reached)
    yield
    assert _reached[before:] == [], f"tried to reach {_reached[before:]}; only loopback is allowed in tests"


@pytest.fixture(autouse=True)
def _in_own_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Each test works in its own empty folder, so that no `.nbagent/` of one is found by another."""
    monkeypatch.chdir(tmp_path)


# ── no skips in `make test` ──────────────────────────────────────────────────────────────────────────────────────────


def pytest_runtest_logreport(report: pytest.TestReport) -> None:
    if report.skipped and not hasattr(report, "wasxfail"):
        _skipped.append(report.nodeid)


def pytest_collectreport(report: pytest.CollectReport) -> None:
    if report.skipped:
        _skipped.append(report.nodeid)


_skipped: list[str] = []


@pytest.hookimpl(trylast=True)
def pytest_sessionfinish(session: pytest.Session) -> None:
    if session.config.getoption("--no-skips") and _skipped:
        session.exitstatus = pytest.ExitCode.TESTS_FAILED


def pytest_terminal_summary(terminalreporter: Any, config: pytest.Config) -> None:
    if config.getoption("--no-skips") and _skipped:
        terminalreporter.write_line(f"--no-skips: these were skipped, which fails the run: {_skipped}", red=True)


@pytest.fixture(scope="module")
def shell() -> Iterator[Any]:
    """A plain IPython shell, which keeps no history."""
    from IPython.core.interactiveshell import InteractiveShell
    from traitlets.config import Config

    made = InteractiveShell(config=Config({"HistoryManager": {"enabled": False}}))
    yield made
    made.restore_sys_module_state()
