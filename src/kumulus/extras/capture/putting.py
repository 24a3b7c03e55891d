"""Creates the objects of a workload file in a cluster: referenced objects first, then the pods, on their old nodes.

The kinds of schedulers are defined by the pinned tools' definitions, so that a clone can store captured queues without
running any. Kueue's older versions are converted by a webhook of its controller, which does not run here: a
capture asks for the stored version, which needs no conversion.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from kumulus.extras.capture.claims import allocate, is_made
from kumulus.extras.capture.devices import owned
from kumulus.extras.capture.dumps import FileRefused, documents
from kumulus.extras.capture.fields import LAST, OBJECTS
from kumulus.extras.capture.grammar import reduced
from kumulus.extras.capture.kinds import OF_SCHEDULERS, PODS, kind_of
from kumulus.extras.capture.reading import POD
from kumulus.extras.capture.workload import API_VERSION, SHAPE, manifest, pods
from kumulus.extras.schedulers import definitions, registry
from kumulus.extras.schedulers.errors import SchedulerError
from kumulus.extras.schedulers.kinds import ObjectKind
from kumulus.extras.schedulers.objects import CAPTURED_LABEL, established
from kumulus.kube import ApiError, objects
from kumulus.kube.bulk import for_each
from kumulus.kube.codecs import METADATA_ONLY
from kumulus.kube.errors import tolerating
from kumulus.kube.objects import NODES

if TYPE_CHECKING:
    from kumulus.kube import Client

_ACCOUNTS_WITHIN = 60.0
Progress = Callable[[str, int], None]
"""Takes a kind and how many of its objects exist."""
_DEFINITIONS = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
_NEED_A_SPEC = frozenset(
    ("CSIDriver", "CSINode", *(kind.name for kind in OF_SCHEDULERS if "spec" in (kind.fields or {})))
)


@dataclass
class Put:
    """The result of putting a workload file into a cluster."""

    made: dict[str, int] = field(default_factory=dict)
    """How many objects exist now, by kind."""
    refused: dict[str, list[str]] = field(default_factory=dict)
    """What the cluster refused, by kind: names, with its messages."""
    unserved: dict[str, int] = field(default_factory=dict)
    """Kinds that the cluster does not have, with how many objects of each."""
    undefined: dict[str, str] = field(default_factory=dict)
    """Why some of these kinds could not be defined, by kind."""
    claims: list[str] = field(default_factory=list)
    """Claims that have not the devices that they have at the source, each with the reason."""

    def about_claims(self) -> list[str]:
        """A line about these claims; none if there are none."""
        if not self.claims:
            return []
        return [f"not with the devices of the source: {len(self.claims):,} ResourceClaims, such as {self.claims[0]}"]


def read(file: Path) -> Iterator[dict[str, Any]]:
    """The documents of a workload file, reduced to what a capture writes."""
    with file.open("rb") as opened:
        for document in documents(opened, file.name):
            kind = document.get("kind") if isinstance(document, dict) else None
            if kind == SHAPE and document.get("apiVersion") == API_VERSION and isinstance(document.get("pods"), list):
                yield document
            elif isinstance(kind, str) and kind in OBJECTS:
                kept = reduced(OBJECTS[kind], document)
                yield {"apiVersion": str(document.get("apiVersion")), "kind": kind, **(kept or {})}
            else:
                raise FileRefused(f"{file} has a document that no capture writes: kind {str(kind)[:60]!r}")


async def put(client: Client, file: Path, progress: Progress) -> Put:
    """Create the objects and pods of a workload file in a cluster; existing ones are not changed."""
    done, last, waiting = Put(), list[dict[str, Any]](), list[dict[str, Any]]()
    first: list[dict[str, Any]] = []
    work = Putting(client, done, progress)
    bound: list[dict[str, Any]] = []
    for document in read(file):
        if document["kind"] != SHAPE:
            (last if document["kind"] in LAST else first).append(document)
            continue
        for pod in checked(document, file):
            (bound if pod.get("node") else waiting).append(pod)
    done.undefined = await define(client, (*first, *last))
    slices = [each for each in first if each["kind"] == "ResourceSlice"]
    uids = await _nodes(client) if slices else {}
    for kind in OBJECTS:
        listed = [each for each in first if each["kind"] == kind]
        await work.objects([owned(each, uids) for each in listed] if kind == "ResourceSlice" else listed)
        if kind == "Namespace":
            await accounts(client, {str(pod["namespace"]) for pod in (*bound, *waiting)})
    # Waiting pods are created only after all bound pods occupy their nodes and have their devices.
    await work.pods(bound)
    done.claims = await allocate(client, first)
    await work.pods(waiting)
    await work.objects(last)
    return done


def checked(shape: dict[str, Any], file: Path) -> Iterator[dict[str, Any]]:
    """The pods of a shape, reduced again: a foreign file must put no more into a cluster than a capture would."""
    try:
        for pod in pods(shape):
            kept = reduced(POD, pod)
            kept["ownerKind"] = str(pod.get("ownerKind") or "")
            if not kept.get("spec", {}).get("containers") or not kept.get("name") or not kept.get("namespace"):
                raise ValueError("a pod needs a name, a namespace and containers")
            yield kept
    except (KeyError, TypeError, ValueError, AttributeError) as error:
        raise FileRefused(f"{file} has a {SHAPE} that cannot be used: {error}") from None


@dataclass
class Putting:
    """Posts objects and pods into a cluster, and records the results."""

    client: Client
    done: Put
    progress: Progress

    async def objects(self, listed: list[dict[str, Any]]) -> None:
        """Post objects of one or several kinds."""
        for kind in dict.fromkeys(each["kind"] for each in listed):
            await self._post(kind, [posted(each) for each in listed if each["kind"] == kind and not is_made(each)])

    async def pods(self, listed: list[dict[str, Any]]) -> None:
        """Post pods."""
        await self._post("Pod", [manifest(each) for each in listed])

    async def _post(self, kind: str, manifests: list[dict[str, Any]]) -> None:
        client, made = self.client, self.done.made

        async def one(body: dict[str, Any]) -> None:
            try:
                await client.write("POST", path_of(kind, body), body)
            except ApiError as error:
                if error.status == 409 and error.reason == "AlreadyExists":
                    made[kind] = made.get(kind, 0) + 1
                    return
                if error.status == 404 and kind not in ("Pod", "PersistentVolumeClaim"):
                    self.done.unserved[kind] = self.done.unserved.get(kind, 0) + 1
                    return
                if error.status in (400, 403, 404, 422):
                    self.done.refused.setdefault(kind, []).append(f"{body['metadata']['name']}: {error.message}")
                    return
                raise
            made[kind] = made.get(kind, 0) + 1

        outcome = await for_each(
            manifests,
            one,
            workers=client.connections,
            most_failures=1,
            progress=lambda _: self.progress(kind, made.get(kind, 0)),
        )
        if outcome.failed:
            raise outcome.failed[0][1]


def path_of(kind: str, body: dict[str, Any]) -> str:
    """The path of the collection of a captured object."""
    known = PODS if kind == "Pod" else kind_of(kind, str(body["apiVersion"]))
    version = str(body["apiVersion"]).rpartition("/")[2]
    if known is None or version not in known.versions:
        raise FileRefused(f"{kind} of {body['apiVersion']}: no capture has that version")
    root = known.path(version)
    namespace = body["metadata"].get("namespace")
    head, _, plural = root.rpartition("/")
    return f"{head}/namespaces/{namespace}/{plural}" if namespace else root


def posted(kept: dict[str, Any]) -> dict[str, Any]:
    """The manifest to post for a captured object, with fields that Kubernetes requires but no scheduler reads."""
    spec = kept.get("spec") or {}
    if kept["kind"] == "PersistentVolume":
        name = kept["metadata"]["name"]
        behind = {"csi": {**spec["csi"], "volumeHandle": name}} if "csi" in spec else {"hostPath": {"path": f"/{name}"}}
        return {**kept, "spec": {**spec, **behind}}
    if kept["kind"] == "ResourceClaim":
        # Its devices come once its pods exist.
        return {**{key: value for key, value in kept.items() if key != "status"}, "spec": spec}
    if kept["kind"] in _NEED_A_SPEC:
        return {**kept, "spec": {"drivers": []} | spec if kept["kind"] == "CSINode" else spec}
    return kept


async def _nodes(client: Client) -> dict[str, str]:
    """The nodes' UIDs, by name."""
    pages = client.pages(NODES, accept=METADATA_ONLY)
    return {each["metadata"]["name"]: each["metadata"]["uid"] async for page in pages for each in page}


