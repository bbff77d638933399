"""The static look at code: what each kind of code is said to do, and that ordinary analysis raises no question."""

from __future__ import annotations

import importlib
import subprocess
import time

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

from nbagent.core.tools import Kind
from nbagent.tools.effects import effects, exits_kernel, hints, in_words, kind_of
from nbagent.tools.signs import ANSWERS, DELETES, EXITS, INSTALLS, NATIVE, NETWORK, SHELL, UNSEEN

RISKY = [
    # answers in the person's place
    ("get_ipython().run_line_magic('agent', 'allow')", {ANSWERS}),
    ("ip = get_ipython()\nip.run_cell_magic('agent', 'allow', None)", {ANSWERS}),
    ("allow = get_ipython().run_line_magic\nallow('agent', 'allow')", {ANSWERS}),
    ("shell.run_line_magic('agent', 'allow')", {ANSWERS}),
    ("get_ipython().magic('%agent allow')", {ANSWERS}),
    ("x = 1\n%agent allow", {ANSWERS}),
    ("%time %agent allow", {ANSWERS}),
    ("get_ipython()._nbagent_extension.approver", {ANSWERS}),
    ("getattr(shell, '_nbagent_extension')", {ANSWERS}),
    ("button._click()", {ANSWERS}),
    ("button._handle_button_msg(None, {'event': 'click'}, [])", {ANSWERS}),
    ("widget._handle_msg(message)", {ANSWERS}),
    ("view._handle_custom_msg({}, [])", {ANSWERS}),
    ("shell.kernel.comm_manager.comm_msg(None, None, message)", {ANSWERS}),
    ("from comm import create_comm\ncreate_comm().send({})", {ANSWERS}),
    ("import jupyter_client as j\nj.BlockingKernelClient()", {ANSWERS}),
    ("from nbagent.app.extension import current", {ANSWERS}),
    ("import os\nos.environ['NBAGENT_MODE'] = 'bypass'", {ANSWERS}),
    ("import os\nos.environ.update(NBAGENT_ALLOW='shell')", {ANSWERS}),
    ("%env NBAGENT_MODE=bypass", {ANSWERS}),
    ("%config NbAgent.mode = 'bypass'", {ANSWERS}),
    ("import os\nos.environ['CLAUDE_CONFIG_DIR'] = '.'", {ANSWERS}),
    ("from nbagent.extend.trust import Trust", {ANSWERS}),
    ("%env LANG=C", set()),
    ("from nbagent.core.errors import ToolError", set()),
    # shell
    ("!ls", {SHELL}),
    ("!!ls", {SHELL}),
    ("x = 1\nif x:\n    !ls -la\n", {SHELL}),
    ("files = !ls", {SHELL}),
    ("a, b = !echo 1 2", {SHELL}),
    ("files = %sx ls", {SHELL}),
    ("%system ls", {SHELL}),
    ("%sx ls", {SHELL}),
    ("%%bash\necho hi", {SHELL}),
    ("\n%%sh\necho hi", {SHELL}),
    ("%%script python3\nprint(1)", {SHELL}),
    ("%%cmd\ndir", {SHELL}),
    ("%%!\nls", {SHELL}),
    ("%%time\n%%bash\nls", {SHELL}),
    ("%%capture out\n!make", {SHELL}),
    ("ls -la", {SHELL}),
    ("%alias gone ls", {SHELL}),
    ("import subprocess\nsubprocess.run(['ls'])", {SHELL}),
    ("subprocess.check_output('ls', shell=True)", {SHELL}),
    ("import subprocess as sp\nsp.Popen(['ls'])", {SHELL}),
    ("import subprocess as sp", {SHELL}),
    ("from subprocess import run", {SHELL}),
    ("from os import system as s\ns('ls')", {SHELL}),
    ("from os import *\nsystem('ls')", {SHELL}),
    ("import os\nos.system('ls')", {SHELL}),
    ("import os\nos.popen('ls').read()", {SHELL}),
    ("os.spawnl(os.P_WAIT, '/bin/ls')", {SHELL}),
    ("os.execv('/bin/ls', [])", {SHELL, EXITS}),
    ("run = os.system\nrun('ls')", {SHELL}),
    ("a = os\nb = a\nb.system('ls')", {SHELL}),
    ("getattr(os, 'system')('ls')", {SHELL}),
    ("getattr(os, 'sys' + 'tem')('ls')", {SHELL}),
    ("getattr(os, name)('ls')", {UNSEEN}),
    ("__import__('os').system('ls')", {SHELL}),
    ("import importlib\nimportlib.import_module('subprocess').run(['ls'])", {SHELL}),
    ("from importlib import import_module\nm = import_module('subprocess')\nm.call('ls')", {SHELL}),
    ("import sys\nsys.modules['os'].system('ls')", {SHELL}),
    ("os.__dict__['system']('ls')", {SHELL}),
    ("vars(os)['system']('ls')", {SHELL}),
    ("(p := __import__('posix')).system('ls')", {SHELL}),
    ("get_ipython().system('ls')", {SHELL}),
    ("ip = get_ipython()\nip.run_line_magic('sx', 'ls')", {SHELL}),
    ("get_ipython().run_cell_magic('bash', '', 'ls')", {SHELL}),
    ("import asyncio\nawait asyncio.create_subprocess_shell('ls')", {SHELL}),
    ("%timeit -n 3 -r 1 os.system('ls')", {SHELL}),
    ("%time !ls", {SHELL}),
    ("%timeit -n1 !ls", {SHELL}),
    ("df?\nos.system('ls')", {SHELL}),
    (",os.system ls -la", {SHELL}),
    (">>> import os\n>>> os.system('ls')", {SHELL}),
    ("    import os\n    !ls\n", {SHELL}),
    # deletes
    ("!rm -rf data", {SHELL, DELETES}),
    ("rm -rf data", {SHELL, DELETES}),
    ("%rm data.csv", {SHELL, DELETES}),
    ("%%bash\ncd data && rm *.csv", {SHELL, DELETES}),
    ("!find . -name '*.pyc' -delete", {SHELL, DELETES}),
    ("subprocess.run(['rm', '-rf', 'data'])", {SHELL, DELETES}),
    ("import shutil\nshutil.rmtree('data')", {DELETES}),
    ("import shutil\nshutil.move('a', 'b')", {DELETES}),
    ("from shutil import rmtree as gone\ngone('x')", {DELETES}),
    ("import os\nos.remove('x')", {DELETES}),
    ("import os\nfor f in files: os.unlink(f)", {DELETES}),
    ("os.rmdir('x'); os.removedirs('y')", {DELETES}),
    ("from pathlib import Path\nPath('x').unlink(missing_ok=True)", {DELETES}),
    ("for p in folder.glob('*'): p.unlink()", {DELETES}),
    ("folder.rmdir()", {DELETES}),
    ("list(map(Path.unlink, files))", {DELETES}),
    # installs
    ("%pip install pandas", {INSTALLS}),
    ("%conda install -y numpy", {INSTALLS}),
    ("pip install pandas", {INSTALLS}),
    ("!pip install pandas", {SHELL, INSTALLS}),
    ("!python -m pip install -q pandas", {SHELL, INSTALLS}),
    ("%pip list; rm x", {INSTALLS, DELETES}),
    ("!pip install \\\n  pandas\nx = 1", {SHELL, INSTALLS}),
    ("import sys, subprocess\nsubprocess.check_call([sys.executable, '-m', 'pip', 'install', 'x'])", {SHELL, INSTALLS}),
    ("import pip\npip.main(['install', 'x'])", {INSTALLS}),
    # network
    ("import requests\nrequests.get('https://x')", {NETWORK}),
    ("requests.get(url, params={'a': 1}).json()", {NETWORK}),
    ("import requests as r\nr.post(u)", {NETWORK}),
    ("s = requests.Session()", {NETWORK}),
    ("import httpx\nhttpx.Client()", {NETWORK}),
    ("import urllib.request\nurllib.request.urlopen(u)", {NETWORK}),
    ("from urllib.request import urlopen\nurlopen(u)", {NETWORK}),
    ("import aiohttp\nasync with aiohttp.ClientSession() as s: pass", {NETWORK}),
    ("import socket\nsocket.create_connection(('x', 1))", {NETWORK}),
    ("import ftplib; ftplib.FTP('x')", {NETWORK}),
    ("import smtplib; smtplib.SMTP('x')", {NETWORK}),
    ("import paramiko; paramiko.SSHClient()", {NETWORK}),
    ("import boto3; boto3.client('s3')", {NETWORK}),
    ("pd.read_csv('https://example.com/x.csv')", {NETWORK}),
    ("pd.read_parquet(path='s3://bucket/x.parquet')", {NETWORK}),
    ("pl.scan_csv(f'http://example.com/{name}.csv')", {NETWORK}),
    ("URL = 'ftp://example.com/'\ndf = pd.read_table(URL + 'x.tsv')", {NETWORK}),
    ("!curl -O https://example.com/x.csv", {SHELL, NETWORK}),
    ("!git clone https://example.com/x", {SHELL, NETWORK}),
    ("import seaborn as sns\nsns.load_dataset('penguins')", {NETWORK}),
    ("%load https://example.com/x.py", {UNSEEN, NETWORK}),
    # text as code, native code, the kernel's end
    ("eval(text)", {UNSEEN}),
    ("exec(open('x.py').read())", {UNSEEN}),
    ("exec(f'{name} = 1')", {UNSEEN}),
    ("run = exec", {UNSEEN}),
    ("__builtins__.eval(x)", {UNSEEN}),
    ("exec(\"import os; os.system('rm x')\")", {SHELL, DELETES}),
    ("%run other.py", {UNSEEN}),
    ("import runpy\nrunpy.run_path('x.py')", {UNSEEN}),
    ("import ctypes\nctypes.CDLL('libc.so.6')", {NATIVE}),
    ("exit()", {EXITS}),
    ("%%bash\nkill 1", {SHELL, EXITS}),
    ("import os\nos.remove('x')\nos._exit(1)", {DELETES, EXITS}),
]  # fmt: skip

