"""Where the API server of a control plane on this machine stores its objects: in an etcd of its own."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from kumulus import toolchain
from kumulus.kube.etcd import Etcd, EtcdError
from kumulus.kube.stored_lease import StoredLeases
from kumulus.nodes.pools.admission import concerned_with_nodes
from kumulus.nodes.pools.through_storage import NotThroughStorage, Post, Unwritten
from kumulus.runtimes.kwok import etcd
from kumulus.runtimes.kwok.layout import Layout
from kumulus.runtimes.kwok.lease_holder import LeaseHolder

if TYPE_CHECKING:
    from kumulus.kube import Client

OPTION = "createThrough"
API = "api"

# With these flags, an API server stores objects elsewhere or differently, or checks or records each of them.
_CHANGING = (
    "admission-control-config-file",
    "audit-policy-file",
    "audit-webhook-config-file",
    "enable-admission-plugins",
    "encryption-provider-config",
    "etcd-servers-overrides",
    "storage-media-type",
)
_PREFIX = "etcd-prefix"


@dataclass(frozen=True)
class OwnEtcd:
    """The etcd of one control plane, as :class:`kumulus.nodes.pools.through_storage.Storage`."""

    connection: Etcd
    holder: LeaseHolder

    async def create(self, *objects: tuple[bytes, bytes]) -> bool:
        """See :meth:`Storage.create`."""
        try:
            return await self.connection.create(*objects)
        except EtcdError as error:
            raise Unwritten(str(error)) from None

    async def leases(self, client: Client, post: Post) -> StoredLeases | None:
        """See :meth:`Storage.leases`."""
        return await self.holder.leases(client, post)


class Storages:
    """The storage of each cluster of this runtime to which new nodes are written, connected to once."""

    def __init__(self) -> None:
        self._open: dict[Path, tuple[tuple[float, float], OwnEtcd]] = {}
        self._asking = asyncio.Lock()
        self._reported: set[tuple[str, str]] = set()

    async def of(self, kubeconfig: str, client: Client) -> OwnEtcd | None:
        """The storage of a cluster; None if none is known, or if the reason against it was reported before.

        Args:
            kubeconfig: path of the cluster's kubeconfig.
            client: of the cluster.

        Raises:
            NotThroughStorage: nodes have to be posted, for a reason to report; once for each cluster and reason.
            ApiError, Unreachable: the API server could not be asked.
        """
        layout = Layout(Path(kubeconfig).parent)
        if not layout.kwok_file.exists():
            return None
        # A stack's pools are made at the same moment: the first one asks for all.
        async with self._asking:
            found = await self._storage(layout, client)
        # Asked each time: the user may have put a webhook into the cluster.
        reason = found if isinstance(found, str) else await concerned_with_nodes(client)
        if reason and (kubeconfig, reason) not in self._reported:
            self._reported.add((kubeconfig, reason))
            raise NotThroughStorage(reason)
        return None if reason or isinstance(found, str) else found

    async def _storage(self, layout: Layout, client: Client) -> OwnEtcd | str:
        """The storage, or why nodes have to be posted."""
        stamps = _changed(layout.kwok_file), _changed(layout.declared_file)
        known = self._open.get(layout.directory)
        if known is not None and known[0] == stamps:
            return known[1]
        if reason := await _unfit(layout, client):
            return reason
        try:
            found = OwnEtcd(connected(layout), LeaseHolder(layout))
        except OSError as error:
            return f"{error.filename}: {error.strerror}"
        self._open[layout.directory] = stamps, found
        return found


async def _unfit(layout: Layout, client: Client) -> str:
    """Why nodes of a cluster have to be posted; empty when they can be written."""
    if _declared(layout).get(OPTION) == API:
        return f"kwok.{OPTION} is {API}"
    settings = layout.settings()
    if not etcd.is_secured(settings):
        return "its etcd was made by an earlier version, and asks nobody for a certificate"
    flags = {name: etcd.flag(settings, etcd.API_SERVER, name) for name in (*_CHANGING, _PREFIX)}
    # kwokctl sets the default.
    if flags[_PREFIX] == "/registry":
        del flags[_PREFIX]
    if flags_set := [name for name, value in flags.items() if value is not None]:
        return f"the API server has --{flags_set[0]}"
    version = str((await client.get("/version")).get("gitVersion"))
    # Of each on offer, tests/integration/test_through_storage.py shows that we write what it would write.
    known = version.removeprefix("v") in toolchain.kubernetes_versions()
    return "" if known else f"Kubernetes {version} is not known to store them as written here"


def _declared(layout: Layout) -> Mapping[str, Any]:
    """The options with which the cluster was last declared."""
    try:
        found = json.loads(layout.text(layout.declared_file) or "{}").get("options")
    except (ValueError, AttributeError):
        return {}
    return found if isinstance(found, dict) else {}


def connected(layout: Layout) -> Etcd:
    """A connection to the etcd of a cluster, which asks for certificates.

    Raises:
        OSError: the certificates cannot be read.
    """
    pki = layout.directory / "pki"
    authority, certificate, key = ((pki / name).read_bytes() for name in ("ca.crt", "admin.crt", "admin.key"))
    return Etcd(f"127.0.0.1:{layout.ports()[etcd.ETCD]}", authority, certificate, key)


def _changed(file: Path) -> float:
    try:
        return file.stat().st_mtime
    except OSError:
        return 0.0
