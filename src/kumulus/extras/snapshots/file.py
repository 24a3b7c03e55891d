"""The file of a snapshot: a line that says what it is, then keys and values, compressed; with their checksum.

A file exists only when it is complete: it is written under another name and renamed in one step.
"""

import errno
import hashlib
import json
import re
import shutil
import struct
import tempfile
import zlib
from collections.abc import Iterable, Iterator
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import IO

from kumulus.host import files

VERSION = 1
SUFFIX = ".snapshot"
_MAGIC = "kumulus-snapshot"
_LENGTHS = struct.Struct(">II")
# Their keys in etcd, and their paths in the API.
_NODE, _POD = (
    re.compile(rb"/registry/minions/|/api/v1/nodes/"),
    re.compile(rb"/registry/pods/|/api/v1/namespaces/[^/]+/pods/"),
)
_LISTS = ("namespaces", "forbidden")
_LEVEL = 1
_CHUNK = 1 << 20
# It names namespaces and kinds, each of at most 253 bytes.
_LONGEST_LINE = 1 << 20


class DamagedSnapshot(Exception):
    """A file that is not a snapshot, is of another version, or is not as it was written."""


@dataclass(frozen=True)
class SnapshotSummary:
    """What a snapshot contains."""

    stack: str
    cluster: str
    """The identity of its cluster: the UID of the namespace kube-system."""
    taken: str
    """When, RFC 3339 in UTC."""
    nodes: int = 0
    pods: int = 0
    keys: int = 0
    """How many objects in all."""
    sha256: str = ""
    """Of what follows the line."""
    form: str = "etcd"
    """`etcd`: keys and values as etcd has them; `objects`: paths and objects of the API."""
    namespaces: tuple[str, ...] = ()
    """The selected ones, in a snapshot of objects; empty for all of the users' namespaces."""
    forbidden: tuple[str, ...] = ()
    """Kinds that are not in it, because the right to list them was missing."""


def write(file: Path, about: SnapshotSummary, entries: Iterable[tuple[bytes, bytes]]) -> SnapshotSummary:
    """Write a snapshot, readable by its owner only, as it contains secrets of the cluster.

    Args:
        about: what it contains; the counts and the checksum are filled in.

    Raises:
        OSError: it cannot be written, or its first line would be too long to be read; a former file stays.
    """
    file.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
    # Without a name: it leaves nothing, even if this process is killed.
    with tempfile.TemporaryFile(dir=file.parent) as body:
        found = _body(body, about, entries)
        line = json.dumps({"kind": _MAGIC, "version": VERSION, **asdict(found)}).encode() + b"\n"
        if len(line) > _LONGEST_LINE:
            raise OSError(errno.EFBIG, "the names of its namespaces are longer than 1 MiB: save fewer", str(file))
        body.seek(0)
        with files.replacing(file, 0o600) as to:
            to.write(line)
            shutil.copyfileobj(body, to, _CHUNK)
    return found


def about(file: Path) -> SnapshotSummary:
    """What a snapshot contains, by its first line."""
    with file.open("rb") as opened:
        return _first_line(file, opened)


def read(file: Path) -> tuple[SnapshotSummary, Iterator[tuple[bytes, bytes]]]:
    """Read a snapshot, after checking all of it against its checksum."""
    with file.open("rb") as opened:
        found = _first_line(file, opened)
        digest = hashlib.sha256()
        while chunk := opened.read(_CHUNK):
            digest.update(chunk)
    if digest.hexdigest() != found.sha256:
        raise DamagedSnapshot(f"{file} is not as it was written: its sum is another")
    return found, _entries(file)


def _first_line(file: Path, opened: IO[bytes]) -> SnapshotSummary:
    line = opened.readline(_LONGEST_LINE)
    try:
        fields = json.loads(line)
        kind, version = fields.pop("kind"), fields.pop("version")
        if kind != _MAGIC:
            raise ValueError
        if version != VERSION:
            raise DamagedSnapshot(f"{file} is of version {version}, this Kumulus reads {VERSION}")
        return SnapshotSummary(**{**fields, **{key: tuple(fields.get(key) or ()) for key in _LISTS}})
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError):
        raise DamagedSnapshot(f"{file} is no snapshot") from None


def _body(to: IO[bytes], about: SnapshotSummary, entries: Iterable[tuple[bytes, bytes]]) -> SnapshotSummary:
    digest, packer = hashlib.sha256(), zlib.compressobj(_LEVEL)
    nodes = pods = keys = 0
    for key, value in entries:
        keys += 1
        nodes += _NODE.match(key) is not None
        pods += _POD.match(key) is not None
        packed = packer.compress(_LENGTHS.pack(len(key), len(value)) + key + value)
        digest.update(packed)
        to.write(packed)
    packed = packer.flush()
    digest.update(packed)
    to.write(packed)
    return replace(about, nodes=nodes, pods=pods, keys=keys, sha256=digest.hexdigest())


def _entries(file: Path) -> Iterator[tuple[bytes, bytes]]:
    unpacker, unpacked = zlib.decompressobj(), bytearray()
    with file.open("rb") as opened:
        opened.readline(_LONGEST_LINE)
        while chunk := opened.read(_CHUNK):
            unpacked += unpacker.decompress(chunk)
            at = 0
            while len(unpacked) - at >= _LENGTHS.size:
                key, value = _LENGTHS.unpack_from(unpacked, at)
                start = at + _LENGTHS.size
                if len(unpacked) < start + key + value:
                    break
                yield bytes(unpacked[start : start + key]), bytes(unpacked[start + key : start + key + value])
                at = start + key + value
            del unpacked[:at]
