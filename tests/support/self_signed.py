"""A certificate for 127.0.0.1 that nobody signed, valid for a hundred years; its key protects nothing and is public."""

from __future__ import annotations

import ssl
from pathlib import Path

PEM = """\
-----BEGIN CERTIFICATE-----
MIIBlTCCATygAwIBAgIUZZ5GMZN9bzTmgFP+ZDp9k7KHhJ0wCgYIKoZIzj0EAwIw
FzEVMBMGA1UEAwwMbmJhZ2VudCB0ZXN0MCAXDTI2MTEzMDAwMDkxN1oYDzIxMjYx
MTA2MDAwOTE3WjAXMRUwEwYDVQQDDAxuYmFnZW50IHRlc3QwWTATBgcqhkjOPQIB
BggqhkjOPQMBBwNCAAT9o8AxO9CGRk+wIRnysyNqIH6t+FYGn0y8iP8ovgJlXQeI
Iu1X+/hhHlPqird4L0AM5CInh+/GiLtg7u+LNJqko2QwYjAdBgNVHQ4EFgQUBwVe
G1qPlw5+lJv2vNl1Wsthp+QwHwYDVR0jBBgwFoAUBwVeG1qPlw5+lJv2vNl1Wsth
p+QwDwYDVR0TAQH/BAUwAwEB/zAPBgNVHREECDAGhwR/AAABMAoGCCqGSM49BAMC
A0cAMEQCIHaa8Ew+N0tPNI8XO4HxU87CMSY44iQlC2DjKEm+nF4lAiAILnk4s2+U
9Xsb5r21YCoEenF8PbNvRHQxBkhPhwFpUQ==
-----END CERTIFICATE-----
-----BEGIN PRIVATE KEY-----
MIGHAgEAMBMGByqGSM49AgEGCCqGSM49AwEHBG0wawIBAQQgTcDhywyxKl9gxvWH
r4U6mScYTFSoEWMfI63u2tadSkyhRANCAAT9o8AxO9CGRk+wIRnysyNqIH6t+FYG
n0y8iP8ovgJlXQeIIu1X+/hhHlPqird4L0AM5CInh+/GiLtg7u+LNJqk
-----END PRIVATE KEY-----
"""


def self_signed_context(folder: Path) -> ssl.SSLContext:
    """A server's TLS context with the certificate; `folder` is for the file that Python wants it in."""
    path = folder / "self_signed.pem"
    path.write_text(PEM)
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(path)
    return context
