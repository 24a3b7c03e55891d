"""The objects that a capture reads, from a file of `etcdctl snapshot save`, as of its last revision.

Only the file is read, without running etcd; docs/decisions/etcd-snapshots.md says why.

The values of other kinds, including secrets, are not decoded. The database of a stopped member (`member/snap/db`) is
such a file too, without the checksum at its end.

Sources: etcd's etcdutl/snapshot/v3_snapshot.go (the checksum), server/storage/mvcc (revision.go, kvstore.go: keys are
revisions, and a mark says that a key was deleted), api/mvccpb/kv.proto; k8s.io/kubernetes
pkg/kubeapiserver/default_storage_factory_builder.go (nodes are `minions`).
"""

import hashlib
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from kumulus.extras.capture.bolt import Bolt, DamagedBolt
from kumulus.extras.capture.dumps import FileRefused
from kumulus.extras.capture.encoded import Encrypted, Unreadable, as_json
from kumulus.extras.capture.kinds import KINDS
from kumulus.extras.schedulers.kinds import ObjectKind

MOST_BYTES = 16 * 1024**3
"""Twice the largest quota that etcd recommends."""
MOST_KEYS = 1_000_000
_MOST_OBJECT = 8 * 1024 * 1024
_MOST_KEY = 4096
"""The longest key, in bytes: Kubernetes limits each of its four parts to 253, besides the API server's prefix."""
_SUM = 32
_SECTOR = 512
_CHUNK = 1 << 20
_EVERY = 20_000
_KEYS = b"key"
_REVISION, _TOMBSTONE = 17, 18
_KEY_TAG, _VALUE_TAG = 0x0A, 0x2A
Progress = Callable[[str, int], None]
"""Takes what is being done, and how much of it is done: bytes checked, revisions read."""


def objects(file: Path, progress: Progress) -> Iterator[dict[str, Any]]:
    """The objects of the kinds that a capture reads, each as a JSON value."""
    try:
        # Checked before opening: a mark is kept for each page, and a sparse file may have any number of pages.
        if (size := file.stat().st_size) > MOST_BYTES:
            raise FileRefused(f"{file} has {size:,} bytes; at most {MOST_BYTES:,} are read")
        with Bolt(file) as bolt:
            _check(bolt, progress)
            root = _root(bolt)
            for kind, entry in _latest(bolt, root, progress):
                yield _object(file, kind, bolt.read(*entry))
    except DamagedBolt as error:
        raise FileRefused(f"{file} is no whole snapshot of etcd: {error}") from None


def _check(bolt: Bolt, progress: Progress) -> None:
    """Compare the checksum at the end of a saved snapshot."""
    if bolt.size % _SECTOR != _SUM:
        return
    found, end = hashlib.sha256(), bolt.size - _SUM
    for at in range(0, end, _CHUNK):
        found.update(bolt.read(at, min(_CHUNK, end - at)))
        progress("bytes checked", at)
    if found.digest() != bolt.read(end, _SUM):
        raise DamagedBolt("its checksum is of another content")


def _root(bolt: Bolt) -> bytes:
    """The prefix of an API server's keys (--etcd-prefix): /registry, or OpenShift's."""
    found: bytes | None = None
    for entry in bolt.bucket(_KEYS):
        key = _field(entry.value, _KEY_TAG)
        for ending in (b"/namespaces/default", b"/namespaces/kube-system"):
            if key.endswith(ending) and (found is None or len(key) - len(ending) < len(found)):
                found = key.removesuffix(ending)
    if found is None:
        raise DamagedBolt("no API server has kept its objects in it")
    return found


def _latest(bolt: Bolt, root: bytes, progress: Progress) -> Iterator[tuple[ObjectKind, tuple[int, int]]]:
    """The kind of each object that exists at the last revision, and the offset and size of its bytes."""
    kinds = {_path(kind): kind for kind in KINDS}
    there: dict[bytes, tuple[ObjectKind, tuple[int, int]]] = {}
    before = b""
    for count, entry in enumerate(bolt.bucket(_KEYS)):
        if count % _EVERY == 0:
            progress("revisions", count)
        if len(entry.key) not in (_REVISION, _TOMBSTONE):
            raise DamagedBolt("a key is no revision")
        if entry.key <= before:
            raise DamagedBolt("its revisions are not in order")
        before = entry.key
        key = _field(entry.value, _KEY_TAG)
        if (kind := _kind(key, root, kinds)) is None:
            continue
        if len(key) > _MOST_KEY:
            raise DamagedBolt(f"a key of {len(key):,} bytes")
        if len(entry.key) == _TOMBSTONE:
            there.pop(key, None)
            continue
        start, size = _span(entry.value, _VALUE_TAG)
        if size > _MOST_OBJECT:
            raise DamagedBolt(f"an object of {size:,} bytes")
        there[key] = kind, (entry.at + start, size)
        if len(there) > MOST_KEYS:
            raise FileRefused(f"a snapshot of more than {MOST_KEYS:,} objects")
    yield from there.values()


def _path(kind: ObjectKind) -> bytes:
    """The path under which an API server stores a kind: custom resources with their group, others without."""
    if kind.name == "Node":
        return b"minions"
    custom = "." in kind.group and not kind.group.endswith(".k8s.io")
    return (f"{kind.group}/{kind.plural}" if custom else kind.plural).encode()


def _kind(key: bytes, root: bytes, kinds: dict[bytes, ObjectKind]) -> ObjectKind | None:
    if not key.startswith(root + b"/"):
        return None
    first, _, rest = key[len(root) + 1 :].partition(b"/")
    if (found := kinds.get(first)) is not None:
        return found
    return kinds.get(first + b"/" + rest.partition(b"/")[0])


def _field(raw: bytes, wanted: int) -> bytes:
    start, size = _span(raw, wanted)
    return raw[start : start + size]


def _span(raw: bytes, wanted: int) -> tuple[int, int]:
    """The offset and length of a field of mvccpb.KeyValue; a missing field is empty."""
    at = 0
    while at < len(raw):
        tag = raw[at]
        number, at = _varint(raw, at + 1)
        if tag & 7 == 2:
            if at + number > len(raw):
                raise DamagedBolt("an entry is cut off")
            if tag == wanted:
                return at, number
            at += number
        elif tag & 7:
            raise DamagedBolt("an entry is none of etcd's")
    return 0, 0


def _varint(raw: bytes, at: int) -> tuple[int, int]:
    found = shift = 0
    while at < len(raw) and shift < 64:
        byte = raw[at]
        at += 1
        found |= (byte & 0x7F) << shift
        if byte < 0x80:
            return found, at
        shift += 7
    raise DamagedBolt("an entry is cut off")


def _object(file: Path, kind: ObjectKind, raw: bytes) -> dict[str, Any]:
    try:
        return as_json(kind.name, raw)
    except Encrypted as error:
        raise FileRefused(
            f"{file}: its {kind.plural} are encrypted at rest ({error}), and only the API server has the key\n"
            "  Capture the cluster itself (--context), or a dump of it (kubectl get … -o yaml)"
        ) from None
    except Unreadable:
        raise DamagedBolt(f"what is stored as one of its {kind.plural} is none") from None
