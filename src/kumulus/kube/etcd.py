"""etcd as an API server asks it: one key is created in one transaction, if it is not there.

Sources: etcd's api/etcdserverpb/rpc.proto (v3.6) for the messages; k8s.io/apiserver pkg/storage/etcd3/store.go, whose
transaction this is.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from functools import cache
from typing import TYPE_CHECKING, Any

from kumulus.kube.messages import Tables, classes_of

if TYPE_CHECKING:
    import grpc

_TXN = "/etcdserverpb.KV/Txn"
# A write of a busy disk: whoever waits longer asks the API server, which knows what has become of it.
_TIMEOUT_S = 10.0
# Compare.CompareResult and Compare.CompareTarget.
_EQUAL, _MODIFIED = 0, 2
_MESSAGES: Tables = {
    "Compare": {
        "result": (1, "int32"),
        "target": (2, "int32"),
        "key": (3, "bytes"),
        "mod_revision": (6, "int64"),
    },
    "PutRequest": {"key": (1, "bytes"), "value": (2, "bytes")},
    "RequestOp": {"request_put": (2, "PutRequest")},
    "TxnRequest": {"compare": (1, "*Compare"), "success": (2, "*RequestOp")},
    "TxnResponse": {"succeeded": (2, "bool")},
}


class EtcdError(Exception):
    """etcd refused, or gave no answer: whether it has written is not known."""


class Etcd:
    """A connection to an etcd that asks for certificates.

    Args:
        address: host and port.
        authority: the certificate authority to trust, PEM.
        certificate: ours, PEM.
        key: its key, PEM.
    """

    def __init__(self, address: str, authority: bytes, certificate: bytes, key: bytes) -> None:
        # Imported here: a plugin that only compares properties asks nobody.
        import grpc

        self._failed: type[Exception] = grpc.aio.AioRpcError
        credentials = grpc.ssl_channel_credentials(authority, key, certificate)
        self._channel: grpc.aio.Channel = grpc.aio.secure_channel(address, credentials)
        self._txn: Callable[..., Awaitable[bytes]] = self._channel.unary_unary(_TXN)

    async def create(self, key: bytes, value: bytes) -> bool:
        """Write a key that is not there; False when it is, and nothing was written.

        Each key is written at a revision of its own, as an API server does it: the revision becomes the object's
        resourceVersion, and who watches goes on from the last one seen. Of several objects with one version, a watch
        that is cut between them would never tell the rest (docs/decisions/through-the-storage.md).

        Raises:
            EtcdError: whether it was written is not known.
        """
        try:
            answer = await self._txn(_creation(key, value), timeout=_TIMEOUT_S)
        except self._failed as error:
            raise EtcdError(str(error)) from None
        return bool(_classes()["TxnResponse"].FromString(answer).succeeded)

    async def close(self) -> None:
        """Close the connection."""
        await self._channel.close()


def _creation(key: bytes, value: bytes) -> bytes:
    classes = _classes()
    absent = classes["Compare"](result=_EQUAL, target=_MODIFIED, key=key, mod_revision=0)
    put = classes["RequestOp"](request_put=classes["PutRequest"](key=key, value=value))
    return bytes(classes["TxnRequest"](compare=[absent], success=[put]).SerializeToString())


@cache
def _classes() -> Mapping[str, Any]:
    return classes_of(_MESSAGES)
