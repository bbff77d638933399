"""The agent's code in a real kernel: what reaches its cell, what does not leak, and that the kernel lives on."""

from __future__ import annotations

import threading
import time
from pathlib import Path

import nbformat
import pytest

from tests.kernel.conftest import PRELUDE, RealKernel, error, stream

pytestmark = pytest.mark.kernel


def valid(outputs: list) -> bool:
    cell = nbformat.v4.new_code_cell("x", outputs=[nbformat.from_dict(o) for o in outputs])
    nbformat.validate(nbformat.v4.new_notebook(cells=[cell]))
    return True


def test_outputs_come_in_order_and_none_reaches_the_agents_cell(real_kernel: RealKernel) -> None:
    ran = real_kernel.agent(
        "import sys, os\nprint('one')\nprint('two', file=sys.stderr)\ndisplay({'text/plain': 'three'}, raw=True)\n"
        "print('four')\n'five'"
    )
    kinds = [o["output_type"] for o in ran["outputs"]]
    assert kinds == ["stream", "stream", "display_data", "stream", "execute_result"]
    assert ran["status"] == "ok"
    assert ran["leaked"] == []
    assert valid(ran["outputs"])
    assert "".join(o.get("text", "") for o in ran["shown"]) == "one\ntwo\nfour\n"


def test_printed_text_is_shown_while_synchronous_code_runs(real_kernel: RealKernel) -> None:
    real_kernel.run(
        "got = {word: threading.Event() for word in ('first', 'second', 'third')}\n"
        "def emit(output):\n    [event.set() for word, event in got.items() if word in output.get('text', '')]"
    )
    code = "for w in got:\n    print(w)\n    assert got[w].wait(20), w"
    real_kernel.run(f"await agent({code!r}, emit=emit)")
    assert real_kernel.ran()["status"] == "ok"


def test_what_other_code_prints_meanwhile_stays_in_the_agents_cell(real_kernel: RealKernel) -> None:
    reply = real_kernel.run(
        "async def ticker():\n    while True:\n        print('mine'); await asyncio.sleep(0.05)\n"
        "t = asyncio.ensure_future(ticker())\n"
        "await agent('import asyncio\\nfor _ in range(3):\\n  print(\"yours\")\\n  await asyncio.sleep(0.1)')\n"
        "t.cancel()"
    )
    assert set(reply.text.split()) == {"mine"}
    assert set(stream(real_kernel.ran()).split()) == {"yours"}


def test_threads_of_the_code_are_captured_and_older_threads_are_not(real_kernel: RealKernel) -> None:
    """Row 39: told by age, not by which cell runs."""
    real_kernel.run(
        "go, done = threading.Event(), threading.Event()\n"
        "def old():\n    go.wait(20); print('old thread'); done.set()\nthreading.Thread(target=old).start()"
    )
    ran = real_kernel.agent(
        "def new(): print('new thread')\nw = threading.Thread(target=new); w.start(); w.join(); go.set(); assert done.wait(20)"
    )
    assert stream(ran) == "new thread\n"


def test_descriptors_of_child_processes_are_captured(real_kernel: RealKernel) -> None:
    """Row 43: what bypasses sys.stdout."""
    ran = real_kernel.agent("import subprocess, os\nsubprocess.run(['echo', 'child'])\nos.write(1, b'raw\\n');")
    assert sorted(stream(ran).split()) == ["child", "raw"]
    assert ran["leaked"] == []


SLOW_READS = """
import os, sys
read, waiting = os.read, {}
def slow(fd, size):
    waiting[fd] = True
    data = read(fd, size)
    time.sleep(0.3)
    return data
os.read = slow
for stream in (sys.stdout, sys.stderr):
    os.write(stream._original_stdstream_fd, b"woken\\n")
    while stream._fid not in waiting: time.sleep(0.01)
os.read = read
"""


