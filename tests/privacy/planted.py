"""Secrets as they look in real life, to be planted into texts: each with the texts that it may stand in."""

from __future__ import annotations

import hashlib
import string

from hypothesis import strategies as st

from nbagent.tools.vault import Vault

_WORD = string.ascii_letters + string.digits


def vault() -> Vault:
    """A vault with a key of its own."""
    return Vault(lambda data: hashlib.sha256(b"test" + data).hexdigest())


def of(alphabet: str, low: int, high: int | None = None) -> st.SearchStrategy[str]:
    """Random characters, at least one digit and one letter among them: what keys are made of."""
    return st.text(alphabet, min_size=low, max_size=high or low).filter(
        lambda t: any(c.isdigit() for c in t) and any(c.isalpha() for c in t) and len(set(t)) > 3
    )


_hex = of("0123456789abcdef", 32)
_PASSWORD = of(_WORD + "!#-_.", 10, 20).filter(lambda t: t[0] not in "-." and t[-1] not in "-.")

KEYS: st.SearchStrategy[str] = st.one_of(
    of(_WORD + "-_", 30, 60).map("sk-ant-api03-".__add__),
    of(_WORD, 40).map("sk-".__add__),
    of(_WORD, 36).map("ghp_".__add__),
    of(_WORD, 40).map("github_pat_".__add__),
    of(_WORD + "-", 24).map("xoxb-".__add__),
    of("0123456789ABCDEF", 16).map("AKIA".__add__),
    of(_WORD + "-_", 35).map("AIza".__add__),
    of(_WORD, 34).map("hf_".__add__),
    of(_WORD, 24).map("sk_live_".__add__),
    st.tuples(of(_WORD, 20), of(_WORD, 30), of(_WORD, 30)).map(lambda t: f"eyJ{t[0]}.eyJ{t[1]}.{t[2]}"),
)
"""Keys that are known by their shape alone."""

AROUND = ("{}", "key: {}\n", 'x = "{}"', "curl -H 'x: {}' http://a.b", "({})", "a\n{}\nb", '{{"k": "{}"}}', "[{}] ok")
"""Texts in which a key may stand."""

BY_NAME = (
    'password = "{}"', "DB_PASSWORD={}", "export API_KEY={}\n", '{{"client_secret": "{}"}}', "{{'token': '{}'}}",
    "Authorization: Bearer {}", "postgres://me:{}@db.local/x", "  secret_key: {}", "run --password {} now",
    'os.environ["AUTH_TOKEN"] = "{}"', "https://a.b/c?access_token={}&x=1", "Server=x;PWD={};", 'api_key: str = "{}"',
)  # fmt: skip
"""Texts that tell by a name or a place that what stands in them is a secret."""


def plain(size: int) -> st.SearchStrategy[str]:
    """Any text but what stands for a secret itself (Hypothesis takes such texts from our source)."""
    letters = st.characters(blacklist_categories=("Cs",), blacklist_characters="⟦⟧")
    return st.text(letters, max_size=size).filter(lambda text: "<hidden" not in text)


@st.composite
def planted(draw: st.DrawFn) -> tuple[str, str]:
    """A text and a secret in it."""
    around = plain(80)
    if draw(st.booleans()):
        secret, frame = draw(KEYS), draw(st.sampled_from(AROUND))
    else:
        secret, frame = draw(_PASSWORD), draw(st.sampled_from(BY_NAME))
    before, after = draw(around), draw(around)
    return f"{before}\n{frame.format(secret)}\n{after}", secret
