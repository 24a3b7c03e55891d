"""Raises quotas in a clone until they admit all pods: by how much, and which other quota has that to spare."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from kumulus.extras.capture.quotas import Exceeded, exceeded, lender
from kumulus.model.quantity import parse

if TYPE_CHECKING:
    from kumulus.extras.capture.dry import Dry
    from kumulus.extras.capture.probe import Probe
    from kumulus.extras.capture.verdict import Verdict
    from kumulus.kube import Client

_AMPLE = 4
_MOST = 8
"""Most raises: of several quotas of a namespace, or of resources that are exceeded one after another."""


@dataclass(frozen=True)
class Raised:
    """The effect of raised quotas.

    Args:
        what: which were raised, from what to what, as the end of a sentence.
        fitted: how many of all pods then have a node.
    """

    what: str
    fitted: int


async def raised_quotas(client: Client, dry: Dry, probe: Probe, priority: str, verdict: Verdict) -> Raised | None:
    """Raise the quotas that refuse pods, one after the other, until the API server accepts all pods.

    The pods that got a node stay, and the quotas stay raised, until the end of `dry`: later tries run with them.

    Args:
        client: of the clone.
        dry: keeps the pods that fitted.
        probe: the pods that should fit.
        priority: the class that `Dry.priority_class` created.
        verdict: with pods that were refused.

    Returns:
        None if the pods are not refused because of a quota's amounts.

    Raises:
        Undecided: the scheduler, or the quota's controller, did not decide.
        ApiError, Unreachable: the cluster refused something else, or gave no answer.
    """
    fitted, what, ample = verdict.fitted, list[str](), dict[str, dict[str, str]]()
    for _ in range(_MOST):
        quota = exceeded(verdict.reason)
        if quota is None:
            return None
        what.append(quota.change(verdict.refused) + await _lent(client, probe.namespace, quota, verdict.refused))
        await dry.raise_quota(probe.namespace, quota.name, quota.needed(verdict.refused))
        ample.setdefault(quota.name, {}).update(quota.needed(_AMPLE * probe.count))
        await dry.until_used(probe.namespace, quota.name, _without_waiting(quota, verdict))
        verdict = await dry.pods(probe, probe.count - fitted, priority, keep=True)
        await dry.drop_waiting()
        fitted += verdict.fitted
        if not verdict.refused:
            # The next try's pods are created while the quota still counts those of the last try.
            for name, hard in ample.items():
                await dry.raise_quota(probe.namespace, name, hard)
            return Raised(" and ".join(what), fitted)
    return None


def _without_waiting(quota: Exceeded, verdict: Verdict) -> dict[str, str]:
    """What is used of a quota once the pods that wait for a node are gone."""
    waiting = verdict.wanted - verdict.refused - verdict.fitted
    return {key: str(parse(quota.used[key]) - parse(each) * waiting) for key, each in quota.requested.items()}


async def _lent(client: Client, namespace: str, quota: Exceeded, pods: int) -> str:
    everywhere = [each async for page in client.pages("/api/v1/resourcequotas") for each in page]
    others = [each for each in everywhere if each["metadata"]["namespace"] != namespace]
    found = lender(others, quota.missing(pods))
    return f", which {found} has to spare" if found else ""