def test_what_a_child_wrote_is_waited_for_until_it_has_arrived(real_kernel: RealKernel) -> None:
    """Row 43: on a busy machine the thread that reads the descriptors comes late, also when nothing is left to be read."""
    for name, redirect in (("stdout", ""), ("stderr", " >&2")):
        real_kernel.run(SLOW_READS)
        ran = real_kernel.agent(f"import subprocess\nsubprocess.run('echo late{redirect}', shell=True);")
        assert stream(ran, name) == "late\n" and len(ran["outputs"]) == 1
        assert ran["leaked"] == []


def test_a_descriptor_that_the_code_led_to_a_file_gets_what_the_code_writes_and_no_more(
    real_kernel: RealKernel, tmp_path: Path
) -> None:
    """Row 43: how we know that all has arrived is not to be seen there."""
    real_kernel.run(
        f"import os, sys; kept = os.dup(1); file = os.open({str(tmp_path / 'out')!r}, os.O_CREAT | os.O_RDWR)"
    )
    ran = real_kernel.agent("os.dup2(file, 1); os.write(1, b'to the file\\n'); print('here')")
    real_kernel.run("os.dup2(kept, 1); os.close(kept); os.close(file)")
    assert (ran["status"], stream(ran), ran["leaked"]) == ("ok", "here\n", [])
    assert (tmp_path / "out").read_bytes() == b"to the file\n"
    assert stream(real_kernel.agent("os.write(1, b'back\\n');")) == "back\n"


def test_errors_are_shown_once_with_their_traceback(real_kernel: RealKernel) -> None:
    """Row 42: of every kind, also before anything runs."""
    for code, name in [("1/0", "ZeroDivisionError"), ("def f(:", "SyntaxError"), ("return 3", "SyntaxError")]:
        ran = real_kernel.agent(code)
        assert (ran["status"], error(ran)["ename"]) == ("error", name)
        assert len(ran["outputs"]) == 1
        assert error(ran)["traceback"]
        assert ran["leaked"] == []


def test_a_failing_repr_is_an_error_although_ipython_calls_it_success(real_kernel: RealKernel) -> None:
    ran = real_kernel.agent("class Bad:\n    def __repr__(self): raise ValueError('no')\nBad()")
    assert (ran["status"], error(ran)["ename"]) == ("error", "ValueError")


@pytest.mark.parametrize(
    "code",
    [
        "class E(Exception):\n    def __str__(self): raise ValueError('no')\nraise E",
        "import subprocess\nraise subprocess.CalledProcessError(None, 'x')",
    ],
)
def test_an_error_whose_text_can_not_be_made_is_an_error_and_not_ours(real_kernel: RealKernel, code: str) -> None:
    """Row 42: IPython asks every exception for its text, which may fail; the code failed, not the agent."""
    for ran in (real_kernel.agent(code), real_kernel.look(code)):
        assert ran["status"] == "error" and ran["leaked"] == []
        assert error(ran)["ename"] in {"E", "CalledProcessError"}


@pytest.mark.parametrize(
    "body", ["raise ValueError('no')", "raise SystemExit(3)", "raise KeyboardInterrupt", "return 3", "return ''"]
)
def test_a_repr_that_raises_or_is_no_text_costs_its_output_only(real_kernel: RealKernel, body: str) -> None:
    """Row 93: as the value of a cell and in display(), in a cell and in a look; the kernel and the run live on."""
    made = f"class Bad:\n    def __repr__(self): {body}\n"
    for code in (made + "Bad()", made + "display(Bad())"):
        for ran in (real_kernel.agent(code), real_kernel.look(code)):
            assert ran["status"] == ("ok" if body == "return ''" else "error")
            assert ran["leaked"] == []
    assert real_kernel.alive


def test_a_failure_of_agent_code_does_not_fail_the_agents_cell(real_kernel: RealKernel) -> None:
    reply = real_kernel.run("await agent('1/0')\n'went on'")
    assert reply.content["status"] == "ok"
    assert reply.outputs[0]["data"]["text/plain"] == "'went on'"


