"""Where the API server of a control plane on this machine stores its objects: in an etcd of its own."""

from __future__ import annotations

import asyncio
import json
import time
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any
from weakref import WeakKeyDictionary

from kumulus import toolchain
from kumulus.kube import ApiError
from kumulus.kube.codecs import PROTOBUF
from kumulus.kube.errors import tolerating
from kumulus.kube.etcd import Etcd, EtcdError
from kumulus.kube.stored import StoredLeases
from kumulus.nodes.faults.leases import HOLDER, LEASES
from kumulus.nodes.pools.through_storage import NotThroughStorage, Post, Unwritten
from kumulus.runtimes.kwok import components
from kumulus.runtimes.kwok.access import API_SERVER, ETCD
from kumulus.runtimes.kwok.layout import Layout

if TYPE_CHECKING:
    from kumulus.kube import Client


# A controller that takes longer for a lease is behind, or does not run: it then makes the leases itself later.
_PATIENCE_S, _PAUSE_S = 2.0, 0.02


class LeaseHolder:
    """What the running kwok-controller of a cluster writes into the leases of new nodes, learned from one of them.

    A controller holds leases under a name that it draws at its start and reports nowhere else (v0.8.0,
    pkg/kwok/cmd/root.go). So one node is posted, and its lease is read, which the controller makes at once.
    """

    def __init__(self, layout: Layout) -> None:
        self._pid_file = layout.directory / "pids" / "kwok-controller.pid"
        self._layout = layout
        self._learning = asyncio.Lock()
        self._known: tuple[str, StoredLeases | None] | None = None

    async def leases(self, client: Client, post: Post) -> StoredLeases | None:
        """See :meth:`kumulus.nodes.pools.through_storage.Storage.leases`."""
        # A stack's pools are made at the same moment: the first one posts a node for all.
        async with self._learning:
            # A restarted controller has another name, and would wait for leases under the old one to expire.
            controller = self._layout.text(self._pid_file)
            if not controller:
                return None
            if self._known is None or self._known[0] != controller:
                self._known = controller, await _learned(client, await post())
            return self._known[1]


async def _learned(client: Client, node: str) -> StoredLeases | None:
    """Leases like that of a node that was just posted; None if it gets none from KWOK in time."""
    give_up = time.monotonic() + _PATIENCE_S
    while time.monotonic() < give_up:
        try:
            answer = await client.request("GET", f"{LEASES}/{node}", accept=PROTOBUF, decode=bytes)
        except ApiError as error:
            if error.status != 404:
                raise
            await asyncio.sleep(_PAUSE_S)
            continue
        found = StoredLeases(bytes(answer))
        return found if found.is_new and found.holder not in ("", HOLDER, node) else None
    return None


_OPTION = "createThrough"
_BY_POSTS = "api"

# With these flags, an API server stores objects elsewhere or differently, or checks or records each of them.
_FLAGS_AGAINST_IT = (
    "admission-control-config-file",
    "audit-policy-file",
    "audit-webhook-config-file",
    "enable-admission-plugins",
    "encryption-provider-config",
    "etcd-servers-overrides",
    "storage-media-type",
)
_PREFIX = "etcd-prefix"


class OwnEtcd(LeaseHolder):
    """The etcd of one control plane, as :class:`kumulus.nodes.pools.through_storage.Storage`."""

    def __init__(self, layout: Layout) -> None:
        super().__init__(layout)
        self.connection = connected(layout)

    async def create(self, *objects: tuple[bytes, bytes]) -> bool:
        """See :meth:`Storage.create`."""
        try:
            return await self.connection.create(*objects)
        except EtcdError as error:
            raise Unwritten(str(error)) from None


class Storages:
    """The storage of each cluster of this runtime to which new nodes are written, connected to once."""

    def __init__(self) -> None:
        # By the cluster's directory, with the times of the files that it depends on.
        self._open: dict[Path, tuple[tuple[float, float], OwnEtcd]] = {}
        self._asking = asyncio.Lock()
        self._reported: set[tuple[str, str]] = set()

    async def of(self, kubeconfig: str, client: Client) -> OwnEtcd | None:
        """The storage of a cluster; None if none is known, or if the reason against it was reported before.

        NotThroughStorage says once for each cluster and reason why nodes have to be posted.
        """
        layout = Layout(Path(kubeconfig).parent)
        if not layout.kwok_file.exists():
            return None
        # A stack's pools are made at the same moment: the first one asks for all.
        async with self._asking:
            found = await self._storage(layout, client)
        if isinstance(found, str):
            self._raise_once(kubeconfig, found)
            return None
        # Asked each time: the user may have put a webhook into the cluster.
        if reason := await concerned_with_nodes(client):
            self._raise_once(kubeconfig, reason)
            return None
        return found

    def _raise_once(self, kubeconfig: str, reason: str) -> None:
        """Raise NotThroughStorage, unless it was raised for this cluster and reason before."""
        if (kubeconfig, reason) not in self._reported:
            self._reported.add((kubeconfig, reason))
            raise NotThroughStorage(reason)

    async def _storage(self, layout: Layout, client: Client) -> OwnEtcd | str:
        """The storage, or why nodes have to be posted."""
        stamps = _changed(layout.kwok_file), _changed(layout.declared_file)
        if layout.directory in self._open:
            stamps_then, known = self._open[layout.directory]
            if stamps_then == stamps:
                return known
        if reason := await _unfit(layout, client):
            return reason
        try:
            found = OwnEtcd(layout)
        except EtcdError as error:
            return str(error)
        except OSError as error:
            return f"{error.filename}: {error.strerror}"
        self._open[layout.directory] = stamps, found
        return found


