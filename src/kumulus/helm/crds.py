"""A chart's CRDs in a cluster: applied server-side with a field manager for each add-on, and removed with care.

A CRD that others made is used if it equals the chart's, and otherwise left alone: they may rely on it as it is.

Removing a CRD removes every object of its kind. So a CRD is removed only if it was made here, nobody else applies it,
and it has no objects left; see docs/decisions/helm-releases.md.
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from kumulus.kube.codecs import APPLY_PATCH, MERGE_PATCH
from kumulus.kube.errors import tolerating
from kumulus.kube.objects import find, persist, remove, wait_until_established
from kumulus.model.identity import STACK_ID, Owner

if TYPE_CHECKING:
    from kumulus.kube import Client

MADE_BY = "kumulus.io/crd-made-by"
DIGEST = "kumulus.io/crd-digest"
ESTABLISHED_S = 15.0
"""Seconds within which the API server accepts a CRD."""
_CRDS = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
_MANAGERS = "kumulus-crds-"


@dataclass(frozen=True)
class Maker:
    """An add-on of a stack, which marks the CRDs that it creates as its own."""

    cluster: str
    """What the stack calls the cluster."""
    addon: str
    identities: tuple[str, ...] = ()
    """The stack's: its current one first, then any that its state recorded before; empty for a stack without one."""

    @property
    def name(self) -> str:
        """The field manager with which it applies CRDs; as an annotation, it says who made one."""
        return f"{self.stack_prefix}{self.addon}"[:128]

    @property
    def stack_prefix(self) -> str:
        """The prefix of the names of all add-ons of the stack."""
        return f"{_MANAGERS}{self.cluster}-"

    @property
    def labels(self) -> dict[str, str]:
        """The mark on a CRD. Names alone are not enough: another checkout's add-on can have the same."""
        return {STACK_ID: self.identities[0]} if self.identities else {}

    def is_anothers(self, crd: Mapping[str, Any]) -> bool:
        """Whether a CRD is marked as another stack's, whatever names it carries."""
        owner = Owner.of(crd["metadata"])
        return owner is not None and owner.identity not in self.identities

    def is_of_the_stack(self, crd: Mapping[str, Any], made_by: str) -> bool:
        """Whether an add-on of this stack made a CRD, by the mark on it.

        The name of the add-on decides only for a stack that has no identity: `a-b-c` may be of cluster `a` or `a-b`.
        """
        owner = Owner.of(crd["metadata"])
        if owner is None and self.identities:
            return False
        return not self.is_anothers(crd) and made_by.startswith(self.stack_prefix)


@dataclass(frozen=True)
class CrdState:
    """A CRD in the cluster."""

    digest: str
    """Of the manifest that an add-on applied last; empty if none has."""
    made_by: str
    """The add-on that made it; empty for one that was there before."""


async def look(client: Client, names: list[str]) -> dict[str, CrdState]:
    """Those of some CRDs that exist."""
    found = await asyncio.gather(*(find(client, f"{_CRDS}/{name}") for name in names))
    notes = {name: _notes(crd) for name, crd in zip(names, found, strict=True) if crd}
    return {name: CrdState(note.get(DIGEST, ""), note.get(MADE_BY, "")) for name, note in notes.items()}


async def obstacle(client: Client, name: str, manifest: str, digest: str, maker: Maker) -> str:
    """Why a CRD cannot be created or updated: others made it, and it differs; empty if it can."""
    crd = await find(client, f"{_CRDS}/{name}")
    if crd is None or _may_write(crd, digest, maker) or await _is_same(client, crd, manifest, maker.name):
        return ""
    overwrite = " --overwrite" if MADE_BY in _notes(crd) else ""
    unmark = f"; kubectl label crd {name} {STACK_ID}-" if maker.is_anothers(crd) else ""
    return (
        f"{name} is there already and differs from the chart's ({_origin(crd)}); it is left alone. Use a version of "
        "the chart with the same CRDs, or write `crds: Skip` for the add-on, which then uses what is there; to hand it "
        "over to this stack, which upgrades and removes it from then on: "
        f"kubectl annotate crd {name} {MADE_BY}={maker.name}{overwrite}{unmark}"
    )


async def apply(client: Client, name: str, manifest: str, digest: str, maker: Maker) -> None:
    """Create a CRD, or update one of ours; returns when its kind can be used.

    A CRD of others is not touched: call :func:`obstacle` first.

    Raises:
        TimeoutError: the API server has not accepted it within :data:`ESTABLISHED_S`.
    """
    path = f"{_CRDS}/{name}"
    crd = await find(client, path)
    if crd is not None and not _may_write(crd, digest, maker):
        return
    params = {"fieldManager": maker.name, "force": "true"}
    await client.request("PATCH", path, params=params, body=manifest.encode(), content_type=APPLY_PATCH)
    made_by = maker.name if crd is None else _made_by(crd, maker)
    # The add-on that created a CRD marks it.
    labels = maker.labels if made_by == maker.name else {}
    change = {"metadata": {"annotations": {DIGEST: digest, MADE_BY: made_by}, "labels": labels}}
    await client.write("PATCH", path, change, content_type=MERGE_PATCH)
    if not await wait_until_established(client, path, ESTABLISHED_S):
        raise TimeoutError


async def take_away(client: Client, name: str, maker: Maker) -> str:
    """Remove a CRD if only the add-on uses it; returns why it was kept, or an empty text.

    The add-on's field manager leaves a CRD that stays, so that the last add-on that applies it can remove it.
    """
    path, kept = f"{_CRDS}/{name}", ""

    async def attempt() -> bool:
        nonlocal kept
        kept = await _removed_or_given_up(client, path, maker)
        return True

    # Another add-on may apply the CRD or give it up at the same time: the server then refuses, and it is read again.
    await persist(attempt, path, f"the CRD {name}")
    return kept


