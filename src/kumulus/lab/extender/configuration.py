"""The configuration of a kube-scheduler that asks an extender: the user's or a default one, and the extender in it.

Source: https://kubernetes.io/docs/reference/config-api/kube-scheduler-config.v1/
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

from kumulus.lab.errors import LabError
from kumulus.model.gfd import SHARE_RESOURCE
from kumulus.schedulers import SchedulerError, registry
from kumulus.schedulers.extender import entry
from kumulus.schedulers.launch import configuration

KUBE_SCHEDULER = "kube-scheduler"
_GROUP, _KIND, _FIT = "kubescheduler.config.k8s.io", "KubeSchedulerConfiguration", "NodeResourcesFit"
# What the policy does not answer in time is answered by Kumulus: kube-scheduler waits longer than that.
_LONGER = 30.0
_A_DAY = 86_400


def extended(own: Path | None, url: str, limit: float, *, once: bool, scoring: bool = False) -> dict[str, Any]:
    """A KubeSchedulerConfiguration with the extender.

    The policy's choice is the only one, unless it leaves it to kube-scheduler: no plugin scores, and all nodes are
    looked at instead of a part of them. What pods ask for of a GPU is left to the policy.

    Args:
        own: the user's configuration, if any; its profiles, filters and limits stay.
        url: where the extender is served.
        limit: seconds that the policy may take.
        once: whether pods that fit nowhere are not to be tried again, as nothing ever ends.
        scoring: whether kube-scheduler's own plugins score, since the policy leaves the choice to them.

    Raises:
        LabError: the user's configuration cannot be used.
    """
    profile: dict[str, Any] = {"schedulerName": registry.get(KUBE_SCHEDULER).scheduler_name}
    document: dict[str, Any] = {"apiVersion": f"{_GROUP}/v1", "kind": _KIND, "profiles": [profile]}
    if own is not None:
        try:
            document = configuration.of_kind(own, _KIND, _GROUP)
        except SchedulerError as error:
            raise LabError(str(error)) from None
        document.setdefault("profiles", [profile])
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


def _without_shares(profile: dict[str, Any]) -> None:
    arguments = profile.setdefault("pluginConfig", [])
    fit = next((each for each in arguments if each.get("name") == _FIT), None)
    if fit is None:
        fit = {"name": _FIT, "args": {}}
        arguments.append(fit)
    ignored = fit.setdefault("args", {}).setdefault("ignoredResources", [])
    if SHARE_RESOURCE not in ignored:
        ignored.append(SHARE_RESOURCE)
