"""Compare the HyperNodes in a cluster with those that are wanted, and converge them."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from kumulus.extras.schedulers.fabrics import HyperNode
from kumulus.kube import ApiError, objects
from kumulus.kube.bulk import BulkOutcome, for_each
from kumulus.kube.codecs import USER_AGENT
from kumulus.model.identity import NOBODY, STACK_ID, Owner
from kumulus.model.pools import CLUSTER_LABEL
from kumulus.model.words import listed

if TYPE_CHECKING:
    from kumulus.kube import Client

API_VERSION = "topology.volcano.sh/v1alpha1"
CRD = "hypernodes.topology.volcano.sh"
HYPERNODES = f"/apis/{API_VERSION}/hypernodes"


@dataclass
class HyperNodesState:
    """HyperNodes as they are."""

    installed: bool = True
    """Whether the cluster knows the kind at all."""
    missing: list[str] = field(default_factory=list)
    """Wanted names that are not there."""
    altered: dict[str, str] = field(default_factory=dict)
    """What differs, by name."""
    extra: list[str] = field(default_factory=list)
    """HyperNodes that carry the cluster's label but are not wanted."""
    foreign: dict[str, str] = field(default_factory=dict)
    """Wanted names that other owners' HyperNodes have, with the owner in words."""
    matching: int = 0

    @property
    def present(self) -> int:
        """How many of the wanted ones exist."""
        return self.matching + len(self.altered)


async def look(
    client: Client,
    wanted: Mapping[str, HyperNode],
    cluster: str,
    patience: float | None = None,
    *,
    owner: Owner = NOBODY,
    recorded: str | None = None,
) -> HyperNodesState:
    """Compare a cluster's HyperNodes with the wanted ones.

    The stack's identity makes a HyperNode ours. If it carries no identity, the cluster's label decides if the stack
    has it in its state; one that Kumulus made and that has no label has only lost it.

    Args:
        recorded: the identity under which the stack has them in its state, empty when it had none; None if they are
            not in the state.
    """
    seen = HyperNodesState()
    unseen = dict.fromkeys(wanted)
    try:
        async for page in client.pages(HYPERNODES, patience=patience):
            for item in page:
                name = item["metadata"]["name"]
                owner_text = _owner_text(item["metadata"], cluster, owner, recorded)
                if owner_text is None and name in wanted:
                    del unseen[name]
                    _compare(seen, item, wanted[name], owner)
                elif owner_text is None:
                    seen.extra.append(name)
                elif owner_text and name in wanted:
                    seen.foreign[name] = owner_text
    except ApiError as error:
        if error.status != 404:
            raise
        return HyperNodesState(installed=False)
    seen.missing = list(unseen)
    return seen


def _compare(seen: HyperNodesState, item: Mapping[str, Any], wanted: HyperNode, owner: Owner) -> None:
    """Count one of the stack's HyperNodes as altered or as matching."""
    metadata = item["metadata"]
    unmarked = owner.identity and (metadata.get("labels") or {}).get(STACK_ID) != owner.identity
    if different := _differences(item.get("spec") or {}, wanted) or ("owner" if unmarked else ""):
        seen.altered[metadata["name"]] = different
    else:
        seen.matching += 1


async def converge(
    client: Client,
    wanted: Mapping[str, HyperNode],
    cluster: str,
    seen: HyperNodesState,
    stop: asyncio.Event,
    owner: Owner = NOBODY,
) -> list[str]:
    """Make the HyperNodes as wanted, the lowest tiers first; returns a line for each failure.

    They were ``seen`` just before; no wanted name may be in :attr:`HyperNodesState.foreign`.
    """

    async def write(name: str) -> None:
        # Merged into one of ours that differs or has lost its label.
        labels = {CLUSTER_LABEL: cluster, **owner.labels}
        await objects.create_or_merge(client, HYPERNODES, manifest(wanted[name], labels))

    wrong = {*seen.altered, *seen.missing}
    writes = [name for name in wanted if name in wrong]
    done = await for_each(writes, write, workers=client.connections, stop=stop)
    return _failures(done) + await remove(client, seen.extra, stop)


async def remove(client: Client, names: list[str], stop: asyncio.Event) -> list[str]:
    """Remove HyperNodes; it is no failure if one is gone already. Returns the same as `converge`."""

    async def delete(name: str) -> None:
        await objects.remove(client, f"{HYPERNODES}/{name}")

    return _failures(await for_each(names, delete, workers=client.connections, stop=stop))


def manifest(node: HyperNode, labels: Mapping[str, str]) -> dict[str, Any]:
    """A HyperNode to create."""
    metadata = {"name": node.name, "labels": dict(labels)}
    return {"apiVersion": API_VERSION, "kind": "HyperNode", "metadata": metadata, "spec": node.spec()}


def taken(seen: HyperNodesState) -> str:
    """The message about wanted names that other owners' HyperNodes have, with a remedy; empty when there are none."""
    if not seen.foreign:
        return ""
    named = listed([f"{name} ({owner_text})" for name, owner_text in sorted(seen.foreign.items())], 3)
    example = min(seen.foreign)
    return (
        f"there already, and not this stack's: {named}; they are left alone. Give the pool or its zone another "
        f"name, or remove them where they were made (kubectl delete hypernode {example})"
    )


def _owner_text(metadata: Mapping[str, Any], cluster: str, owner: Owner, recorded: str | None) -> str | None:
    """The owner of a HyperNode, in words; None when it is ours, empty when it is ours but has lost its label."""
    labels = metadata.get("labels") or {}
    labelled, marked = labels.get(CLUSTER_LABEL), Owner.of(metadata)
    if marked is not None:
        return None if marked.identity in (owner.identity, recorded) else f"of {marked}"
    if owner.identity and recorded is None:
        return f"of the cluster {labelled!r} of a stack without an identity" if labelled else _maker(metadata)
    if labelled == cluster:
        return None
    if labelled:
        return f"of the cluster {labelled!r} of another stack"
    return _maker(metadata)


def _maker(metadata: Mapping[str, Any]) -> str:
    """What made a HyperNode, in words; empty when Kumulus made it."""
    managers = {
        str(entry.get("manager")): str(entry.get("operation"))
        for entry in metadata.get("managedFields") or []
        if "f:spec" in (entry.get("fieldsV1") or {})
    }
    if USER_AGENT in managers:
        return ""
    return f"made with {', '.join(sorted(managers))}" if managers else "made by somebody else"


def _differences(spec: Mapping[str, Any], wanted: HyperNode) -> str:
    """Which fields differ: "tier: 2 instead of 1; members"; empty when none does."""
    return "; ".join(
        key if key == "members" else f"{key}: {spec.get(key)} instead of {want}"
        for key, want in wanted.spec().items()
        if spec.get(key) != want
    )


def _failures(outcome: BulkOutcome[str]) -> list[str]:
    problems = [f"{name}: {error}" for name, error in outcome.failed[:3]]
    return problems + ([f"{outcome.skipped:,} HyperNodes are left to do"] if outcome.skipped else [])