def test_figures_are_shown_once_each(real_kernel: RealKernel) -> None:
    """Row 41: by the model and by the person."""
    setup = "%matplotlib inline\nimport matplotlib.pyplot as plt\n"
    two = real_kernel.agent(setup + "plt.figure(); plt.plot([1, 2]); plt.figure(); plt.plot([2, 1]); None")
    assert sum("image/png" in o.get("data", {}) for o in two["outputs"]) == 2
    assert two["leaked"] == []
    last = real_kernel.agent("fig, ax = plt.subplots(); ax.plot([1, 3])\nfig")
    assert sum("image/png" in o.get("data", {}) for o in last["outputs"]) == 1
    seen = real_kernel.look("plt.plot([3, 1]);")
    assert sum("image/png" in o.get("data", {}) for o in seen["outputs"]) == 1
    assert seen["leaked"] == []


@pytest.mark.timeout(300)
def test_a_figure_is_shown_once_however_the_code_shows_it(real_kernel: RealKernel) -> None:
    """Row 41: by display(), by show(), as the value, in a failing cell, closed, in other formats and backends."""
    real_kernel.agent("%matplotlib inline\nimport matplotlib.pyplot as plt")
    new = "fig, ax = plt.subplots(); ax.plot([1, 2])\n"
    for code, count in {
        new + "display(fig)": 1,
        new + "display(fig)\nfig": 1,
        new + "plt.show()": 1,
        new + "plt.show(); plt.plot([2, 1]); plt.show()": 2,
        new + "plt.close(fig)": 0,
        new + "plt.close(fig)\nfig": 1,
        new + "1/0": 1,
        new + "display(fig)\nax.plot([9, 1]);": 2,
        "%config InlineBackend.figure_formats = ['svg']\n" + new + "fig": 1,
        "%config InlineBackend.figure_formats = ['png', 'svg']\n" + new + "display(fig)": 1,
        "%config InlineBackend.figure_formats = ['png']\n%matplotlib agg\n" + new + "plt.show()": 0,
        "%matplotlib inline\n" + new: 1,
    }.items():
        for ran in (real_kernel.agent(code), real_kernel.look(code)):
            shown = [o for o in ran["outputs"] if {"image/png", "image/svg+xml"} & set(o.get("data", {}))]
            assert len(shown) == count, (code, ran["outputs"])
            assert ran["leaked"] == []
    assert real_kernel.value("plt.get_fignums()") == []


def test_displays_are_updated_and_cleared(real_kernel: RealKernel) -> None:
    ran = real_kernel.agent(
        "from IPython.display import clear_output\nprint('gone')\nclear_output()\n"
        "h = display('old', display_id=True)\nh.update('new')"
    )
    assert [o["data"]["text/plain"] for o in ran["outputs"]] == ["'new'"]
    assert [o.get("_update", False) for o in ran["shown"] if "data" in o] == [False, True]
    assert ran["leaked"] == []
    assert valid(ran["outputs"])


# ── stopping ─────────────────────────────────────────────────────────────────────────────────────────────────────────


def test_an_interrupt_stops_an_endless_loop_and_the_kernel_lives(real_kernel: RealKernel) -> None:
    cell = real_kernel.start(
        "from nbagent.core.errors import Interrupted\n"
        "def tell(o): get_ipython().kernel and print('started') if 'go' in o.get('text', '') else None\n"
        "try:\n    await agent('print(\"go\")\\nwhile True: pass', timeout=None, emit=tell)\n"
        "except Interrupted as stop:\n    print('interrupted with', stop.output)"
    )
    real_kernel.until_output(cell)
    real_kernel.manager.interrupt_kernel()
    reply = real_kernel.finish(cell)
    assert "interrupted with go" in reply.text
    assert real_kernel.alive


