"""HyperNodes in a cluster: what is there compared with what is wanted, and made so."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from kube import ApiError, objects
from kube.bulk import Outcome, for_each
from spec.hypernodes import HyperNode
from spec.pools import CLUSTER_LABEL

if TYPE_CHECKING:
    from kube import Client

API_VERSION = "topology.volcano.sh/v1alpha1"
CRD = "hypernodes.topology.volcano.sh"
HYPERNODES = f"/apis/{API_VERSION}/hypernodes"


@dataclass
class Seen:
    """HyperNodes as they are.

    Attributes:
        installed: whether the cluster knows the kind at all.
        missing: wanted names that are not there.
        altered: what differs, by name.
        extra: HyperNodes that carry the cluster's label and are not wanted.
        matching: how many are as wanted.
    """

    installed: bool = True
    missing: list[str] = field(default_factory=list)
    altered: dict[str, str] = field(default_factory=dict)
    extra: list[str] = field(default_factory=list)
    matching: int = 0

    @property
    def present(self) -> int:
        """How many of the wanted ones exist."""
        return self.matching + len(self.altered)


async def look(client: Client, wanted: Mapping[str, HyperNode], cluster: str, patience: float | None = None) -> Seen:
    """Compare the HyperNodes that carry a cluster's label with those wanted.

    Args:
        client: the cluster's API.
        wanted: by name.
        cluster: the cluster's name.
        patience: seconds to keep trying an unreachable server.

    Raises:
        ApiError, Unreachable: the server could not be asked.
    """
    seen = Seen()
    unseen = dict.fromkeys(wanted)
    try:
        async for page in client.pages(HYPERNODES, _ours(cluster), patience=patience):
            for item in page:
                name = item["metadata"]["name"]
                if name not in wanted:
                    seen.extra.append(name)
                    continue
                del unseen[name]
                if different := _differences(item.get("spec") or {}, wanted[name]):
                    seen.altered[name] = different
                else:
                    seen.matching += 1
    except ApiError as error:
        if error.status != 404:
            raise
        return Seen(installed=False)
    seen.missing = list(unseen)
    return seen


async def converge(
    client: Client, wanted: Mapping[str, HyperNode], cluster: str, seen: Seen, stop: asyncio.Event
) -> list[str]:
    """Make the HyperNodes what is wanted, the lowest tiers first.

    Args:
        client: the cluster's API.
        wanted: by name.
        cluster: the cluster's name, the value of their label.
        seen: what was there just before.
        stop: when set, nothing new is begun.

    Returns:
        What could not be done, a line for each kind of failure; empty when all is as wanted.
    """

    async def write(name: str) -> None:
        body = {
            "apiVersion": API_VERSION,
            "kind": "HyperNode",
            "metadata": {"name": name, "labels": {CLUSTER_LABEL: cluster}},
            "spec": wanted[name].spec(),
        }
        # Merged into one of ours that differs, or that lost its label.
        await objects.create_or_merge(client, HYPERNODES, body)

    wrong = {*seen.altered, *seen.missing}
    writes = [name for name in wanted if name in wrong]
    done = await for_each(writes, write, workers=client.connections, stop=stop)
    return _failures(done) + await remove(client, seen.extra, stop)


async def remove(client: Client, names: list[str], stop: asyncio.Event) -> list[str]:
    """Remove HyperNodes; one that is gone already is no failure. Returns what `converge` does."""

    async def delete(name: str) -> None:
        await objects.remove(client, f"{HYPERNODES}/{name}")

    return _failures(await for_each(names, delete, workers=client.connections, stop=stop))


def _ours(cluster: str) -> dict[str, str]:
    return {"labelSelector": f"{CLUSTER_LABEL}={cluster}"}


def _differences(spec: Mapping[str, Any], wanted: HyperNode) -> str:
    """Which fields differ: "tier: 2 instead of 1; members"; empty when none does."""
    found = []
    for key, want in wanted.spec().items():
        if spec.get(key) != want:
            found.append(key if key == "members" else f"{key}: {spec.get(key)} instead of {want}")
    return "; ".join(found)


def _failures(outcome: Outcome[str]) -> list[str]:
    problems = [f"{name}: {error}" for name, error in outcome.failed[:3]]
    return problems + ([f"{outcome.skipped:,} HyperNodes are left to do"] if outcome.skipped else [])