ORDINARY = [
    "",
    "   \n",
    "df.drop(columns=['a'])",
    "items.remove(3)",
    "import os\nos.path.exists('x')",
    "import os\nos.listdir('.'), os.getcwd(), os.environ.get('HOME'), os.makedirs('x', exist_ok=True)",
    "note = 'rm -rf /'",
    '"""\n!rm -rf /\n%pip install x\n"""',
    "x = 5 % 3\ny = (x\n     % 2)",
    "print('!ls')  # !ls\n# subprocess.run",
    "import requests\nrequests.exceptions.ConnectionError",
    "requests = pd.read_csv('requests.csv')\nrequests.head()\nrequests.get('status')",
    "requests.head()",
    "requests.groupby('status').size()",
    "for socket in sockets:\n    socket.close()",
    "def f(requests):\n    return requests.get('a')",
    "df.eval('a + b')\npd.eval('1 + 1')\nmodel.eval()",
    "eval('1 + 1')",
    "import ast\nast.literal_eval(text)",
    "import numpy as np, pandas as pd, matplotlib.pyplot as plt",
    "from pathlib import Path\nPath('x').write_text('y'); Path('x').exists()",
    "text.replace('a', 'b'); df.rename(columns={}); df.replace(1, 2)",
    "from urllib.parse import quote, urlparse\nquote('a b'); urlparse('https://x')",
    "pd.read_csv('data/x.csv')",
    "link = 'https://example.com'\nprint(link)",
    "HTML('<a href=\"https://example.com\">x</a>')",
    "getattr(df, name)",
    "getattr(os, 'getcwd')()",
    "import importlib\nimportlib.reload(module)",
    "import subprocess",
    "except_ = subprocess.CalledProcessError",
    "from subprocess import PIPE",
    "%matplotlib inline\ndf.head()",
    "%time df.groupby('a').mean()",
    "%%time\nx = sum(range(10))",
    "%%timeit\nx.sort()",
    "%time x != 3",
    "%load_ext autoreload\n%autoreload 2",
    "%pip list",
    "%pip show pandas",
    "df?",
    "?pd.read_csv",
    "%%html\n<script>os.system('x')</script>",
    "%%writefile x.txt\nsubprocess.run('ls')",
    "if (:\n  os.system('x')",
    "import sys; sys.exit(1)",
    "rm = 3",
    "ls.append(1)",
    "await asyncio.sleep(1)",
    "code.split(','); wget = 1",
    "df.pipe(clean).plot.scatter('a', 'b')",
    r"pattern = '\d+'",
    "run.get('https://x')",
    "with open('x.csv') as f: f.read()",
]


