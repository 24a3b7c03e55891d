"""etcd's keys, read at one revision and written in transactions, over etcd's protocol with the cluster's certificate.

Source of the messages: etcd's api/etcdserverpb/rpc.proto and api/mvccpb/kv.proto, whose field numbers do not change.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from functools import cache
from itertools import groupby
from types import TracebackType
from typing import TYPE_CHECKING, Any, NamedTuple, Self

from kumulus.kube.etcd import CHANNEL
from kumulus.kube.message_tables import Tables, classes_of
from kumulus.nodes.errors import ProviderError
from kumulus.runtimes.kwok.access import ETCD
from kumulus.runtimes.kwok.layout import Layout

if TYPE_CHECKING:
    import grpc

_KV: Tables = {
    "Header": {"revision": (3, "int64")},
    "RangeRequest": {
        "key": (1, "bytes"),
        "range_end": (2, "bytes"),
        "limit": (3, "int64"),
        "revision": (4, "int64"),
    },
    "KeyValue": {"key": (1, "bytes"), "create_revision": (2, "int64"), "value": (5, "bytes")},
    "RangeResponse": {"header": (1, "Header"), "kvs": (2, "*KeyValue"), "more": (3, "bool")},
    "PutRequest": {"key": (1, "bytes"), "value": (2, "bytes")},
    "DeleteRangeRequest": {"key": (1, "bytes")},
    "RequestOp": {"request_put": (2, "PutRequest"), "request_delete_range": (3, "DeleteRangeRequest")},
    "TxnRequest": {"success": (2, "*RequestOp")},
}
_PAGE = 1000
# etcd's defaults: 128 operations a transaction, 1.5 MiB a request.
_MOST_OPERATIONS, _MOST_BYTES = 128, 1024 * 1024
# How many transactions are under way at a time.
_UNDER_WAY = 64
# For one request.
_REQUEST_S = 30.0
Put = tuple[bytes, bytes | None]
"""A key and its value; None for a key that is to be deleted."""


class EtcdEntry(NamedTuple):
    """A key with its value, and the revision at which it was created."""

    key: bytes
    value: bytes
    created: int


class EtcdKeys:
    """A connection to a cluster's etcd, to be used as a context manager.

    ProviderError if it cannot be reached: its port or its certificates are lost, or it does not answer.
    """

    def __init__(self, layout: Layout) -> None:
        import grpc

        if (port := layout.ports().get(ETCD)) is None:
            raise ProviderError(
                f"{layout.kwok_file} has no port of etcd; `pulumi up --refresh` restores a damaged file"
            )
        pki = layout.directory / "pki"
        try:
            authority, key, certificate = ((pki / name).read_bytes() for name in ("ca.crt", "admin.key", "admin.crt"))
        except OSError as error:
            raise ProviderError(f"the certificates of cluster {layout.name} cannot be read: {error}") from None
        credentials = grpc.ssl_channel_credentials(authority, key, certificate)
        options = [("grpc.max_receive_message_length", -1), *CHANNEL]
        self._channel: grpc.Channel = grpc.secure_channel(f"127.0.0.1:{port}", credentials, options)
        self._refused = grpc.RpcError

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: type[BaseException] | BaseException | TracebackType | None) -> None:
        self._channel.close()

    def all(self, prefix: bytes) -> Iterator[tuple[bytes, bytes]]:
        """Every key below a prefix such as ``/registry/`` with its value, all as they are now."""
        return ((each.key, each.value) for each in self.entries(prefix))

    def entries(self, prefix: bytes) -> Iterator[EtcdEntry]:
        """Like :meth:`all`, with the revision at which each key was created: another one means another object."""
        # Without a revision, it is the current one; the other pages are read at the same one.
        first = self._range(prefix, _end(prefix), 0)
        return self._pages(first, _end(prefix), int(first.header.revision))

    def write(self, changes: Sequence[Put], *, watched: bool = True) -> None:
        """Write keys, one kind after the other; after a ProviderError, what was written stays.

        Whoever watches a kind goes on from the last revision that it has seen. All keys of a transaction have the same
        one, so a watch that ends between two of them would never report the second: each key has its own transaction,
        unless they are not `watched`, as before the API server has started.
        """
        if not watched:
            for batch in _batches(changes):
                self._commit([batch])
            return
        for _, of_a_kind in groupby(changes, key=_kind):
            self._commit([[each] for each in of_a_kind])

    def _pages(self, page: Any, end: bytes, revision: int) -> Iterator[EtcdEntry]:
        while True:
            for each in page.kvs:
                yield EtcdEntry(each.key, each.value, each.create_revision)
            if not page.more:
                return
            page = self._range(page.kvs[-1].key + b"\0", end, revision)

    def _range(self, key: bytes, end: bytes, revision: int) -> Any:
        request = _classes()["RangeRequest"](key=key, range_end=end, limit=_PAGE, revision=revision)
        return _classes()["RangeResponse"].FromString(self._answer(self._begun("Range", request)))

    def _commit(self, transactions: Sequence[Sequence[Put]]) -> None:
        """Write keys in transactions, many of which are under way at a time."""
        requests = [_classes()["TxnRequest"](success=map(_operation, each)) for each in transactions]
        for first in range(0, len(requests), _UNDER_WAY):
            calls = [self._begun("Txn", each) for each in requests[first : first + _UNDER_WAY]]
            for call in calls:
                self._answer(call)

    def _begun(self, method: str, request: Any) -> Any:
        call: Any = self._channel.unary_unary(f"/etcdserverpb.KV/{method}")
        return call.future(request.SerializeToString(), timeout=_REQUEST_S)

    def _answer(self, call: Any) -> bytes:
        try:
            answer: bytes = call.result()
        except self._refused as error:
            reason = error.details() if hasattr(error, "details") else str(error)
            raise ProviderError(f"etcd: {reason}") from None
        return answer


def _kind(change: Put) -> bytes:
    """The kind of a key such as ``/registry/pods/default/web``."""
    return change[0].split(b"/", 3)[2]


def _operation(change: Put) -> dict[str, Any]:
    key, value = change
    if value is None:
        return {"request_delete_range": {"key": key}}
    return {"request_put": {"key": key, "value": value}}


def _batches(changes: Iterable[Put]) -> Iterator[list[Put]]:
    batch: list[Put] = []
    size = 0
    for key, value in changes:
        if batch and (len(batch) == _MOST_OPERATIONS or size + len(value or b"") > _MOST_BYTES):
            yield batch
            batch, size = [], 0
        batch.append((key, value))
        size += len(key) + len(value or b"")
    if batch:
        yield batch


def _end(prefix: bytes) -> bytes:
    """The first key that is not below a prefix."""
    return prefix[:-1] + bytes([prefix[-1] + 1])


@cache
def _classes() -> Any:
    return classes_of(_KV)
