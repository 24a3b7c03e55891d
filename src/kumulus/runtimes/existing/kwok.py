"""Whether KWOK is in a cluster already, and whose it is: asked by the program, which then declares it or not."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from kumulus.kube import ApiError, KubeconfigError, Unreachable, objects
from kumulus.kwok.stages import API_VERSION
from kumulus.model.unknown import UNKNOWN
from kumulus.runtimes.existing.source import Source

if TYPE_CHECKING:
    from kumulus.kube import Client

FIND_KWOK = "kumulus:index:findKwok"
_DEPLOYMENTS = "/apis/apps/v1/deployments"
# The chart's labels, and those of upstream's kustomization.
_SELECTORS = ("app.kubernetes.io/name=kwok", "app=kwok-controller")
_DEFINITION = f"/apis/apiextensions.k8s.io/v1/customresourcedefinitions/stages.{API_VERSION.partition('/')[0]}"
_PATIENCE = 5.0


async def find_kwok(arguments: dict[str, Any]) -> dict[str, Any]:
    """Look for a kwok-controller that another than this stack has installed.

    Args:
        arguments: ``kubeconfig`` (a path, or the content of one) and ``context``, as the runtime's options have them,
            and ``release``: the name of the release by which the stack's own is known.

    Returns:
        ``controller``: where another's is, ``<namespace>/<name>``, or "". ``stages``: whether the cluster takes KWOK's
        stages as objects. Of a cluster that cannot be asked nothing is known, and nothing is said: what is wrong with
        it is reported where it is declared.
    """
    nothing = {"controller": "", "stages": False}
    if UNKNOWN in (arguments.get("kubeconfig"), arguments.get("context")):
        return nothing
    # Imported here: a plugin that only compares properties needs no HTTP library.
    from kumulus.kube import Client

    try:
        connection = Source.of(arguments).connection()
        async with Client(connection, patience=_PATIENCE, request_timeout=_PATIENCE) as client:
            return {
                "controller": await others_controller(client, str(arguments.get("release"))),
                "stages": await objects.find(client, _DEFINITION) is not None,
            }
    except (ApiError, KubeconfigError, Unreachable):
        return nothing


async def others_controller(client: Client, release: str = "") -> str:
    """Where another's kwok-controller is, for a stack that has none of its own; what it has installed stays its choice.

    Args:
        client: of the cluster.
        release: by which the stack's own is known; empty for a stack whose own is gone.

    Returns:
        ``<namespace>/<name>``, or "".

    Raises:
        ApiError, Unreachable: it could not be asked for.
    """
    theirs = ""
    for selector in _SELECTORS:
        found = await client.get(_DEPLOYMENTS, {"labelSelector": selector})
        for item in found.get("items") or []:
            metadata = item["metadata"]
            if release and (metadata.get("labels") or {}).get("app.kubernetes.io/instance") == release:
                # Otherwise a stranger's that comes later would make the next update remove the stack's own.
                return ""
            theirs = theirs or f"{metadata['namespace']}/{metadata['name']}"
    return theirs
