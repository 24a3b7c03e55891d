"""Reads a bbolt file page by page: the entries of a bucket in the order of their keys. Nothing in it is trusted.

Every offset and length is checked before it is used, no page and no entry is read twice, and no
more than one path from the root to a leaf is in memory. The file is read by calls, not mapped, so that truncating it
during that time gives an error, not a signal.

Source: go.etcd.io/bbolt (internal/common: page.go, meta.go, bucket.go).
"""

import os
import struct
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple, Self

MAGIC = b"\xed\xda\x0c\xed"
_META_AT, _MAGIC_AT = 16, 16
_PAGE = struct.Struct("<QHHI")
_META = struct.Struct("<IIIIQQQQQQ")
_BRANCH = struct.Struct("<IIQ")
_LEAF = struct.Struct("<IIII")
_BUCKET = struct.Struct("<QQ")
_BRANCH_PAGE, _LEAF_PAGE, _META_PAGE = 0x01, 0x02, 0x04
_IS_BUCKET = 0x01
_VERSION = 2
_SIZES = tuple(1024 << power for power in range(7))
_MOST_LEVELS = 32
_MOST_OVERFLOW = 16 * 1024 * 1024
"""Most bytes of a page with its overflow: etcd accepts requests of 1.5 MB by default, and of 10 MB at most."""
_FNV_START, _FNV_PRIME = 0xCBF29CE484222325, 0x100000001B3


class DamagedBolt(Exception):
    """A file is not what bbolt writes; says where."""


class BoltEntry(NamedTuple):
    """An entry of a bucket; `at` is the offset of its value in the file."""

    key: bytes
    at: int
    value: bytes


class Bolt:
    """An open file of bbolt; what it finds damaged is raised as DamagedBolt."""

    def __init__(self, file: Path) -> None:
        self._opened = file.open("rb")
        try:
            self.size = os.fstat(self._opened.fileno()).st_size
            self._page_size, self._root = self._meta()
        except BaseException:
            self._opened.close()
            raise
        self._seen = bytearray(self.size // self._page_size + 1)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._opened.close()

    def read(self, at: int, size: int) -> bytes:
        """Read bytes at an offset."""
        if at < 0 or size < 0 or at + size > self.size:
            raise DamagedBolt(f"it ends at byte {self.size:,}, and something at byte {at:,} is to be in it")
        found = os.pread(self._opened.fileno(), size, at)
        if len(found) != size:
            raise DamagedBolt("it has become shorter while it was read")
        return found

    def bucket(self, name: bytes) -> Iterator[BoltEntry]:
        """The entries of a bucket of the root, in the order of their keys."""
        self._seen = bytearray(len(self._seen))
        for entry, is_bucket in self._entries(self._root):
            if entry.key == name and is_bucket:
                break
        else:
            raise DamagedBolt(f"it has no {name.decode()!r}: etcd did not write it")
        if len(entry.value) < _BUCKET.size:
            raise DamagedBolt("a bucket is cut off")
        root, _ = _BUCKET.unpack_from(entry.value)
        if root:
            yield from (found for found, _ in self._entries(root))
        else:
            # A small bucket is stored inline, after its header.
            page = entry.value[_BUCKET.size :]
            if len(page) < _PAGE.size:
                raise DamagedBolt("a bucket is cut off")
            yield from (found for found, _ in _leaves(page, entry.at + _BUCKET.size))

    def _entries(self, root: int) -> Iterator[tuple[BoltEntry, bool]]:
        path = [iter((root,))]
        while path:
            if (number := next(path[-1], None)) is None:
                path.pop()
                continue
            at, page = self._page(number)
            _, flags, _, _ = _PAGE.unpack_from(page)
            if flags & _LEAF_PAGE:
                yield from _leaves(page, at)
            elif flags & _BRANCH_PAGE and len(path) < _MOST_LEVELS:
                path.append(iter(_branches(page)))
            else:
                raise DamagedBolt(f"page {number} is none of a tree")

    def _page(self, number: int) -> tuple[int, bytes]:
        """The offset of a page, and its bytes."""
        at = number * self._page_size
        if number >= len(self._seen):
            raise DamagedBolt(f"it is cut off: page {number} is not there")
        if self._seen[number]:
            raise DamagedBolt(f"page {number} is in two places")
        self._seen[number] = 1
        own, _, _, overflow = _PAGE.unpack(self.read(at, _PAGE.size))
        if own != number:
            raise DamagedBolt(f"in the place of page {number} is something else")
        size = (overflow + 1) * self._page_size
        if size > max(_MOST_OVERFLOW, self._page_size):
            raise DamagedBolt(f"page {number} is to have {size:,} bytes")
        page = self.read(at, size)
        # Overlapping pages would make a small file expand to gigabytes of reads.
        following = slice(number + 1, number + overflow + 1)
        if any(self._seen[following]):
            raise DamagedBolt(f"page {number} goes on into another one")
        self._seen[following] = b"\1" * overflow
        return at, page

    def _meta(self) -> tuple[int, int]:
        """The page size and the root page, from the later one of the valid meta pages."""
        found: list[tuple[int, int, int]] = []
        for at in (0, *_SIZES):
            if at + _META_AT + _META.size > self.size:
                continue
            raw = self.read(at + _META_AT, _META.size)
            magic, version, page_size, _, root, _, _, _, order, sum_ = _META.unpack(raw)
            whole = raw[:4] == MAGIC and sum_ == _fnv(raw[:-8])
            if magic and whole and version == _VERSION and page_size in _SIZES and at in (0, page_size):
                found.append((order, page_size, root))
        if not found:
            raise DamagedBolt("it does not begin as a file of etcd does")
        _, page_size, root = max(found)
        return page_size, root


def is_bolt(file: Path) -> bool:
    """Whether a file is a bbolt file, by its first bytes."""
    with file.open("rb") as opened:
        return opened.read(_MAGIC_AT + len(MAGIC))[_MAGIC_AT:] == MAGIC


def _branches(page: bytes) -> Iterator[int]:
    _, _, count, _ = _PAGE.unpack_from(page)
    _fits(page, count, _BRANCH.size)
    for index in range(count):
        yield _BRANCH.unpack_from(page, _PAGE.size + index * _BRANCH.size)[2]


def _leaves(page: bytes, at: int) -> Iterator[tuple[BoltEntry, bool]]:
    _, _, count, _ = _PAGE.unpack_from(page)
    _fits(page, count, _LEAF.size)
    room = len(page) - _PAGE.size - count * _LEAF.size
    for index in range(count):
        place = _PAGE.size + index * _LEAF.size
        flags, position, key_size, value_size = _LEAF.unpack_from(page, place)
        key_at = place + position
        value_at = key_at + key_size
        if value_at + value_size > len(page):
            raise DamagedBolt("an entry does not end in its page")
        room -= key_size + value_size
        if room < 0:
            raise DamagedBolt("entries of a page have the same bytes")
        entry = BoltEntry(page[key_at:value_at], at + value_at, page[value_at : value_at + value_size])
        yield entry, bool(flags & _IS_BUCKET)


def _fits(page: bytes, count: int, size: int) -> None:
    if _PAGE.size + count * size > len(page):
        raise DamagedBolt(f"a page is to have {count:,} entries, for which it has no room")


def _fnv(raw: bytes) -> int:
    """The checksum of a meta page in bbolt: 64-bit FNV-1a."""
    found = _FNV_START
    for byte in raw:
        found = ((found ^ byte) * _FNV_PRIME) & 0xFFFFFFFFFFFFFFFF
    return found