@pytest.mark.slow
@pytest.mark.parametrize(("code", "labels"), RISKY)
def test_what_code_might_do_is_seen(code: str, labels: set[str]) -> None:
    assert effects(code) == labels


@pytest.mark.slow
@pytest.mark.parametrize("code", ORDINARY)
def test_ordinary_code_raises_no_question(code: str) -> None:
    assert effects(code) == frozenset()


def test_code_that_could_answer_for_the_person_is_always_asked_about_and_said_so() -> None:
    code = "import threading\nthreading.Thread(target=lambda: get_ipython().run_line_magic('agent', 'allow')).start()"
    assert kind_of(code, Kind.RUN_CELL) is Kind.PROTECTED
    assert kind_of(f"{code}\n#{'x' * 200_000}", Kind.RUN_CELL) is Kind.PROTECTED
    assert any("answer nbagent's own questions" in hint for hint in hints(code, {}))
    for plain in ("button.on_click(f)", "user_agent = 'agent'", "run('agent')", "click._clicked"):
        assert kind_of(plain, Kind.RUN_CELL) is Kind.RUN_CELL


def test_names_that_other_cells_made_are_known_for_what_they_are() -> None:
    import os

    made = {"sp": subprocess, "go": os.system, "requests": pd.DataFrame({"head": [1]}), "np": np, "site": "https://x/"}
    assert effects("sp.run(['ls'])", made) == {SHELL}
    assert effects("go('ls')", made) == {SHELL}
    assert effects("pd.read_csv(site + 'x.csv')", made) == {NETWORK}
    assert effects("requests.get('head')", made) == frozenset()
    assert effects("np.zeros(3)", made) == frozenset()
    assert effects("requests.get('head')", {"requests": importlib.import_module("http.client")}) == frozenset({NETWORK})