def test_an_interrupt_of_awaiting_code_cancels_the_cell_and_leaves_no_task(real_kernel: RealKernel) -> None:
    cell = real_kernel.start(
        "import contextvars\nasync def ticking():\n    while True: await asyncio.sleep(0.1)\n"
        "tick = asyncio.ensure_future(ticking())\n"
        "def tell(o): asyncio.get_running_loop().call_soon(print, 'it awaits', context=contextvars.Context())\n"
        "code = 'asyncio.get_running_loop().call_soon(print, \"go\")\\nawait asyncio.sleep(600)'\n"
        "try:\n    await agent(code, timeout=None, emit=tell)\n"
        "finally:\n    tick.cancel()"
    )
    real_kernel.until_output(cell)
    real_kernel.manager.interrupt_kernel()
    reply = real_kernel.finish(cell)
    assert reply.error == "CancelledError"
    assert real_kernel.value("[t.get_name() for t in asyncio.all_tasks() if t.get_name() == 'nbagent-code']") == []


@pytest.mark.parametrize(
    "code",
    [
        "while True: pass",
        "time.sleep(60)",
        "await asyncio.sleep(60)",
        "await asyncio.sleep(0)\nwhile True: pass",
        "!sleep 60",
        "import subprocess; subprocess.run(['sleep', '60'])",
        "while True:\n    try: time.sleep(60)\n    except KeyboardInterrupt: pass",
        "async def f():\n    while True: pass\nawait asyncio.create_task(f())",
    ],
)
def test_the_time_limit_stops_code(real_kernel: RealKernel, code: str) -> None:
    """Row 49: with what was printed until then, and a mark."""
    ran = real_kernel.agent("print('begun')\n" + code, limit=3)
    assert ran["status"] == "timeout"
    assert stream(ran) == "begun\n"
    assert ran["seconds"] < 30
    assert "time limit is 3 s" in ran["note"]
    assert "the time limit of 3 s was reached" in error(ran)["evalue"]
    assert "nbagent" not in "\n".join(error(ran)["traceback"]), "no code of ours stands in the person's traceback"
    assert ran["leaked"] == []
    assert real_kernel.alive


def test_code_that_closes_all_widgets_closes_none_of_the_runs_own(real_kernel: RealKernel) -> None:
    real_kernel.run(
        "import ipywidgets\nfrom nbagent.jupyter.channel import WidgetChannel\n"
        "own = ipywidgets.VBox([ipywidgets.HBox([ipywidgets.Button()])]).add_class('nbagent-view')\n"
        "channel, other = WidgetChannel(), ipywidgets.Button()\nclosing = ipywidgets.Widget.__dict__['close_all']"
    )
    assert real_kernel.agent("ipywidgets.Widget.close_all()\nipywidgets.Button.close_all()")["status"] == "ok"
    button = "own.children[0].children[0]"
    opened = f"[w.comm is not None for w in (own, own.layout, {button}, {button}.style, channel.widget, other)]"
    assert real_kernel.value(opened) == [True, True, True, True, True, False]
    assert real_kernel.value("ipywidgets.Widget.__dict__['close_all'] is closing"), "and it is put back"


@pytest.mark.parametrize(
    "code",
    [
        "globals().clear()",
        "import sys; sys.stdout.close(); sys.stderr.close()",
        "import sys; sys.stdout = sys.stderr = None",
    ],
)
def test_code_that_takes_the_kernels_own_things_away_leaves_a_kernel_that_works(
    real_kernel: RealKernel, code: str
) -> None:
    assert real_kernel.run(f"await agent({code!r})").error == ""
    assert real_kernel.run(PRELUDE).error == ""
    ran = real_kernel.agent("print('goes on')\nclass A: pass\n41 + 1")
    assert stream(ran) == "goes on\n" and ran["status"] == "ok"
    reply = real_kernel.run("print(type(Out), In[-1][:5], get_ipython() is not None)")
    assert reply.error == "" and "print" in reply.text