async def _unfit(layout: Layout, client: Client) -> str:
    """Why nodes of a cluster have to be posted; empty when they can be written."""
    if _declared(layout).get(_OPTION) == _BY_POSTS:
        return f"kwok.{_OPTION} is {_BY_POSTS}"
    settings = layout.settings()
    flags = {name: components.flag(settings, API_SERVER, name) for name in (*_FLAGS_AGAINST_IT, _PREFIX)}
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
    """A connection to the etcd of a cluster, with the cluster's certificate.

    Raises:
        EtcdError: its port is not known.
        OSError: the certificate cannot be read.
    """
    pki = layout.directory / "pki"
    # Where kwok.yaml is damaged, our copy of it has the port.
    if (port := layout.ports().get(ETCD) or layout.of_copy().ports().get(ETCD)) is None:
        raise EtcdError(f"{layout.kwok_file} has no port of etcd")
    authority, certificate, key = ((pki / name).read_bytes() for name in ("ca.crt", "admin.crt", "admin.key"))
    return Etcd(f"127.0.0.1:{port}", authority, certificate, key)


def _changed(file: Path) -> float:
    """When a file was last changed, in seconds since 1970; 0 if it is not there."""
    try:
        return file.stat().st_mtime
    except OSError:
        return 0.0


_ADMISSION = "/apis/admissionregistration.k8s.io"
_WEBHOOKS = ("v1/mutatingwebhookconfigurations", "v1/validatingwebhookconfigurations")
# Those that change objects are served only by some versions, and only if a stack enables them.
_POLICIES = (
    "v1/validatingadmissionpolicies",
    "v1/mutatingadmissionpolicies",
    "v1beta1/mutatingadmissionpolicies",
    "v1alpha1/mutatingadmissionpolicies",
)
# What is written around the API server, by its API group.
_WRITTEN = {"": "nodes", "coordination.k8s.io": "leases"}
# A stack's pools are created at the same moment: they share the answer to one request.
_questions: WeakKeyDictionary[Client, asyncio.Task[str]] = WeakKeyDictionary()


async def concerned_with_nodes(client: Client) -> str:
    """The first webhook or policy about new nodes or leases, in a sentence; empty without one.

    It counts whatever its conditions are.
    """
    question = _questions.get(client)
    if question is None or question.done():
        question = _questions[client] = asyncio.ensure_future(_ask(client))
    return await asyncio.shield(question)


async def _ask(client: Client) -> str:
    for items in await asyncio.gather(*(_listed(client, kind) for kind in _WEBHOOKS)):
        for item in items:
            for webhook in item.get("webhooks") or ():
                if what := _matched(webhook.get("rules") or ()):
                    return f"webhook {webhook.get('name')} of {item['metadata']['name']} is about {what}"
    for items in await asyncio.gather(*(_listed(client, kind) for kind in _POLICIES)):
        for item in items:
            rules = ((item.get("spec") or {}).get("matchConstraints") or {}).get("resourceRules") or ()
            if what := _matched(rules):
                return f"policy {item['metadata']['name']} is about {what}"
    return ""


async def _listed(client: Client, kind: str) -> list[dict[str, Any]]:
    with tolerating(404):
        return list((await client.get(f"{_ADMISSION}/{kind}")).get("items") or ())
    return []


def _matched(rules: Iterable[Mapping[str, Any]]) -> str:
    """The resource in :data:`_WRITTEN` whose creation a rule covers; empty if no rule covers one."""
    for rule in rules:
        groups, resources, operations = (set(rule.get(key) or ()) for key in ("apiGroups", "resources", "operations"))
        for group, resource in _WRITTEN.items():
            if groups & {group, "*"} and resources & {resource, "*", "*/*"} and operations & {"CREATE", "*"}:
                return resource
    return ""
