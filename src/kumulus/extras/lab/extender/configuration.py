"""How kube-scheduler asks an extender: its server, and a configuration with the extender in it.

Source: https://kubernetes.io/docs/reference/config-api/kube-scheduler-config.v1/
"""

from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

from kumulus.extras.lab.errors import LabError
from kumulus.extras.schedulers import SchedulerError, registry
from kumulus.extras.schedulers.extender import address, entry, new_secret, serving
from kumulus.extras.schedulers.launch import configuration
from kumulus.host import files
from kumulus.host.ports import Claims, NoFreePort
from kumulus.kube import ApiError, Unreachable, safe_yaml
from kumulus.model.gfd import SHARE_RESOURCE

KUBE_SCHEDULER = "kube-scheduler"
_GROUP, _KIND, _FIT = "kubescheduler.config.k8s.io", "KubeSchedulerConfiguration", "NodeResourcesFit"
# Kumulus answers if the policy does not in time, so kube-scheduler waits this many seconds longer.
_LONGER = 30.0
_A_DAY = 86_400


def extended(own: Path | None, url: str, limit: float, *, once: bool, scoring: bool = False) -> dict[str, Any]:
    """A KubeSchedulerConfiguration with the extender.

    The policy alone decides, unless it leaves the choice to kube-scheduler: no plugin scores. All nodes are looked at
    instead of a part of them. Requests for parts of a GPU are left to the policy.

    Args:
        own: the user's configuration, if any; its profiles, filters and limits stay.
        once: whether pods that fit nowhere are tried only once, as no pod ever ends.
        scoring: whether kube-scheduler's own plugins score, since the policy leaves the choice to them.
    """
    document = _document(own)
    if document.get("extenders"):
        raise LabError(
            f"the scheduler's configuration {own} has extenders of its own, which may refuse the policy's choice\n"
            "  Leave them out, or leave policy: out of the experiment"
        )
    document["extenders"] = [entry(url, limit + _LONGER, ignorable=False)]
    document["percentageOfNodesToScore"] = 100
    if once:
        document.setdefault("podInitialBackoffSeconds", _A_DAY)
        document.setdefault("podMaxBackoffSeconds", _A_DAY)
    for each in document["profiles"]:
        if not scoring:
            plugins = each.setdefault("plugins", {})
            plugins["score"] = {"disabled": [{"name": "*"}]}
            plugins["preScore"] = {"disabled": [{"name": "*"}]}
        _without_shares(each)
    return document


def watched(own: Path | None, url: str) -> dict[str, Any]:
    """A KubeSchedulerConfiguration with an extender that refuses nothing, after those of the user.

    Args:
        own: the user's configuration, if any.
    """
    document = _document(own)
    document["extenders"] = [*(document.get("extenders") or ()), entry(url, _LONGER, ignorable=True)]
    return document


def written(directory: Path, name: str, document: dict[str, Any]) -> Path:
    """Write a configuration into the directory of a scheduler; returns the file.

    Only its owner may read the file, as it has the extender's address, which includes a secret.
    """
    directory.mkdir(mode=0o700, parents=True, exist_ok=True)
    file = (directory / name).absolute()
    files.write(file, safe_yaml.written(document), mode=0o600)
    return file


def _document(own: Path | None) -> dict[str, Any]:
    profile: dict[str, Any] = {"schedulerName": registry.get(KUBE_SCHEDULER).scheduler_name}
    if own is None:
        return {"apiVersion": f"{_GROUP}/v1", "kind": _KIND, "profiles": [profile]}
    try:
        document = configuration.of_kind(own, _KIND, _GROUP)
    except SchedulerError as error:
        raise LabError(str(error)) from None
    document["profiles"] = document.get("profiles") or [profile]
    return document


def _without_shares(profile: dict[str, Any]) -> None:
    arguments = profile.setdefault("pluginConfig", [])
    fit = next((each for each in arguments if each.get("name") == _FIT), None)
    if fit is None:
        fit = {"name": _FIT, "args": {}}
        arguments.append(fit)
    ignored = fit.setdefault("args", {}).setdefault("ignoredResources", [])
    if SHARE_RESOURCE not in ignored:
        ignored.append(SHARE_RESOURCE)


@asynccontextmanager
async def served(filtering: Callable[[dict[str, Any]], Awaitable[dict[str, Any]]]) -> AsyncIterator[str]:
    """Serve an extender until the context ends.

    Yields:
        the address below which it is served, for `urlPrefix`.
    """
    secret = new_secret()

    async def answer(arguments: dict[str, Any]) -> dict[str, Any]:
        try:
            return await filtering(arguments)
        except (ApiError, Unreachable) as error:
            return {"Error": f"the cluster's nodes cannot be listed: {error}"}

    try:
        with Claims() as claims:
            port = claims.take()
            async with serving(answer, port, secret):
                yield address(port, secret)
    except NoFreePort as error:
        raise LabError(str(error)) from None
