"""Keys and passwords are not sent to a model: known by their names, word by word, or by their shapes."""

from __future__ import annotations

import time
from types import SimpleNamespace

import numpy as np
import pandas as pd
import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

from nbagent.core.tools import Call, tool
from nbagent.tools.describe import brief, brief_of
from nbagent.tools.details import details
from nbagent.tools.results import ResultStore, capped
from nbagent.tools.secrets import HIDDEN, hidden, looks_secret, mask, secret_name
from nbagent.tools.variables import describe_all, tools

SECRET_NAMES = [
    "api_key", "API_KEY", "apiKey", "OPENAI_API_KEY", "apikey", "token", "github_token", "accessToken", "access_tokens",
    "secret", "client_secret", "password", "passwords", "db_passwd", "passphrase", "credentials", "aws_credential",
    "auth", "auth_header_value", "Authorization", "bearer", "private_key", "aws_access_key_id_secret", "pass", "db_pass",
    "token2", "_token",
]  # fmt: skip
OPEN_NAMES = [
    "", "tokens", "author", "authors", "tokenizer", "n_tokens", "token_count", "token_ids", "max_token_length", "key",
    "keys", "primary_key", "passengers", "passed", "compass", "secretary", "keyboard", "monkey", "api", "boarding_pass",
    "password_file", "credentials_path", "authentic", "passwordless_",
]  # fmt: skip

HEX = st.text(alphabet="0123456789abcdef", min_size=24, max_size=48)
JWT = "eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxMjM0NTY3ODkwIn0.dozjgNryP4J3jVmNHl0w5N_XgL0n3I9PlFUP0THsR8U"
PEM = f"-----BEGIN RSA {'PRIVATE'} KEY-----\n" + "MIIEpAIBAAKCAQEA\n" * 300 + f"-----END RSA {'PRIVATE'} KEY-----"
TOKENS = [
    "sk-ant-api03-0123456789abcdef", "sk-0123456789abcdef01234567", "sk-proj-0123456789-abcdef_012345",
    "ghp_0123456789abcdef0123456789abcdef0123", "gho_0123456789abcdef0123", "github_pat_0123456789abcdef_0123",
    "AKIA0123456789ABCDEF", "xoxb-0123456789-abcdef", "xoxp-0123456789-abcdef", "xoxa-0123456789-abcdef", JWT, PEM,
]  # fmt: skip
HARMLESS = [
    "task-0123456789abcdef0123456789", "sk-estimator-doc-link sk-toggleable__label-arrow", "scikit-learn", "ghp_short",
    "MAKIA0123456789ABCDEFG", "eyJust.a.word", "eyJ", "sk-container-id-1", "-----BEGIN PUBLIC KEY-----", "disk-" + "0" * 30,
    "https://example.com/a:b/@c",
]  # fmt: skip


@pytest.mark.slow
@pytest.mark.parametrize("name", SECRET_NAMES)
def test_names_of_secrets_are_known_word_by_word(name: str) -> None:
    assert secret_name(name)


@pytest.mark.slow
@pytest.mark.parametrize("name", OPEN_NAMES)
def test_other_names_are_not_taken_for_secrets(name: str) -> None:
    assert not secret_name(name)


@pytest.mark.parametrize("token", TOKENS)
def test_tokens_of_known_shapes_are_taken_out_and_the_text_around_them_stays(token: str) -> None:
    assert looks_secret(token)
    assert mask(f"before {token} after") == "before <hidden secret> after"


@pytest.mark.parametrize("text", HARMLESS)
def test_other_texts_stay_as_they_are(text: str) -> None:
    assert mask(text) == text


def test_of_an_address_only_the_password_is_taken_out() -> None:
    assert mask("postgresql://ana:hunter2@db:5432/x") == "postgresql://ana:<hidden secret>@db:5432/x"


@pytest.mark.parametrize(
    ("value", "shown"),
    [
        ("hunter2", f"{HIDDEN} (7 characters)"),
        (b"hunter2", f"{HIDDEN} (7 characters)"),
        (1234, HIDDEN),
        (np.int64(1234), HIDDEN),
        (["a", "b"], f"list of 2: {HIDDEN}"),
        ({"user": "x"}, f"dict of 1: {HIDDEN}"),
        (None, None),
        (True, None),
        ("", None),
        (len, None),
    ],
)
def test_what_is_shown_in_place_of_a_value_tells_its_size_only(value: object, shown: str | None) -> None:
    assert hidden("password", value) == shown
    assert hidden("passengers", value) is None


class _Client:
    def __init__(self, **held):
        self.__dict__.update(held)


