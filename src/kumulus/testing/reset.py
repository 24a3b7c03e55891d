"""Put a cluster back to what it was: every key of its etcd that a test has added, changed or removed.

Nothing that a test leaves can hold this back: neither a webhook nor a finalizer is asked when a key is written. The
API server and the controllers see each change by their watches, as of any other. Objects keep their UIDs.

A controller may still be at work on what is being removed, and make something of it again, such as a pod of a Job. So
it is looked again, and again, until a look finds nothing to do.
"""

import asyncio
import json
import time
from collections.abc import Iterable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from functools import cache
from typing import Any

from google.protobuf.message import DecodeError

from kumulus.kube import ApiError, Client
from kumulus.kube.message_tables import classes_of, tables_of
from kumulus.kube.messages import opened
from kumulus.model.words import listed
from kumulus.nodes.errors import ProviderError
from kumulus.runtimes.kwok.etcd_keys import EtcdEntry, EtcdKeys
from kumulus.testing import canaries
from kumulus.testing.errors import ClusterError

_ROOT = b"/registry/"
# What processes that run keep renewing, or make again by themselves.
_OF_THE_MOMENT = (
    b"/registry/masterleases/",
    b"/registry/peerserverleases/",
    b"/registry/leases/kube-system/",
    b"/registry/services/endpoints/default/kubernetes",
    b"/registry/endpointslices/default/kubernetes",
    # Its name has a hash of the cluster's certificate authority; the controller manager publishes it at its start.
    b"/registry/clustertrustbundles/kubernetes.io:kube-apiserver-serving:",
)
_NODES, _LEASES = b"/registry/minions/", b"/registry/leases/kube-node-lease/"
_EVENTS, _SERVICES = b"/registry/events/", b"/registry/apiregistration.k8s.io/apiservices/"
_DEFINITIONS = b"/registry/apiextensions.k8s.io/customresourcedefinitions/"
# Whoever makes objects again goes before what it makes: owners and their kinds, and what they are allowed to.
_FIRST = tuple(
    f"/registry/{each}/".encode()
    for each in (
        "validatingwebhookconfigurations",
        "mutatingwebhookconfigurations",
        "validatingadmissionpolicybindings",
        "mutatingadmissionpolicybindings",
        "resourcequotas",
        "cronjobs",
        "deployments",
        "statefulsets",
        "daemonsets",
        "replicasets",
        "controllers",
        "jobs",
        "namespaces",
    )
)
_WITHIN_S, _LOOK_EVERY = 30.0, 0.01
# Seconds for a controller to have made what it was about to make.
_QUIET_S = 0.05
Change = tuple[bytes, bytes | None]
_META = tables_of(
    """
    ObjectMeta: name 1 string, namespace 3 string, finalizers 14 *string
    Any: metadata 1 ObjectMeta
    """
)


@dataclass
class Reset:
    """What a reset did."""

    removed: int = 0
    """How many objects it removed; events and leases do not count."""
    restored: int = 0
    """How many it changed back or made again."""
    forced: list[str] = field(default_factory=list)
    """What would have held it back and was removed all the same: objects with finalizers, and webhooks."""
    seconds: float = 0.0
    """How long it took."""

    def __str__(self) -> str:
        """In words."""
        forced = f"; forced: {', '.join(self.forced)}" if self.forced else ""
        return f"{self.removed:,} objects removed, {self.restored:,} restored in {self.seconds:.2f} s{forced}"


