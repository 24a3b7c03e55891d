"""Helm's own record of a release: a Secret for each revision, in the release's namespace.

A killed update leaves a revision behind that makes Helm refuse every further operation. Once it is marked as failed,
both `helm install --replace` and `helm upgrade` work again; see docs/decisions/helm-releases.md.
Format: helm.sh/helm/v3, pkg/storage/driver/secrets.go and util.go.
"""

from __future__ import annotations

import base64
import gzip
import json
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from kumulus.kube import ApiError
from kumulus.kube.codecs import METADATA_ONLY
from kumulus.model.identity import STACK_ID, Owner

if TYPE_CHECKING:
    from kumulus.kube import Client

RECORDED = "kumulus.io/recorded"
"""A label on the revisions of a release that is in a Pulumi state; Helm copies it to later revisions."""
_UNDER_WAY = ("pending-install", "pending-upgrade", "pending-rollback", "uninstalling")
# What Helm refuses to install over; it replaces a release that failed.
_INSTALLED = ("deployed", "superseded", "unknown")


@dataclass(frozen=True)
class Revision:
    """A revision of a release."""

    path: str
    """That of the Secret that it is recorded in."""
    uid: str
    number: int
    """From 1."""
    status: str
    """Helm's, such as `deployed`."""
    recorded: bool
    """Whether a Pulumi state has the release."""
    owner: Owner | None = None
    """The stack that has it; None if that is not known."""


async def revisions(client: Client, namespace: str, name: str, patience: float) -> list[Revision]:
    """A release's revisions, the oldest first; none if there is no such release."""
    secrets, selector = f"/api/v1/namespaces/{namespace}/secrets", {"labelSelector": f"owner=helm,name={name}"}
    found = []
    async for page in client.pages(secrets, selector, patience=patience, accept=METADATA_ONLY):
        found += [_revision(secrets, item["metadata"]) for item in page]
    return sorted(found, key=lambda revision: revision.number)


async def is_there(client: Client, name: str, owner: Owner) -> bool:
    """Whether a stack has a release of this name; with an empty one, any. False if the cluster does not let us look."""
    named = f"name={name}," if name else ""
    selector = {"labelSelector": f"owner=helm,{named}{STACK_ID}={owner.identity}", "limit": "1"}
    try:
        return bool((await client.get("/api/v1/secrets", selector, accept=METADATA_ONLY))["items"])
    except ApiError as error:
        if error.status != 403:
            raise
        return False


def leftover(found: Sequence[Revision], foreign: str) -> str:
    """What prevents Helm from installing or upgrading a release of the stack; empty if nothing does.

    Args:
        foreign: the uid of a revision that somebody else had installed before the stack did.
    """
    if not found:
        return ""
    known = any(revision.recorded for revision in found)
    if not known and any(revision.uid == foreign for revision in found):
        return ""
    last = found[-1]
    if last.status in _UNDER_WAY:
        return f"revision {last.number} was left {last.status}"
    if known or last.status not in _INSTALLED:
        return ""
    return f"revision {last.number} is {last.status} and was never recorded"


def owner_of(found: Sequence[Revision]) -> Owner | None:
    """The stack that has a release, by its revisions; None if none of them says.

    Helm copies labels to later revisions, and removes early ones, so the last one with an owner decides.
    """
    owners = [revision.owner for revision in found if revision.owner is not None]
    return owners[-1] if owners else None


def is_anothers(found: Sequence[Revision], mine: Owner, *, proven: bool) -> bool:
    """Whether there is a release, and it is not the stack's.

    Args:
        found: its revisions.
        proven: whether the stack owns a release without an identity, because it has it on record.
    """
    owner = owner_of(found)
    is_ours = proven if owner is None else mine.is_known_by(owner.identity)
    return bool(found) and not is_ours


async def description(client: Client, revision: Revision, patience: float) -> str:
    """The description that the release's resource has last passed to Helm."""
    stored = await client.get(revision.path, patience=patience)
    return str(decoded(stored["data"]["release"])["info"].get("description") or "")


async def mark_failed(client: Client, revision: Revision) -> None:
    """Mark an interrupted revision as failed for Helm."""
    stored = await client.get(revision.path)
    release = decoded(stored["data"]["release"])
    release["info"] |= {"status": "failed", "description": "interrupted; marked as failed by kumulus"}
    await _put(client, revision, {**stored, "data": {"release": encoded(release)}}, {"status": "failed"})


async def mark_recorded(client: Client, revision: Revision, owner: Owner) -> None:
    """Label a revision to record that a stack's state has the release."""
    await _put(client, revision, await client.get(revision.path), {RECORDED: "true", **owner.labels})


def decoded(data: str) -> dict[str, Any]:
    """Decode a release from a Secret's data: JSON, compressed with gzip, and Base64 twice."""
    found: dict[str, Any] = json.loads(gzip.decompress(base64.b64decode(base64.b64decode(data))))
    return found


def encoded(release: dict[str, Any]) -> str:
    """The inverse of :func:`decoded`."""
    zipped = gzip.compress(json.dumps(release, separators=(",", ":")).encode())
    return base64.b64encode(base64.b64encode(zipped)).decode()


def _revision(secrets: str, metadata: dict[str, Any]) -> Revision:
    labels = metadata.get("labels") or {}
    return Revision(
        path=f"{secrets}/{metadata['name']}",
        uid=str(metadata["uid"]),
        number=int(labels.get("version") or 0),
        status=str(labels.get("status") or ""),
        recorded=labels.get(RECORDED) == "true",
        owner=Owner.of(metadata),
    )


async def _put(client: Client, revision: Revision, stored: dict[str, Any], labels: dict[str, str]) -> None:
    """Write a revision with further labels, unless somebody else has changed it since.

    It is replaced, not patched, as users of Helm may update Secrets, but not always patch them.
    """
    metadata = {**stored["metadata"], "labels": {**stored["metadata"]["labels"], **labels}}
    await client.write("PUT", revision.path, {**stored, "metadata": metadata})