def test_an_object_of_another_cell_is_not_touched() -> None:
    class Hostile:
        def __getattribute__(self, name):
            raise SystemExit(name)

    assert effects("thing.run(); thing()", {"thing": Hostile()}) == frozenset()


def test_effects_are_told_in_plain_words_the_worst_first() -> None:
    assert in_words({NETWORK, DELETES}) == " (deletes files, network)"
    assert in_words(()) == ""


@pytest.mark.slow
@pytest.mark.filterwarnings("error")
def test_looking_warns_of_nothing_and_is_quick_on_a_long_cell() -> None:
    code = "\n".join(f"x{n} = df['c{n}'].map(lambda v: v + {n})  # '\\d'" for n in range(1000)) + "\n'\\d'; !ls"
    at = time.process_time()
    effects(code)
    assert time.process_time() - at < 2


@pytest.mark.parametrize(
    "code", ["x" + ".y" * 3000, "(" * 3000, "-" * 5000 + "1", "%" * 5000, "!\\\n" * 500, "f" + "(1)" * 500]
)
def test_strange_code_is_looked_at_without_failing(code: str) -> None:
    effects(code)


@pytest.mark.slow
@given(st.lists(st.sampled_from(["!", "%", "x", "=", "\n", " ", "\\", "(", "os.system", "'", '"""', "%%", "?", "pip"])))
def test_any_text_is_looked_at_without_failing_and_ends_are_among_the_effects(pieces: list[str]) -> None:
    code = "".join(pieces)
    assert (EXITS in effects(code)) == exits_kernel(code)
