"""A snapshot of a running etcd, as `etcdctl snapshot save` gets it: by its own protocol, with the sum at its end."""

from __future__ import annotations

from pathlib import Path

import grpc

from kumulus.kube.message_tables import classes_of
from kumulus.runtimes.kwok.etcd import ETCD
from kumulus.runtimes.kwok.layout import Layout

_WITHIN = 120.0


def save(layout: Layout, file: Path) -> None:
    """Write it to a file."""
    pki = layout.directory / "pki"
    authority, key, certificate = ((pki / name).read_bytes() for name in ("ca.crt", "admin.key", "admin.crt"))
    credentials = grpc.ssl_channel_credentials(authority, key, certificate)
    parts = classes_of({"SnapshotResponse": {"blob": (3, "bytes")}})["SnapshotResponse"]
    with grpc.secure_channel(f"127.0.0.1:{layout.ports()[ETCD]}", credentials) as channel:
        call = channel.unary_stream("/etcdserverpb.Maintenance/Snapshot", lambda raw: raw, parts.FromString)
        with file.open("wb") as to:
            for part in call(b"", timeout=_WITHIN):
                to.write(part.blob)