class Baseline:
    """What is in a cluster at one moment, to which it can be put back.

    Args:
        within: the namespace to which all of it is limited; empty for the whole cluster.
    """

    def __init__(self, etcd: EtcdKeys, within: str = "") -> None:
        self._etcd, self._within = etcd, within
        self._kept: dict[bytes, EtcdEntry] = {}

    async def take(self, rest: float = _QUIET_S) -> None:
        """Keep what there is, once nothing of it changes for `rest` seconds: what is at work could not be put back."""
        ends, now = time.monotonic() + _WITHIN_S, await asyncio.to_thread(self._now)
        while True:
            await asyncio.sleep(rest)
            before, now = now, await asyncio.to_thread(self._now)
            if not (changed := _changed(before, now)):
                # The leases of nodes that are gone are removed a while later.
                self._kept = {
                    key: entry
                    for key, entry in now.items()
                    if not key.startswith(_LEASES) or _NODES + key.removeprefix(_LEASES) in now
                }
                return
            if time.monotonic() > ends:
                raise _restless(changed, "end the program that does it, or mark the cluster later")

    async def take_at_rest(self, client: Client) -> None:
        """Take it once controllers have done what they had to do: they would go on from there after each reset."""
        ends, before = time.monotonic() + _WITHIN_S, dict[bytes, EtcdEntry]()
        await self.take()
        while time.monotonic() < ends and _changed(before, self._kept):
            before = self._kept
            if not (kinds := {_kind(key) for key in before} & canaries.KINDS - {"namespaces"}):
                return
            # What a webhook, a policy or a quota that stays would refuse is not waited for.
            with suppress(ApiError):
                await _seen(client, kinds, self._within, refused_for=0)
            now = await asyncio.to_thread(self._now)
            self._write([(key, None) for key in now if canaries.is_one(key)])
            await self.take()

    def entries(self) -> list[tuple[bytes, bytes]]:
        """The keys that were kept, with their values."""
        return [(key, entry.value) for key, entry in self._kept.items()]

    async def restore(self, client: Client, done: Reset) -> set[str]:
        """Put everything back but nodes that are gone, until looks find nothing to do, nor what looking has left.

        Args:
            done: what has been done, to which this adds.

        Returns:
            The names of the nodes that are gone; they are made again by what makes nodes.
        """
        ends, gone, owners, quiet = time.monotonic() + _WITHIN_S, set[str](), set[str](), 0
        changes: list[Change] = []
        while time.monotonic() < ends:
            known = set(owners)
            changes, clean = await asyncio.to_thread(self._look, gone, done, owners)
            quiet = 0 if changes else quiet + 1
            if quiet > 1 and clean:
                return gone
            if quiet > 1:
                await asyncio.sleep(_QUIET_S)
            else:
                await self._wait(client, owners - known, known)
        raise _restless(
            (key for key, _ in changes),
            "end the program that does it, such as an operator that the test has started, before the reset",
        )

    async def _wait(self, client: Client, new: set[str], known: set[str]) -> None:
        """Wait until the controllers have seen what was written, as far as they would make something of it."""
        if not new and not known:
            await asyncio.sleep(_QUIET_S)
            return
        # A namespace is asked for once: it is not gone at once itself, as controllers fill it.
        await _seen(client, new or (known - {"namespaces"} | {"deployments"}), self._within)

    def _look(self, gone: set[str], done: Reset, owners: set[str]) -> tuple[list[Change], bool]:
        """Find what differs and write it; adds to the nodes that are gone, to what is done and to the owners removed.

        Of owners, only these are written: what they own is next, when they are gone.

        Returns:
            What differed; and whether no canary was left, either.
        """
        now = self._now()
        changes = list(self._changes(now, gone))
        kinds = {kind for key, value in changes if value is None and (kind := _kind(key)) in canaries.KINDS}
        mine = {key for key, _ in changes if canaries.is_one(key)}
        first = [each for each in changes if each[0].startswith(_FIRST)]
        if kinds - owners and not all(key in mine for key, _ in first):
            owners |= kinds
            self._note(first, now, done)
            self._write(first)
            return first, False
        self._write(changes)
        # Events are reported a while after what they report, and nothing follows from them.
        changes = [each for each in changes if each[0] not in mine and not each[0].startswith(_EVENTS)]
        self._note(changes, now, done)
        return changes, all(key.startswith(_EVENTS) for key in mine)

    def made_again(self, names: Iterable[str]) -> None:
        """Take nodes that were made again for what was there at first."""
        now = self._now()
        for name in names:
            for prefix in (_NODES, _LEASES):
                if (key := prefix + name.encode()) in now:
                    self._kept[key] = now[key]

    def _now(self) -> dict[bytes, EtcdEntry]:
        try:
            return {each.key: each for each in self._etcd.entries(_ROOT) if self._is_ours(each.key)}
        except ProviderError as error:
            raise ClusterError(f"the cluster cannot be reset: {error}; start another one") from None

    def _is_ours(self, key: bytes) -> bool:
        inside = f"/{self._within}/".encode()
        return not key.startswith(_OF_THE_MOMENT) and (not self._within or inside in key)

    def _changes(self, now: Mapping[bytes, EtcdEntry], gone: set[str]) -> Iterator[Change]:
        """What to write, so that the cluster is what it was; adds to the nodes that are gone."""
        kept = self._kept
        for key, entry in kept.items():
            if not key.startswith(_NODES):
                continue
            name = key.removeprefix(_NODES).decode()
            if name not in gone and (key not in now or now[key].created != entry.created):
                # Its leases and pods refer to the UID, which controllers know to be gone.
                gone.add(name)
        again = {prefix + name.encode() for name in gone for prefix in (_NODES, _LEASES)}
        for key in again & now.keys():
            yield key, None
        # The API server removes its services itself when their kinds are gone; before, it would make them again.
        defined = any(key.startswith(_DEFINITIONS) for key in now.keys() - kept.keys())
        for key in now.keys() - kept.keys() - again:
            if not (defined and key.startswith(_SERVICES)):
                yield key, None
        for key, entry in kept.items():
            if key in again or key.startswith(_EVENTS) or (key.startswith(_LEASES) and key in now):
                continue
            if key not in now or now[key].value != entry.value:
                yield key, entry.value

    def _write(self, changes: list[Change]) -> None:
        try:
            self._etcd.write(sorted(changes, key=_order))
        except ProviderError as error:
            raise ClusterError(f"the cluster cannot be reset: {error}; start another one") from None

    def _note(self, changes: Iterable[Change], now: Mapping[bytes, EtcdEntry], done: Reset) -> None:
        for key, value in changes:
            if key.startswith(_LEASES):
                continue
            if value is not None:
                done.restored += 1
                continue
            done.removed += 1
            held = "a webhook" if key.startswith(_FIRST[:2]) else ""
            if finalizers := _finalizers(now[key].value):
                held = f"with {', '.join(finalizers)}"
            if held and not _is_usual(finalizers) and (text := f"{_shown(key)} ({held})") not in done.forced:
                done.forced.append(text)


