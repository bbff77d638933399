"""Which files hold keys and passwords, told by their names: they are not read by the way, and asked about else.

Must not know of disks. Read `holds_keys`.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

_FOLDERS = frozenset({".ssh", ".aws", ".gnupg", ".kube", ".docker"})
_NAMES = frozenset(
    {".env", ".npmrc", ".pypirc", ".netrc", "_netrc", ".git-credentials", ".pgpass", "authorized_keys", "credentials"}
)
_NAME = re.compile(
    r"\A(?:\.env[~.].*|\.env~|.*\.env|(?:secrets?|credentials|kaggle|tokens?)\.(?:json|toml|ya?ml|ini)|\.vault-token|"
    r"id_(?:rsa|dsa|ecdsa|ed25519).*|id_(?:rsa|dsa|ecdsa|ed25519)(?:_sk)?|.*\.(?:pem|key|p12|pfx|ppk|keystore|jks))\Z"
)


def holds_keys(parts: Sequence[str]) -> bool:
    """Whether a path of these parts (lower case, links followed) is that of a file with keys."""
    name = parts[-1] if parts else ""
    return not _FOLDERS.isdisjoint(parts) or name in _NAMES or bool(_NAME.match(name))
