"""Put a cluster back to what it was: every key of its etcd that a test has added, changed or removed.

Nothing that a test leaves can hold this back: neither a webhook nor a finalizer is asked when a key is written. The
API server and the controllers see each change by their watches, as of any other. Objects keep their UIDs.

A controller may still be at work on what is being removed, and make something of it again, such as a pod of a Job. So
what is there is looked at again and again, until nothing is left to do.
"""

import asyncio
import time
from collections.abc import Iterable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, field

from kumulus.kube import ApiError, Client
from kumulus.model.words import listed
from kumulus.nodes.errors import ProviderError
from kumulus.runtimes.kwok.etcd_keys import EtcdEntry, EtcdKeys
from kumulus.testing import canaries
from kumulus.testing import stored_objects as stored
from kumulus.testing.errors import ClusterError
from kumulus.testing.stored_objects import EVENTS, FIRST, LEASES, NODES, Change

_WITHIN_S = 30.0
# Seconds for a controller to have made what it was about to make.
_QUIET_S = 0.05


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
        """Keep what there is, once nothing of it changes any more: something half done could not be put back.

        Args:
            rest: seconds for which nothing has to change.
        """
        ends = time.monotonic() + _WITHIN_S
        now = await asyncio.to_thread(self._now)
        while True:
            await asyncio.sleep(rest)
            before, now = now, await asyncio.to_thread(self._now)
            changed = _changed(before, now)
            if not changed:
                break
            if time.monotonic() > ends:
                raise _restless(changed, "end the program that does it, or mark the cluster later")
        # The leases of nodes that are gone are removed a while later.
        self._kept = {
            key: entry
            for key, entry in now.items()
            if not key.startswith(LEASES) or NODES + key.removeprefix(LEASES) in now
        }

    async def take_at_rest(self, client: Client) -> None:
        """Take it once controllers have done what they had to do: they would go on from there after each reset."""
        ends = time.monotonic() + _WITHIN_S
        before: dict[bytes, EtcdEntry] = {}
        await self.take()
        while time.monotonic() < ends and _changed(before, self._kept):
            before = self._kept
            kinds = {stored.kind_of(key) for key in before} & (canaries.KINDS - {"namespaces"})
            if not kinds:
                return
            # If a webhook, a policy or a quota that stays refuses a canary, its controller is not waited for.
            with suppress(ApiError):
                await _wait_until_seen(client, kinds, self._within, refused_for=0)
            now = await asyncio.to_thread(self._now)
            self._write([(key, None) for key in now if canaries.is_one(key)])
            await self.take()

    def entries(self) -> list[tuple[bytes, bytes]]:
        """The keys that were kept, with their values."""
        return [(key, entry.value) for key, entry in self._kept.items()]

    async def restore(self, client: Client, done: Reset) -> set[str]:
        """Put everything back but nodes that are gone, until two looks in turn find nothing to do, and no canary.

        Args:
            done: what has been done, to which this adds.

        Returns:
            The names of the nodes that are gone; they are made again by what makes nodes.
        """
        ends = time.monotonic() + _WITHIN_S
        gone: set[str] = set()
        owners: set[str] = set()
        quiet_looks = 0
        changes: list[Change] = []
        while time.monotonic() < ends:
            known_owners = set(owners)
            changes, without_canaries = await asyncio.to_thread(self._look, gone, done, owners)
            quiet_looks = 0 if changes else quiet_looks + 1
            if quiet_looks < 2:
                await self._wait(client, owners - known_owners, known_owners)
            elif without_canaries:
                return gone
            else:
                await asyncio.sleep(_QUIET_S)
        raise _restless(
            (key for key, _ in changes),
            "end the program that does it, such as an operator that the test has started, before the reset",
        )

    async def _wait(self, client: Client, new: set[str], known: set[str]) -> None:
        """Wait until the controllers have seen what was written, as far as they would make something of it.

        Args:
            new: kinds of owners that the last look has removed for the first time.
            known: those that were removed before it.
        """
        if new:
            await _wait_until_seen(client, new, self._within)
        elif known:
            # A canary's namespace is not gone at once, as controllers fill it: it is made only once.
            await _wait_until_seen(client, (known - {"namespaces"}) | {"deployments"}, self._within)
        else:
            await asyncio.sleep(_QUIET_S)

    def _look(self, gone: set[str], done: Reset, owners: set[str]) -> tuple[list[Change], bool]:
        """Find what differs and write it.

        If there are owners of a kind that was not removed before, only what goes first is written: what they own is
        next, when they are gone.

        Args:
            gone: the names of nodes that are gone, to which this adds.
            done: what has been done, to which this adds.
            owners: the kinds of owners that were removed, to which this adds.

        Returns:
            What differed; and whether no canary was left, either.
        """
        now = self._now()
        changes = list(self._changes(now, gone))
        kinds = {stored.kind_of(key) for key, value in changes if value is None} & canaries.KINDS
        of_canaries = {key for key, _ in changes if canaries.is_one(key)}
        first = [each for each in changes if each[0].startswith(FIRST)]
        if kinds - owners and not all(key in of_canaries for key, _ in first):
            owners |= kinds
            self._note(first, now, done)
            self._write(first)
            return first, False
        self._write(changes)
        # Events are reported a while after what they report, and nothing follows from them.
        changes = [each for each in changes if each[0] not in of_canaries and not each[0].startswith(EVENTS)]
        self._note(changes, now, done)
        return changes, all(key.startswith(EVENTS) for key in of_canaries)

    def accept_new_nodes(self, names: Iterable[str]) -> None:
        """Keep nodes that were made again, with their leases, in place of those that were there at first."""
        now = self._now()
        for name in names:
            for prefix in (NODES, LEASES):
                if (key := prefix + name.encode()) in now:
                    self._kept[key] = now[key]

    def _now(self) -> dict[bytes, EtcdEntry]:
        try:
            return {each.key: each for each in self._etcd.entries(stored.ROOT) if self._is_ours(each.key)}
        except ProviderError as error:
            raise ClusterError(f"the cluster cannot be reset or marked: {error}; start another one") from None

    def _is_ours(self, key: bytes) -> bool:
        """Whether a key is one to put back."""
        if key.startswith(stored.RENEWED):
            return False
        return not self._within or f"/{self._within}/".encode() in key

    def _changes(self, now: Mapping[bytes, EtcdEntry], gone: set[str]) -> Iterator[Change]:
        """What to write, so that the cluster is what it was; adds to the nodes that are gone."""
        kept = self._kept
        for key, entry in kept.items():
            if not key.startswith(NODES):
                continue
            name = key.removeprefix(NODES).decode()
            if name not in gone and (key not in now or now[key].created != entry.created):
                # Its leases and pods refer to the UID, which controllers know to be gone.
                gone.add(name)
        of_gone_nodes = {prefix + name.encode() for name in gone for prefix in (NODES, LEASES)}
        for key in of_gone_nodes & now.keys():
            yield key, None
        # The API server removes its services itself when their kinds are gone; before, it would make them again.
        has_new_kinds = any(key.startswith(stored.DEFINITIONS) for key in now.keys() - kept.keys())
        for key in now.keys() - kept.keys() - of_gone_nodes:
            if not (has_new_kinds and key.startswith(stored.SERVICES)):
                yield key, None
        for key, entry in kept.items():
            is_renewed = key.startswith(LEASES) and key in now
            if key in of_gone_nodes or key.startswith(EVENTS) or is_renewed:
                continue
            if key not in now or now[key].value != entry.value:
                yield key, entry.value

    def _write(self, changes: list[Change]) -> None:
        try:
            self._etcd.write(sorted(changes, key=stored.order))
        except ProviderError as error:
            raise ClusterError(f"the cluster cannot be reset or marked: {error}; start another one") from None

    def _note(self, changes: Iterable[Change], now: Mapping[bytes, EtcdEntry], done: Reset) -> None:
        """Add changes to what has been done."""
        for key, value in changes:
            if key.startswith(LEASES):
                continue
            if value is not None:
                done.restored += 1
                continue
            done.removed += 1
            hold = stored.hold(key, now[key].value)
            if hold and (text := f"{stored.shown(key)} ({hold})") not in done.forced:
                done.forced.append(text)


async def _wait_until_seen(client: Client, kinds: set[str], within: str, refused_for: float = _WITHIN_S) -> None:
    try:
        await canaries.wait_until_seen(client, kinds, within, refused_for=refused_for)
    except TimeoutError:
        raise ClusterError(
            "the cluster cannot be reset or marked: its kube-controller-manager does nothing; start another one"
        ) from None


def _changed(before: Mapping[bytes, EtcdEntry], now: Mapping[bytes, EtcdEntry]) -> list[bytes]:
    """The keys whose values differ, but for those of events and leases, which change all the time."""
    keys = (key for key in before.keys() | now.keys() if not key.startswith((EVENTS, LEASES)))
    return [key for key in keys if _value(before, key) != _value(now, key)]


def _value(entries: Mapping[bytes, EtcdEntry], key: bytes) -> bytes | None:
    return entries[key].value if key in entries else None


def _restless(keys: Iterable[bytes], remedy: str) -> ClusterError:
    named = listed(sorted(set(map(stored.shown, keys))), 5)
    return ClusterError(f"the cluster does not come to rest: {named} is written again and again; {remedy}")
