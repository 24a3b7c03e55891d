"""The token by which whoever has the kubeconfig speaks to the API server.

kwokctl gives it a client certificate, which the server verifies anew with each request and asks for in each handshake:
a tenth of what it spends on a node. A token it looks up (docs/performance.md). The components keep their certificate.
"""

from __future__ import annotations

import os
import secrets
from pathlib import Path

import yaml

from provider.runtimes.kwok.layout import Layout, dump

_USER = "kubernetes-admin"
_GROUP = "system:masters"


def prepare(layout: Layout) -> None:
    """Write the file from which the API server reads the token at its start."""
    _write(layout.tokens_file, f'{secrets.token_urlsafe(32)},{_USER},{_USER},"{_GROUP}"\n')


def hand_out(layout: Layout) -> None:
    """Have the kubeconfig carry the token; a cluster that was made without one keeps its certificate."""
    if not layout.tokens_file.exists():
        return
    user = {"token": layout.tokens_file.read_text().partition(",")[0]}
    document = yaml.safe_load(layout.kubeconfig.read_text())
    if any(each["user"] != user for each in document["users"]):
        document["users"] = [{**each, "user": user} for each in document["users"]]
        _write(layout.kubeconfig, dump([document]))


def _write(file: Path, text: str) -> None:
    """Write a file for its owner only, whole or not at all."""
    temporary = file.with_suffix(".tmp")
    temporary.unlink(missing_ok=True)
    with os.fdopen(os.open(temporary, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o600), "w") as stream:
        stream.write(text)
    temporary.replace(file)
