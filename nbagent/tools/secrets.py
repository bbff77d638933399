"""Keeps keys and passwords out of what a model is sent: by the name that a value has, and by the shape of known tokens.

A net with holes: a secret of unknown shape under a harmless name goes through. Names are read word by word, so that
`tokens` and `author` stay readable. This module knows nothing of tools or kernels. Read `hidden` first, then `mask`.
"""

from __future__ import annotations

import itertools
import os
import re
from typing import Any

HIDDEN = "<hidden: looks like a secret>"
_MASK = "<hidden secret>"
WINDOW = 4000  # characters around a cut in which a token is still known for what it is
AHEAD = 300  # characters after a cut, for tokens that begin before it

_WORD = re.compile(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+")
_WORDS = frozenset(
    {
        *(
            "secret",
            "secrets",
            "password",
            "passwords",
            "passwd",
            "passphrase",
            "passphrases",
            "token",
            "apikey",
            "apikeys",
        ),
        *("credential", "credentials", "cred", "creds", "auth", "authorization", "authentication", "bearer", "jwt"),
    }
)
_PAIRS = frozenset(
    {
        *(
            (first, "key")
            for first in ("api", "private", "access", "account", "signing", "encryption", "ssh", "master")
        ),
        *((first, "keys") for first in ("api", "private", "access", "account", "signing", "encryption", "ssh")),
        *((first, "tokens") for first in ("api", "access", "refresh", "session", "bearer")),
        *((first, last) for first in ("db", "user", "my", "smtp", "pg", "mysql") for last in ("pass", "pwd")),
        *(("connection", "string"), ("conn", "str")),
    }
)
# last words that make of it something about a secret
_ABOUT = frozenset(
    {
        *("count", "counts", "type", "id", "ids", "len", "length", "size", "limit", "index", "expires", "expiry"),
        *("path", "file", "dir", "folder", "env", "header", "field", "sock", "method", "mode", "provider", "scheme"),
        *("url", "uri", "endpoint", "host", "name", "names", "timeout", "ttl"),
    }
)

_SHORTEST = 10  # characters of the shortest token
_PARTS = ("pass", "token", "key", "secret", "cred", "auth", "bearer", "jwt", "pwd", "conn")
_NUMBERS = frozenset({int, float, complex})

_KEY = "(?:[A-Z0-9]{1,20} ){0,4}PRIVATE KEY(?: BLOCK)?"
SHAPES: tuple[tuple[str, re.Pattern[str]], ...] = tuple(
    (mark, re.compile(shape))
    for mark, shape in (
        ("sk-", r"sk-(?<![A-Za-z0-9]sk-)(?:ant-[\w-]{6,}|(?:proj|svcacct|admin|or|lf)-[\w-]{16,}|[A-Za-z0-9]{20,})"),
        ("gh", r"gh[pousr]_[A-Za-z0-9]{16,}"),
        ("github_pat_", r"github_pat_\w{16,}"),
        ("glpat-", r"glpat-[\w-]{16,}"),
        ("hf_", r"hf_(?<![A-Za-z0-9]hf_)[A-Za-z0-9]{30,}"),
        ("AKIA", r"AKIA(?<![A-Za-z0-9]AKIA)[0-9A-Z]{16}(?![0-9A-Za-z])"),
        ("ASIA", r"ASIA(?<![A-Za-z0-9]ASIA)[0-9A-Z]{16}(?![0-9A-Za-z])"),
        ("AIza", r"AIza(?<![A-Za-z0-9]AIza)[\w-]{35}"),
        ("xox", r"xox[abeoprs]-[A-Za-z0-9-]{10,}"),
        ("xapp-", r"xapp-[A-Za-z0-9-]{10,}"),
        ("hooks.slack.com", r"hooks\.slack\.com/services/[A-Za-z0-9/]{20,}"),
        *((f"k_{where}_", rf"[sr]k_{where}_[A-Za-z0-9]{{16,}}") for where in ("live", "test")),
        ("whsec_", r"whsec_[A-Za-z0-9]{16,}"),
        ("SG.", r"SG\.(?<![A-Za-z0-9]SG\.)[\w-]{16,}\.[\w-]{16,}"),
        ("npm_", r"npm_(?<![A-Za-z0-9]npm_)[A-Za-z0-9]{30,}"),
        ("pypi-", r"pypi-AgEI[\w-]{16,}"),
        ("gsk_", r"gsk_(?<![A-Za-z0-9]gsk_)[A-Za-z0-9]{30,}"),
        *(
            (mark, rf"{mark}(?<![A-Za-z0-9]{mark})[\w-]{{16,}}")
            for mark in ("xai-", "pplx-", "nvapi-", "GOCSPX-", "lin_api_", "ntn_")
        ),
        ("r8_", r"r8_(?<![A-Za-z0-9]r8_)[A-Za-z0-9]{30,}"),
        ("dapi", r"dapi(?<![A-Za-z0-9]dapi)[0-9a-f]{32}"),
        ("dop_v1_", r"dop_v1_[0-9a-f]{32,}"),
        ("ya29.", r"ya29\.[\w-]{20,}"),
        (":AA", r"(?<!\d)\d{8,10}:AA[\w-]{33}(?![\w-])"),
        ("eyJ", r"eyJ(?<![A-Za-z0-9]eyJ)[\w-]{5,}\.[\w-]{5,}(?:\.[\w-]*)?"),
    )
)
"""Shapes of known keys: a text that every match contains, which is quick to look for, and the shape."""
_SHAPES = (
    *SHAPES,
    ("PRIVATE KEY", re.compile(rf"-----BEGIN {_KEY}-----[\s\S]*?(?:-----END {_KEY}-----|\Z)")),
)
_KEY_END = re.compile(rf"\A[^-]*-----END {_KEY}-----")
_IN_URL = re.compile(r"(?<=://)([^\s/:@\"']{0,200}:)[^\s/@\"']{1,500}(?=@)")


def secret_name(name: str) -> bool:
    """Whether a variable, key, column or attribute of this name most likely holds a secret."""
    lower = name.lower()
    if not any(part in lower for part in _PARTS):  # nearly all names end here
        return False
    words = [word.lower() for word in _WORD.findall(name[:200])]
    if not words or words[-1] in _ABOUT:
        return False
    return (
        words == ["pass"] or not _WORDS.isdisjoint(words) or any(pair in _PAIRS for pair in itertools.pairwise(words))
    )


def looks_secret(text: str) -> bool:
    """Whether a text contains a token of a known shape."""
    return any(mark in text and shape.search(text) for mark, shape in _SHAPES)


_KEYS = ("ANTHROPIC_API_KEY", "ANTHROPIC_AUTH_TOKEN")


def mask(text: str) -> str:
    """Return `text` with every token of a known shape, private key and password in a URL replaced."""
    if len(text) < _SHORTEST:
        return text
    for name in _KEYS:
        if len(key := os.environ.get(name, "").strip()) >= _SHORTEST and key in text:
            text = text.replace(key, _MASK)
    for mark, shape in _SHAPES:
        if mark in text:
            text = shape.sub(_MASK, text)
    if "PRIVATE KEY" in text:
        text = _KEY_END.sub(_MASK, text)
    return _IN_URL.sub(rf"\1{_MASK}", text) if "://" in text and "@" in text else text


def hidden(name: object, value: object) -> str | None:
    """Return what is shown in place of a value under a secret's name; None where the value may be shown.

    Texts, bytes and numbers are hidden, with the length of texts; so are plain collections as a whole, which hold them.
    """
    if type(name) is bytes:
        name = name.decode("utf-8", "replace")
    if type(name) is not str or not secret_name(name):
        return None
    cls = type(value)
    for base in (str, bytes, bytearray):
        if issubclass(cls, base):
            size: int = _size(base, value)
            return said(size) if size else None
    if cls in _NUMBERS or (type.__getattribute__(cls, "__module__") == "numpy" and _is_number(cls)):
        return HIDDEN
    for base in (list, tuple, dict, set, frozenset):
        if issubclass(cls, base):
            size = _size(base, value)
            return f"{base.__name__} of {size:,}: {HIDDEN}" if size else None
    return None


def _size(base: Any, value: object) -> int:
    return base.__len__(value)  # a subclass may count otherwise, or run code


def _is_number(cls: type) -> bool:
    return any(base.__name__ == "number" for base in type.__getattribute__(cls, "__mro__"))


def said(size: int) -> str:
    """Return the words for a hidden text of `size` characters."""
    return f"{HIDDEN} ({size:,} characters)"
