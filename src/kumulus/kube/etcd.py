"""Create keys in etcd that do not exist, in one transaction, as an API server does; and make room in a full one.

Sources: etcd's api/etcdserverpb/rpc.proto (v3.6) for the messages; k8s.io/apiserver pkg/storage/etcd3/store.go, whose
transaction this is; https://etcd.io/docs/v3.6/op-guide/maintenance/ for what makes room.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from contextlib import suppress
from functools import cache
from typing import TYPE_CHECKING, Any

from kumulus.kube.message_tables import classes_of, tables_of

if TYPE_CHECKING:
    import grpc

CHANNEL = (("grpc.enable_http_proxy", 0),)
"""Options of a channel to an etcd of this machine, which gRPC would otherwise ask the user's proxy for."""

# Longer than a write takes on a busy disk; after that, the API server is asked what became of it.
_TIMEOUT_S = 10.0
# Queries take milliseconds; rewriting the whole file takes longer.
_LOOK_S, _REWRITE_S = 2.0, 60.0
# AlarmRequest.AlarmAction.
_GET, _DEACTIVATE = 0, 2
# AlarmType.
_NO_SPACE = 1
# Compare.CompareResult.
_EQUAL = 0
# Compare.CompareTarget: mod_revision, which is 0 of a key that does not exist.
_MOD_REVISION = 2
_MESSAGES = tables_of(
    """
    Compare: result 1 int32, target 2 int32, key 3 bytes, mod_revision 6 int64
    PutRequest: key 1 bytes, value 2 bytes
    RequestOp: request_put 2 PutRequest
    TxnRequest: compare 1 *Compare, success 2 *RequestOp
    TxnResponse: succeeded 2 bool
    AlarmRequest: action 1 int32, memberID 2 int64, alarm 3 int32
    AlarmMember: memberID 1 int64, alarm 2 int32
    AlarmResponse: alarms 2 *AlarmMember
    CompactionRequest: revision 1 int64, physical 2 bool
    ResponseHeader: revision 3 int64
    StatusResponse: header 1 ResponseHeader, dbSize 3 int64
    """
)


class EtcdError(Exception):
    """etcd refused, or gave no answer: it is not known whether it has written."""


class Etcd:
    """A connection to an etcd that requires certificates.

    Args:
        authority: the certificate authority to trust, PEM.
        certificate: ours, PEM.
        key: its key, PEM.
    """

    def __init__(self, address: str, authority: bytes, certificate: bytes, key: bytes) -> None:
        # Imported here: a plugin that only compares properties does not need it.
        import grpc

        self._failed: type[Exception] = grpc.aio.AioRpcError
        credentials = grpc.ssl_channel_credentials(authority, key, certificate)
        self._channel: grpc.aio.Channel = grpc.aio.secure_channel(address, credentials, CHANNEL)

    async def create(self, *objects: tuple[bytes, bytes]) -> bool:
        """Write keys with their values, all or none; False if one of them exists: then nothing was written.

        An API server writes each object at a revision of its own: the revision becomes the object's resourceVersion,
        and a client that watches resumes from the last version that it has seen. If several objects of one kind had one
        version, a watch that is cut off between them would never see the rest (docs/decisions/through-the-storage.md).
        So there may be only one object of each kind here, as no watch covers several kinds.
        """
        asked = {
            "compare": [
                {"result": _EQUAL, "target": _MOD_REVISION, "key": key, "mod_revision": 0} for key, _ in objects
            ],
            "success": [{"request_put": {"key": key, "value": value}} for key, value in objects],
        }
        answer = await self._ask("KV/Txn", "TxnRequest", asked, "TxnResponse", _TIMEOUT_S)
        return bool(answer.succeeded)

    async def full_members(self) -> list[int]:
        """The IDs of the members that have raised the alarm that their data have reached the quota."""
        asked = {"action": _GET, "alarm": _NO_SPACE}
        answer = await self._ask("Maintenance/Alarm", "AlarmRequest", asked, "AlarmResponse")
        return [member.memberID for member in answer.alarms]

    async def make_room(self) -> tuple[int, int]:
        """Discard what was deleted or overwritten, rewrite the file, and disarm the alarm.

        Returns:
            the bytes that it took before, and takes now.
        """
        members, before = await self.full_members(), await self._status()
        # Another client may just have done it: then etcd refuses, and there is nothing left to compact.
        with suppress(EtcdError):
            asked = {"revision": before.header.revision, "physical": True}
            await self._ask("KV/Compact", "CompactionRequest", asked, None, _REWRITE_S)
        await self._ask("Maintenance/Defragment", None, {}, None, _REWRITE_S)
        after = await self._status()
        for member in members:
            asked = {"action": _DEACTIVATE, "memberID": member, "alarm": _NO_SPACE}
            await self._ask("Maintenance/Alarm", "AlarmRequest", asked, "AlarmResponse")
        return before.dbSize, after.dbSize

    async def _status(self) -> Any:
        return await self._ask("Maintenance/Status", None, {}, "StatusResponse")

    async def _ask(
        self, method: str, message: str | None, fields: Mapping[str, Any], answer: str | None, timeout: float = _LOOK_S
    ) -> Any:
        """Call a method.

        Args:
            message: the type of its request; None for one without fields.
            answer: the type of its answer; None if nobody reads it.
        """
        request = bytes(_classes()[message](**fields).SerializeToString()) if message else b""
        call: Callable[..., Awaitable[bytes]] = self._channel.unary_unary(f"/etcdserverpb.{method}")
        try:
            found = await call(request, timeout=timeout)
        except self._failed as error:
            raise EtcdError(str(error)) from None
        return _classes()[answer].FromString(found) if answer else None

    async def close(self) -> None:
        """Close the connection."""
        await self._channel.close()


@cache
def _classes() -> Mapping[str, Any]:
    return classes_of(_MESSAGES)
