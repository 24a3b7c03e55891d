"""Which capture a cluster is the clone of: a ConfigMap in it, which only `kumulus clone` creates.

It has the digests of the capture's files. So it says where a capture lies as little as the capture does, a capture may
be moved or sent, and one that was made again in the same directory is another one.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING

from kumulus.extras.capture.writing import STACK, WORKLOAD
from kumulus.kube import objects

if TYPE_CHECKING:
    from kumulus.kube import Client

MARK = "/api/v1/namespaces/kube-system/configmaps/kumulus-clone"


class NotTheClone(Exception):
    """The cluster is no clone, or that of another capture."""


async def read(client: Client) -> Mapping[str, str] | None:
    """The digests of the files of which a cluster is the clone, by name; None for a cluster that is no clone."""
    found = await objects.find(client, MARK)
    return None if found is None else found.get("data") or {}


async def write(client: Client, capture: Path, *names: str) -> None:
    """Mark a cluster as the clone of a capture, for the files that it is like now; the mark keeps the others."""
    data = {name: _digest(capture / name) for name in names}
    metadata = {"name": MARK.rpartition("/")[2]}
    fresh = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata, "data": data}
    await objects.merge_or_create(client, MARK, {"data": data}, fresh)


def is_of(mark: Mapping[str, str], *captures: Path) -> bool:
    """Whether a mark is of a capture, or of a newer one, which the clone is being made like, file by file."""
    return all(
        mark.get(name) in [_digest(each / name) for each in captures if (each / name).exists()]
        for name in (STACK, WORKLOAD)
    )


async def require(client: Client, *captures: Path) -> None:
    """Refuse a cluster that is not the clone of one of these captures, see `is_of`; with none, of any capture.

    Raises:
        NotTheClone: it is not.
    """
    found = await read(client)
    if found is None:
        raise NotTheClone("the cluster is no clone of a capture")
    if captures and not is_of(found, *captures):
        raise NotTheClone(f"the cluster is the clone of another capture than {captures[0]}, or of an earlier one there")


def _digest(file: Path) -> str:
    with file.open("rb") as opened:
        return hashlib.file_digest(opened, "sha256").hexdigest()
