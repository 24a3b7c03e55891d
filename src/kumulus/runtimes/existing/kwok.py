"""Whether KWOK is in a cluster already, and who owns it; the program calls this and then declares KWOK or not."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from kumulus.kube import ApiError, KubeconfigError, Unreachable, objects
from kumulus.kwok.stages import API_VERSION
from kumulus.model.plain import UNKNOWN
from kumulus.runtimes.existing.source import ContextSource, not_asked

if TYPE_CHECKING:
    from kumulus.kube import Client

FIND_KWOK = "kumulus:index:findKwok"
_DEPLOYMENTS = "/apis/apps/v1/deployments"
# The chart's labels, and those of upstream's kustomization.
_SELECTORS = ("app.kubernetes.io/name=kwok", "app=kwok-controller")
_DEFINITION = f"/apis/apiextensions.k8s.io/v1/customresourcedefinitions/stages.{API_VERSION.partition('/')[0]}"


async def find_kwok(arguments: dict[str, Any]) -> dict[str, Any]:
    """Look for a kwok-controller that this stack has not installed.

    Args:
        arguments: ``kubeconfig`` (a path or a content) and ``context``, as in the runtime's options, and ``release``:
            the name of the stack's own release.

    Returns:
        ``controller``: the foreign controller as ``<namespace>/<name>``, or "". ``stages``: whether the cluster has
        KWOK's stages as objects. They are "" and False if the cluster could not be asked; ``problem`` then says why.
        A kubeconfig that cannot be used and missing permissions are no ``problem`` here, since the resource that
        declares the cluster reports them in full.
    """
    nothing = {"controller": "", "stages": False}
    if UNKNOWN in (arguments.get("kubeconfig"), arguments.get("context")):
        return nothing
    try:
        source = ContextSource.of(arguments)
    except KubeconfigError:
        return nothing
    try:
        async with source.client() as client:
            return {
                "controller": await others_controller(client, str(arguments.get("release"))),
                "stages": await objects.find(client, _DEFINITION) is not None,
            }
    except KubeconfigError:
        return nothing
    except (ApiError, Unreachable) as error:
        if isinstance(error, ApiError) and error.status == 403:
            return nothing
        return {**nothing, "problem": str(not_asked(source, error))}


async def others_controller(client: Client, release: str = "") -> str:
    """Find a foreign kwok-controller, as ``<namespace>/<name>``; empty if there is none, or if the stack has its own.

    A stack that has installed KWOK, as the release of that name, goes on using it.
    """
    theirs = ""
    for selector in _SELECTORS:
        found = await client.get(_DEPLOYMENTS, {"labelSelector": selector})
        for item in found.get("items") or []:
            metadata = item["metadata"]
            if release and (metadata.get("labels") or {}).get("app.kubernetes.io/instance") == release:
                # Otherwise a foreign one installed later would make the next update remove the stack's own.
                return ""
            theirs = theirs or f"{metadata['namespace']}/{metadata['name']}"
    return theirs