async def _seen(client: Client, kinds: set[str], within: str, refused_for: float = _WITHIN_S) -> None:
    try:
        await canaries.seen(client, kinds, within, refused_for=refused_for)
    except TimeoutError:
        raise ClusterError(
            "the cluster cannot be reset or marked: its kube-controller-manager does nothing; start another one"
        ) from None


def _changed(before: Mapping[bytes, EtcdEntry], now: Mapping[bytes, EtcdEntry]) -> list[bytes]:
    keys = (key for key in before.keys() | now.keys() if not key.startswith((_EVENTS, _LEASES)))
    return [key for key in keys if _value(before, key) != _value(now, key)]


def _value(entries: Mapping[bytes, EtcdEntry], key: bytes) -> bytes | None:
    return entries[key].value if key in entries else None


def _restless(keys: Iterable[bytes], remedy: str) -> ClusterError:
    named = listed(sorted(set(map(_shown, keys))), 5)
    return ClusterError(f"the cluster does not come to rest: {named} is written again and again; {remedy}")


def _order(change: Change) -> tuple[int, bytes]:
    key, value = change
    if value is not None:
        return len(_FIRST) + 2, key
    first = next((place for place, prefix in enumerate(_FIRST) if key.startswith(prefix)), len(_FIRST))
    return first + key.startswith(_EVENTS), key


@cache
def _classes() -> Mapping[str, Any]:
    return classes_of(_META)


def _finalizers(value: bytes) -> list[str]:
    """The finalizers of a stored object: in protobuf, or in JSON as custom resources are."""
    try:
        if value.startswith(b"{"):
            return [str(each) for each in json.loads(value)["metadata"].get("finalizers") or ()]
        return [str(each) for each in _classes()["Any"].FromString(opened(value).raw).metadata.finalizers]
    except (DecodeError, ValueError, KeyError):
        return []


def _is_usual(finalizers: Iterable[str]) -> bool:
    """Whether Kubernetes' own controllers have put them there, and would take them away."""
    found = list(finalizers)
    own = ("kubernetes.io/", "batch.kubernetes.io/", "resource.kubernetes.io/", "service.kubernetes.io/")
    names = ("foregroundDeletion", "orphan", "customresourcecleanup.apiextensions.k8s.io")
    return bool(found) and all(each in names or each.startswith(own) for each in found)


def _kind(key: bytes) -> str:
    return key.removeprefix(_ROOT).partition(b"/")[0].decode(errors="replace")


def _shown(key: bytes) -> str:
    return key.removeprefix(_ROOT).decode(errors="replace").replace("minions/", "nodes/")