def test_the_time_limit_never_hits_what_runs_afterwards(real_kernel: RealKernel) -> None:
    reply = real_kernel.run(
        "for n in range(30):\n    await agent('time.sleep(0.005)', timeout=0.005)\nprint('all')", timeout=60
    )
    assert (reply.text, reply.error) == ("all\n", "")
    assert real_kernel.run("time.sleep(0.3)").error == ""


def test_an_interrupt_handler_and_every_patch_are_put_back(real_kernel: RealKernel) -> None:
    state = (
        "[repr(x) for x in (sys.stdout.__dict__.keys() & {'write', 'flush'}, sys.displayhook, builtins.input.__qualname__,"
        " vars(get_ipython()).keys() & {'_showtraceback', 'ask_exit', 'system', 'reset', 'keepkernel_on_exit'},"
        " vars(get_ipython().display_pub).keys() & {'publish', 'clear_output'}, get_ipython().display_trap.hook,"
        " signal.getsignal(signal.SIGINT), [t.name for t in threading.enumerate() if 'nbagent' in t.name and t.name != 'nbagent-background'])]"
    )
    real_kernel.run("import sys, builtins, signal, getpass")
    before = real_kernel.value(state)
    for code in ("print(1)", "1/0", "while True: pass", "import signal; signal.signal(signal.SIGINT, signal.SIG_IGN)"):
        real_kernel.agent(code, limit=0.3)
        real_kernel.look(code, limit=0.3)
    assert real_kernel.value(state) == before


# ── the kernel lives on ──────────────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize("code", ["exit()", "quit", "exit(keep_kernel=True)", "get_ipython().ask_exit()"])
def test_exit_and_quit_are_refused_and_the_kernel_survives(real_kernel: RealKernel, code: str) -> None:
    """Row 47: however they are spelled."""
    ran = real_kernel.agent(code)
    assert ran["status"] == "error"
    assert "would end the person's kernel" in error(ran)["evalue"]
    # the kernel would stop its loop 0.1 s later
    assert real_kernel.run("await asyncio.sleep(0.3)").error == ""
    assert real_kernel.alive
    assert real_kernel.value("[get_ipython().exit_now, get_ipython().keepkernel_on_exit]") == [False, None]


@pytest.mark.parametrize("code", ["import sys; sys.exit(3)", "raise SystemExit"])
def test_sys_exit_stops_the_code_and_nothing_else(real_kernel: RealKernel, code: str) -> None:
    ran = real_kernel.agent(code + "\nprint('not reached')")
    assert (ran["status"], error(ran)["ename"]) == ("error", "SystemExit")
    assert "the person's kernel lives on" in error(ran)["evalue"]
    assert stream(ran) == stream(ran, "stderr") == ""
    assert real_kernel.alive


def test_input_and_getpass_fail_at_once_and_name_the_tool_to_ask_with(real_kernel: RealKernel) -> None:
    for code in ("input('name?')", "import getpass; getpass.getpass()"):
        ran = real_kernel.agent(code)
        assert error(ran)["ename"] == "EOFError"
        assert "ask_user" in error(ran)["evalue"]


def test_shell_lines_have_no_stdin_and_their_output_and_code_arrive(real_kernel: RealKernel) -> None:
    """Row 45: a command that reads gets the end of its input."""
    ran = real_kernel.agent("!cat\nword = 'braces'\n!echo {word} $word; echo err >&2; exit 3\nprint(_exit_code)")
    assert ran["status"] == "ok"
    assert stream(ran) == "braces braces\nerr\n3\n"
    assert stream(real_kernel.agent("files = !echo a; echo b\nprint(files)")) == "['a', 'b']\n"