def _places(value: str) -> dict[str, object]:
    """The same secret everywhere that a variable may hold it under a name of its own."""

    def connect(user="ana", password=value): ...

    return {
        "api_key": value,
        "passwords": [value, value],
        "credentials": pd.Series([value]),
        "secret": np.array([value]),
        "config": {"user": "ana", "token": value, "nested": {"password": value}, b"SECRET": value.encode()},
        "client": _Client(api_key=value, user="ana"),
        "space": SimpleNamespace(auth=value),
        "connect": connect,
        "frame": pd.DataFrame({"user": ["ana"], "password": [value]}),
        "polar": pl.DataFrame({"user": ["ana"], "password": [value]}),
        "series": pd.Series([value], name="password"),
        "indexed": pd.DataFrame({"a": [1]}, index=pd.Index([value], name="token")),
    }


@pytest.mark.slow
@given(HEX)
def test_a_value_under_a_secrets_name_never_appears(value: str) -> None:
    names = _places(value)
    said = [describe_all(names), *(details(held, name) for name, held in names.items())]
    said += [details({"deep": [{"api_key": value}]}), brief([{"token": value}]), brief_of("pass", value)]
    assert value[:12] not in "\n".join(said)
    assert "'ana'" in details(names["config"], "config")


@pytest.mark.slow
@given(st.sampled_from(TOKENS), st.text(alphabet="ab \n", max_size=80), st.text(alphabet=" \n", min_size=1, max_size=9))
def test_a_token_of_a_known_shape_never_appears_under_any_name(token: str, before: str, after: str) -> None:
    text = f"{before} {token}{after}"
    frame = pd.DataFrame({"note": [text]})
    for value in (text, [text], {"x": text}, {text: 1}, frame, _Client(x=text), text.encode(), np.array([text])):
        said = brief(value) + details(value, "x")
        assert token[:14] not in said
        assert token[-10:] not in said


@pytest.mark.slow
@pytest.mark.parametrize("at", [0, 50, 1480, 1499, 4600, 9000, 9581, 9600, 9700])
@pytest.mark.parametrize("token", TOKENS)
def test_a_token_at_a_cut_of_a_long_text_never_appears(token: str, at: int) -> None:
    text = " " * at + token + " " * max(0, 10_000 - at - len(token))
    said = details(text, "x") + brief(text)
    assert not any(token[start : start + 12] in said for start in range(0, len(token) - 12, 4))


async def test_the_tools_hide_names_and_columns() -> None:
    class Names:
        def namespace(self):
            return _places("hunter2hunter2")

    list_variables, inspect_variable, _ = tools(Names())
    call = Call("c1", lambda _: None, None)
    texts = [(await list_variables.run(call, {"pattern": "*", "limit": 200})).content[0]["text"]]
    for name in Names().namespace():
        texts.append((await inspect_variable.run(call, {"name": name, "column": None})).content[0]["text"])
    for name in ("frame", "polar"):
        column = (await inspect_variable.run(call, {"name": name, "column": "password"})).content[0]["text"]
        assert HIDDEN in column
        texts.append(column)
    assert "hunter2" not in "\n".join(texts)
    assert f"api_key: {HIDDEN} (14 characters)" in texts[0]


@pytest.mark.parametrize("long", [False, True])
async def test_every_capped_tool_and_what_is_kept_of_it_is_free_of_tokens(long: bool) -> None:
    @tool
    async def speak(_call: Call) -> str:
        """Say it."""
        return f"key={TOKENS[0]} " + ("x" * 20_000 + TOKENS[3] if long else "")

    store = ResultStore()
    result = await capped(speak, store).run(Call("c1", lambda _: None, None), {})
    text = result.content[0]["text"] + (store.read("r1", 0, 100_000) if long else "")
    assert "key=<hidden secret> " in text
    assert not looks_secret(text)


def test_two_thousand_variables_are_listed_in_little_time() -> None:
    values = {f"word_{n}_ofName": ["some text", n, {"user": "x" * 50}][n % 3] for n in range(2000)}
    best = min(_timed(lambda: describe_all(values, limit=5000)) for _ in range(5))
    assert best < 0.1  # 20 ms on an idle machine


@pytest.mark.slow
def test_masking_long_texts_takes_little_time() -> None:
    text = "task-sk- eyJ xox AKIA -----BEGIN http://a@b " * 50_000
    assert min(_timed(lambda: mask(text)) for _ in range(2)) < 2


def _timed(work) -> float:
    at = time.perf_counter()
    work()
    return time.perf_counter() - at


def test_the_persons_own_key_never_goes_to_the_model_whatever_its_shape(monkeypatch):
    monkeypatch.setenv("ANTHROPIC_API_KEY", "odd-but-mine-123")
    assert "odd-but-mine" not in mask("env: odd-but-mine-123 and more")
