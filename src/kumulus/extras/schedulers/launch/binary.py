"""The program that schedules: the pinned one, or the user's own."""

from pathlib import Path

from kumulus import toolchain
from kumulus.extras.schedulers import definitions, registry
from kumulus.extras.schedulers.launch.plan import LaunchRequest
from kumulus.toolchain import cache, pins
from kumulus.toolchain.pins import CONTROL_PLANE
from kumulus.toolchain.versions import normal, numbers


def chosen(request: LaunchRequest) -> tuple[Path, str]:
    """The program, and its version; empty for the user's own: the request's, or one on PATH that does not say it."""
    if request.binary is not None:
        return request.binary, ""
    scheduler = registry.get(request.name)
    tool = scheduler.tools[0]
    version = _for_cluster(request.kubernetes) if tool in CONTROL_PLANE else toolchain.version(tool)
    program = definitions.find(tool, scheduler.tool_set, version)
    return program, "" if pins.load().tool(tool).accepts == pins.ANY and not cache.owns(program) else version


def _for_cluster(kubernetes: str) -> str:
    """The version for a program of Kubernetes: it must not be of a later minor version than the API server.

    A later one waits for kinds that this API server does not have, and schedules nothing
    (https://kubernetes.io/releases/version-skew-policy/).
    """
    offered = sorted(toolchain.kubernetes_versions(), key=numbers, reverse=True)
    if not kubernetes:
        return toolchain.kubernetes_versions()[0]
    same = normal(kubernetes).partition("+")[0]
    return next(
        (each for each in (same, *offered) if each in offered and numbers(each)[:2] <= numbers(kubernetes)[:2]),
        offered[-1],
    )