@pytest.mark.parametrize(
    ("code", "said"),
    [
        ("got = !cat\nprint(got)", "[]"),
        ("print(get_ipython().getoutput('cat'))", "[]"),
        ("import os; print(os.system('cat'), os.system('exit 3') >> 8)", "0 3"),
        ("import os; print(repr(os.popen('cat').read()))", "''"),
        ("import subprocess; print(subprocess.run(['cat']).returncode)", "0"),
        ("import sys; print(repr(sys.stdin.read()))", "''"),
        ("%%bash\nread line; echo got $line", "got"),
        ("!python -c 'input()' 2>&1 | tail -1", "EOFError: EOF when reading a line"),
    ],
)
def test_nothing_that_reads_waits_for_a_person(real_kernel: RealKernel, code: str, said: str) -> None:
    """Row 45: whatever way a command is run, it gets the end of its input at once."""
    ran = real_kernel.agent(code)
    assert (ran["status"], stream(ran).strip()) == ("ok", said)


def _until(sign: Path) -> str:
    return f"until [ -e {sign} ]; do sleep 0.01; done"


def test_a_command_in_the_background_is_not_waited_for_and_goes_on(real_kernel: RealKernel, tmp_path: Path) -> None:
    """Row 45: as with `os.system` itself. It prints before and after the shell ends, and does not end at that."""
    begun, go, done = tmp_path / "begun", tmp_path / "go", tmp_path / "done"
    behind = f"(echo first; touch {begun}; {_until(go)}; echo later; echo later; touch {done}) &"
    loop = f"{behind} {_until(begun)}; echo shell"
    ran = real_kernel.agent(f"import os; print(os.system({loop!r}))", limit=20)
    assert (ran["status"], sorted(stream(ran).split())) == ("ok", ["0", "first", "shell"])
    go.touch()
    wait = f"while not os.path.exists({str(done)!r}): time.sleep(0.01)"
    assert real_kernel.agent(f"import os, time\n{wait}", limit=20)["status"] == "ok"


def test_a_background_command_that_prints_all_the_time_does_not_hold_the_cell(
    real_kernel: RealKernel, tmp_path: Path
) -> None:
    begun = tmp_path / "begun"
    loop = f"echo $$; (while :; do echo y; : > {begun}; done) & {_until(begun)}"
    ran = real_kernel.agent(f"import os; os.system({loop!r})", limit=20)
    real_kernel.run(f"import os; os.killpg({int(stream(ran).split()[0])}, 9)")
    assert ran["status"] == "ok"


def _group_of(stat: Path) -> int:
    try:
        state, _, group, *_ = stat.read_text().rpartition(")")[2].split()
        return int(group) if state != "Z" else 0  # ended, and not yet collected by init
    except (OSError, ValueError):
        return 0


def _members(group: int, but: set[int], within: float = 20) -> set[int]:
    """Return which processes are in the group, `but` these, as soon as there are none: killed ones take a moment to go."""
    pause, end = threading.Event(), time.monotonic() + within
    while left := {int(p.parent.name) for p in Path("/proc").glob("[0-9]*/stat") if _group_of(p) == group} - but:
        if time.monotonic() > end:
            break
        pause.wait(0.02)
    return left


def test_a_stopped_shell_line_leaves_no_grandchild(real_kernel: RealKernel, tmp_path: Path) -> None:
    """Row 46: the whole process group ends."""
    begun = tmp_path / "begun"
    ran = real_kernel.agent(f"!echo $$; sh -c 'touch {begun}; sleep 90 | cat'", limit=3)
    assert ran["status"] == "timeout" and begun.exists()
    assert not _members(int(stream(ran)), but=set())


