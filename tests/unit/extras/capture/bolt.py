"""Files as bbolt writes them, small ones, for what reads them; and what etcd and an API server put into them."""

import hashlib
import struct
from collections.abc import Sequence
from typing import Any

from kumulus.kube.messages import enveloped

PAGE = 4096
_HEADER = struct.Struct("<QHHI")
Pair = tuple[bytes, bytes]


def file(revisions: Sequence[Pair], per_page: int = 3, *, summed: bool = True) -> bytes:
    """A snapshot with a bucket `key`.

    Args:
        revisions: its keys and values, in order.
        per_page: how many of them are in a page.
        summed: whether the sum is at the end that `etcdctl snapshot save` puts there.
    """
    pages: dict[int, bytes] = {2: _page(2, 0x10, 0, b"")}
    following = 4
    leaves: list[tuple[bytes, int]] = []
    for start in range(0, len(revisions), per_page):
        part = revisions[start : start + per_page]
        leaves.append((part[0][0], following))
        following = _put(pages, following, _leaf(following, [(key, value, 0) for key, value in part]))
    root = following
    following = _put(pages, following, _branch(root, leaves))
    bucket = struct.pack("<QQ", root, 0)
    # Another bucket beside it, small enough to be in its place.
    inline = struct.pack("<QQ", 0, 0) + _leaf(0, [(b"consistent_index", bytes(8), 0)])
    _put(pages, 3, _leaf(3, [(b"key", bucket, 1), (b"meta", inline, 1)]))
    body = b"".join([_meta(0, 3, following, 1), _meta(1, 3, following, 2), *(pages[at] for at in sorted(pages))])
    return body + (hashlib.sha256(body).digest() if summed else b"")


def revision(number: int, *, gone: bool = False) -> bytes:
    """The key of a revision."""
    return struct.pack(">Q", number) + b"_" + bytes(8) + (b"t" if gone else b"")


def kept(key: str, value: bytes = b"") -> bytes:
    """What etcd has of a key: an mvccpb.KeyValue."""
    return _field(1, key.encode()) + b"\x10\x05\x18\x05" + (_field(5, value) if value else b"")


def stored(kind: str, api_version: str, message: Any) -> bytes:
    """What an API server stores of an object."""
    return enveloped(api_version, kind, message.SerializeToString())


def history(values: Sequence[tuple[str, bytes | None]]) -> list[Pair]:
    """Revisions, one after the other: a key and its value, or None where it is deleted."""
    return [
        (revision(number, gone=value is None), kept(key, value or b"")) for number, (key, value) in enumerate(values, 2)
    ]


def _put(pages: dict[int, bytes], number: int, page: bytes) -> int:
    """Keep a page, with what follows it; says where the next one begins."""
    size = -(-len(page) // PAGE)
    head = bytearray(page.ljust(size * PAGE, b"\0"))
    struct.pack_into("<I", head, 12, size - 1)
    pages[number] = bytes(head)
    return number + size


def _page(number: int, flags: int, count: int, body: bytes) -> bytes:
    return (_HEADER.pack(number, flags, count, 0) + body).ljust(PAGE, b"\0")


def _leaf(number: int, entries: Sequence[tuple[bytes, bytes, int]]) -> bytes:
    elements, data, at = b"", b"", len(entries) * 16
    for index, (key, value, flags) in enumerate(entries):
        elements += struct.pack("<IIII", flags, at - index * 16 + len(data), len(key), len(value))
        data += key + value
    return _HEADER.pack(number, 2, len(entries), 0) + elements + data


def _branch(number: int, children: Sequence[tuple[bytes, int]]) -> bytes:
    elements, data, at = b"", b"", len(children) * 16
    for index, (key, child) in enumerate(children):
        elements += struct.pack("<IIQ", at - index * 16 + len(data), len(key), child)
        data += key
    return _HEADER.pack(number, 1, len(children), 0) + elements + data


def _meta(number: int, root: int, end: int, order: int) -> bytes:
    raw = struct.pack("<IIIIQQQQQ", 0xED0CDAED, 2, PAGE, 0, root, 0, 2, end, order)
    found = 0xCBF29CE484222325
    for byte in raw:
        found = ((found ^ byte) * 0x100000001B3) % 2**64
    return _page(number, 4, 0, raw + struct.pack("<Q", found))


def _field(number: int, value: bytes) -> bytes:
    size, rest = b"", len(value)
    while rest > 0x7F:
        size += bytes((rest & 0x7F | 0x80,))
        rest >>= 7
    return bytes((number << 3 | 2,)) + size + bytes((rest,)) + value