async def accounts(client: Client, namespaces: set[str]) -> None:
    """Wait until each namespace has its default service account: admission rejects pods before."""
    waiting = (objects.wait_for_account(client, each, _ACCOUNTS_WITHIN) for each in sorted(namespaces))
    await asyncio.gather(*waiting)


async def define(client: Client, objects: Iterable[Mapping[str, Any]]) -> dict[str, str]:
    """Define a capture's kinds that the cluster lacks; returns, by kind, why some could not be: no tool is built."""
    missing: dict[str, str] = {}
    kinds: set[ObjectKind | None] = {kind_of(str(each["kind"]), str(each["apiVersion"])) for each in objects}
    for scheduler in registry.every():
        wanted = {(kind.group, kind.plural): kind.name for kind in scheduler.kinds if kind in kinds}
        if scheduler.is_own or not wanted:
            continue
        try:
            found = definitions.crds(scheduler.name)
        except SchedulerError as error:
            missing |= dict.fromkeys(wanted.values(), str(error))
            continue
        for definition in found:
            if (definition["spec"]["group"], definition["spec"]["names"]["plural"]) in wanted:
                await _define(client, definition, scheduler.name)
    return missing


async def _define(client: Client, definition: dict[str, Any], tool: str) -> None:
    metadata = definition["metadata"]
    spec = {key: value for key, value in definition["spec"].items() if key != "conversion"}
    marked = {**metadata, "labels": {**(metadata.get("labels") or {}), CAPTURED_LABEL: tool}}
    # An existing definition is used as it is: the cluster's own, or one of a clone that is being restored.
    with tolerating(409):
        await client.write("POST", _DEFINITIONS, {**definition, "metadata": marked, "spec": spec})
    await established(client, f"{_DEFINITIONS}/{metadata['name']}")