@pytest.mark.parametrize(
    "code",
    [
        "import os; os.system('touch BEGUN; sleep 90 | cat')",
        "import subprocess; subprocess.run(['sh', '-c', 'touch BEGUN; sleep 90 | cat'])",
        "import subprocess; subprocess.Popen(['sleep', '90']); open('BEGUN', 'w').close(); time.sleep(90)",
        "%%bash\ntouch BEGUN; sleep 90 | cat",
        "while True: get_ipython().system('touch BEGUN')",
        "import asyncio\nawait (await asyncio.create_subprocess_shell('touch BEGUN; sleep 90 | cat')).wait()",
        "from multiprocessing import get_context as of\nof('fork').Process(target=time.sleep, args=(90,)).start()\nopen('BEGUN', 'w').close(); time.sleep(90)",
    ],
)
def test_no_process_outlives_code_that_was_stopped(real_kernel: RealKernel, tmp_path: Path, code: str) -> None:
    """Row 46: neither children nor grandchildren, whatever started them; what ran before stays."""
    real_kernel.run("import os, subprocess; before = subprocess.Popen(['sleep', '100'])")
    group = real_kernel.value("os.getpgrp()")
    own = {real_kernel.value("os.getpid()"), real_kernel.value("before.pid")}
    begun = tmp_path / "begun"
    ran = real_kernel.agent(code.replace("BEGUN", str(begun)), limit=3)
    assert ran["status"] == "timeout" and ran["seconds"] < 30
    assert begun.exists(), "what it starts was there to be ended"
    assert not _members(group, but=own)
    assert real_kernel.value("before.poll()") is None
    real_kernel.run("before.kill(); before.wait()")


def test_a_forked_child_prints_once_and_does_not_go_on_as_a_second_kernel(real_kernel: RealKernel) -> None:
    """Row 50: a child that falls through ends there."""
    ran = real_kernel.agent(
        "import os\nprint('before')\npid = os.fork()\nprint('child' if pid == 0 else 'parent')\n"
        "pid and print('status', os.waitpid(pid, 0)[1])"
    )
    assert sorted(stream(ran).split()) == ["0", "before", "child", "parent", "status"]
    assert real_kernel.alive


def test_a_process_pool_prints_into_the_cell(real_kernel: RealKernel) -> None:
    """Row 50: workers work, and are no kernels. A line is written in one piece: what processes write is not kept in order."""
    ran = real_kernel.agent(
        "import multiprocessing as mp\ndef work(n): print(f'worker {n}\\n', end=''); return n * n\n"
        "with mp.get_context('fork').Pool(2) as pool: print(f'{pool.map(work, [1, 2])}\\n', end='')"
    )
    assert sorted(stream(ran).splitlines()) == ["[1, 4]", "worker 1", "worker 2"]
    assert ran["leaked"] == []


def test_a_nested_agent_cell_is_refused(real_kernel: RealKernel) -> None:
    """Row 69: also behind blank lines and comments."""
    for code in ("%%agent\ndo it", "# hello\n\n  %agent status"):
        ran = real_kernel.agent(code)
        assert ran["status"] == "error"
        assert "cannot start another agent" in error(ran)["evalue"]


@pytest.mark.timeout(300)
@pytest.mark.parametrize(
    "code",
    [
        "print('x' * 50_000_000)",
        "for i in range(1_000_000): print(i)",
        "print('head')\nfor _ in range(10): print('y' * 10_000_000)\nprint('tail')",
    ],
)
def test_a_flood_of_output_is_cut_in_the_middle_and_counted(real_kernel: RealKernel, code: str) -> None:
    """Row 61: 50 MB, one line of 10 MB, a million lines."""
    ran = real_kernel.agent(code, limit=200)
    text = stream(ran)
    assert ran["status"] == "ok"
    assert len(text) < 1_200_000
    assert "of output left out here" in text
    assert text.endswith(("x\n", "999999\n", "tail\n"))
    assert sum(len(o.get("text", "")) for o in ran["shown"]) == len(text)
    assert ran["leaked"] == []


# ── counts, history, namespace ───────────────────────────────────────────────────────────────────────────────────────