async def _removed_or_given_up(client: Client, path: str, maker: Maker) -> str:
    name, manager = path.rpartition("/")[2], maker.name
    crd = await find(client, path)
    if crd is None:
        return ""
    if _made_by(crd, maker) != manager:
        if manager in _appliers(crd):
            await _give_up(client, path, crd, manager)
        return ""
    if maker.is_anothers(crd):
        # Another checkout's add-on of the same name, whose field manager has the same name as ours.
        return ""
    others = [other for other in _appliers(crd) if other != manager]
    if others:
        # That add-on's stack is not known here; its next update marks the CRD.
        await _give_up(client, path, crd, manager, {"annotations": {MADE_BY: others[0]}, "labels": {STACK_ID: None}})
        return f"{name} is kept: {others[0].removeprefix(_MANAGERS)} uses it too"
    if await has_objects(client, crd):
        return f"{name} is kept: there are objects of it; kubectl delete crd {name} removes both"
    await remove(client, path, {"preconditions": {"resourceVersion": crd["metadata"]["resourceVersion"]}})
    return ""


async def _give_up(
    client: Client, path: str, crd: Mapping[str, Any], manager: str, marks: Mapping[str, Any] | None = None
) -> None:
    """Take an add-on's field manager off a CRD, so that the add-on no longer counts as one that uses it.

    Args:
        crd: as it was read. The server refuses (409) if others have changed it since.
        marks: annotations and labels that change with it.
    """
    applied = {"manager": manager, "operation": "Apply"}
    fields = [each for each in crd["metadata"]["managedFields"] if not applied.items() <= each.items()]
    metadata = {**(marks or {}), "resourceVersion": crd["metadata"]["resourceVersion"], "managedFields": fields}
    await client.write("PATCH", path, {"metadata": metadata}, content_type=MERGE_PATCH)


def _notes(crd: Mapping[str, Any]) -> dict[str, Any]:
    return crd["metadata"].get("annotations") or {}


def _made_by(crd: Mapping[str, Any], maker: Maker) -> str:
    """The field manager of the add-on that made a CRD; empty if no add-on has."""
    notes = _notes(crd)
    if made_by := str(notes.get(MADE_BY) or ""):
        return made_by
    # A run that was killed after it had created the CRD has not annotated it.
    return maker.name if DIGEST not in notes and maker.name in _appliers(crd) else ""


def _may_write(crd: Mapping[str, Any], digest: str, maker: Maker) -> bool:
    """Whether a CRD may be written: made by the same stack's add-ons, or by another stack's from the same manifest."""
    made_by = _made_by(crd, maker)
    if made_by == maker.name:
        # Another checkout's add-on of the same name has a field manager of the same name as ours.
        return not maker.is_anothers(crd)
    is_same_manifest = made_by != "" and _notes(crd).get(DIGEST) == digest
    return is_same_manifest or maker.is_of_the_stack(crd, made_by)


async def _is_same(client: Client, crd: Mapping[str, Any], manifest: str, manager: str) -> bool:
    """Whether applying a manifest would leave a CRD as it is, by a dry run, as only the server knows its defaults."""
    path = f"{_CRDS}/{crd['metadata']['name']}"
    params = {"fieldManager": manager, "force": "true", "dryRun": "All"}
    then = await client.request("PATCH", path, params=params, body=manifest.encode(), content_type=APPLY_PATCH)
    return bool(then["spec"] == crd["spec"])


_VERSIONS = (
    "app.kubernetes.io/version",
    "helm.sh/chart",
    "operator.prometheus.io/version",
    "gateway.networking.k8s.io/bundle-version",
    "controller-gen.kubebuilder.io/version",
)


def _origin(crd: Mapping[str, Any]) -> str:
    """Who made a CRD, its version, and when, as far as its metadata says."""
    metadata = crd["metadata"]
    marks = {**(metadata.get("labels") or {}), **(metadata.get("annotations") or {})}
    if made_by := str(marks.get(MADE_BY) or ""):
        who = f"made by {made_by.removeprefix(_MANAGERS)} of another stack"
    elif "meta.helm.sh/release-name" in marks:
        release = f"{marks.get('meta.helm.sh/release-namespace', '')}/{marks['meta.helm.sh/release-name']}"
        who = f"made by the Helm release {release}"
    else:
        fields = [each for each in metadata.get("managedFields") or [] if "f:spec" in (each.get("fieldsV1") or {})]
        names = {str(each["manager"]) for each in fields if each.get("manager")}
        who = f"made with {', '.join(sorted(names))}" if names else "made by others"
    versions = [f"{key.rpartition('/')[2]} {marks[key]}" for key in _VERSIONS if marks.get(key)]
    return ", ".join([who, *versions[:1], f"since {metadata.get('creationTimestamp')}"])


def _appliers(crd: Mapping[str, Any]) -> list[str]:
    """The field managers of the add-ons that apply a CRD, of any stack."""
    fields = crd["metadata"].get("managedFields") or []
    names = {str(entry.get("manager")) for entry in fields if entry.get("operation") == "Apply"}
    return sorted(name for name in names if name.startswith(_MANAGERS))


async def has_objects(client: Client, crd: Mapping[str, Any]) -> bool:
    """Whether there are objects of a CRD's kind; True as well if no version is served in which they can be listed."""
    spec = crd["spec"]
    version = next((each["name"] for each in spec["versions"] if each.get("served")), None)
    if version is None:
        return True
    with tolerating(404):
        found = await client.get(f"/apis/{spec['group']}/{version}/{spec['names']['plural']}", {"limit": "1"})
        return bool(found.get("items"))
    return False