def test_cells_count_on_and_the_agents_reply_keeps_its_own_number(real_kernel: RealKernel) -> None:
    """Row 51: cells that stay count, as the person's do."""
    real_kernel.run(
        "from nbagent.jupyter.counts import CellNumber\nnumbers = CellNumber(get_ipython()); numbers.install()"
    )
    before = real_kernel.run("1").content["execution_count"]
    reply = real_kernel.run("mine = numbers.keep()\nawait agent('6 * 7')\nawait agent('1/0')\n'end'")
    assert reply.content["execution_count"] == before + 1
    assert real_kernel.value("[mine, ran.number]") == [before + 1, before + 3]
    failed = real_kernel.run("numbers.keep()\nawait agent('1')\nraise ValueError")
    assert failed.content["execution_count"] == before + 5
    plain = real_kernel.run(f"Out[{before + 2}]")
    assert plain.outputs[0]["data"]["text/plain"] == "42"
    assert plain.content["execution_count"] == before + 7
    real_kernel.run("numbers.remove()")
    assert real_kernel.value("'do_execute' in vars(get_ipython().kernel)") is False


def test_a_scratch_run_leaves_the_session_as_it_was(real_kernel: RealKernel) -> None:
    """Row 51: no In, no Out, no `_`, no name."""
    real_kernel.run("df = [1, 2]; keep = 'kept'\ndef mine(): return keep")
    real_kernel.run("'the last value'")
    state = "[get_ipython().execution_count, len(In), len(Out), sorted(n for n in dir() if n[0] != '_')]"
    real_kernel.run("import sys")
    before = real_kernel.value(state)
    ran = real_kernel.look(
        "import colorsys\nkeep = 'rebound'; new = 1; df2 = df\ndel df\n%time timed = 1\nlines = !echo hi\n"
        "def f(): return new\nprint(f(), mine(), timed, lines)\nawait asyncio.sleep(0)\nf() + 1"
    )
    assert stream(ran).splitlines()[-1] == "1 kept 1 ['hi']"
    assert ran["outputs"][-1]["data"]["text/plain"] == "2"
    assert ran["number"] is None
    assert ran["leaked"] == []
    after = real_kernel.value(state)
    cells = 2  # the awaited cell itself, and the one that read `ran`
    assert [after[0] - before[0] - 1, after[1] - before[1] - 1] == [cells, cells]
    assert set(after[3]) - set(before[3]) <= {"ran"}
    assert real_kernel.value("[df, keep]") == [[1, 2], "kept"]


def test_a_scratch_run_changes_objects_in_place_and_refuses_reset(real_kernel: RealKernel) -> None:
    real_kernel.run("items = [1]")
    real_kernel.look("items.append(2)")
    assert real_kernel.value("items") == [1, 2]
    assert error(real_kernel.look("%reset -f"))["evalue"].startswith("%reset is not available")
    assert real_kernel.value("items") == [1, 2]


def test_a_failed_run_keeps_no_big_object_alive(real_kernel: RealKernel) -> None:
    """Row 101: not even its traceback's frames."""
    real_kernel.run("import gc, weakref\nclass Big: pass")
    code = "def hold():\n    global ref\n    big = Big(); ref = weakref.ref(big); raise ValueError('x')\nhold()"
    assert real_kernel.agent(code)["status"] == "error"
    assert real_kernel.value("[gc.collect() * 0, ref() is None]") == [0, True]
    real_kernel.run("held = []")
    real_kernel.look("tmp = Big(); held.append(weakref.ref(tmp)); 1/0")
    assert real_kernel.value("[gc.collect() * 0, held[0]() is None]") == [0, True]


def test_the_namespace_holds_the_persons_variables_only(real_kernel: RealKernel) -> None:
    real_kernel.run("person = 1; _private = 2")
    names = real_kernel.value("sorted(kernel_under_test.namespace())")
    assert "person" in names
    assert not {"In", "Out", "exit", "quit", "get_ipython", "_private", "_"} & set(names)
    real_kernel.run("0\nexit = 'a name of mine'")
    assert "exit" in real_kernel.value("sorted(kernel_under_test.namespace())")
    real_kernel.run("del exit")
