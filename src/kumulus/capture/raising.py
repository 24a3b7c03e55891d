"""Quotas raised in a clone until they let all pods in: by how much, and which other quota could give it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from kumulus.capture.quotas import Exceeded, exceeded, lender
from kumulus.model.quantity import parse

if TYPE_CHECKING:
    from kumulus.capture.dry import Dry, Verdict
    from kumulus.capture.probe import Probe
    from kumulus.kube import Client

_AMPLE = 4
_MOST = 8
"""Quotas of one namespace, or resources that they give out one after the other."""


@dataclass(frozen=True)
class Raised:
    """What raised quotas let in.

    Args:
        what: which were raised, from what to what, as the end of a sentence.
        fitted: how many of all pods have a node then.
    """

    what: str
    fitted: int


async def raised_quotas(client: Client, dry: Dry, probe: Probe, priority: str, verdict: Verdict) -> Raised | None:
    """Raise what refuses pods, one quota after the other, until the API server takes all of them.

    The pods that got a node stay, and the quotas stay raised, until the end of `dry`: what is tried next meets them.

    Args:
        client: of the clone.
        dry: in which the pods that fitted are kept.
        probe: what is to fit.
        priority: as `Dry.priority_class` has made it.
        verdict: with pods that were refused.

    Returns:
        None where it is no quota's amount that refuses them.

    Raises:
        Undecided: the scheduler, or the quota's controller, did not say.
        ApiError, Unreachable: the cluster refused something else.
    """
    fitted, what, ample = verdict.fitted, list[str](), dict[str, dict[str, str]]()
    for _ in range(_MOST):
        said = exceeded(verdict.reason)
        if said is None:
            return None
        what.append(said.change(verdict.refused) + await _lent(client, probe.namespace, said, verdict.refused))
        await dry.raise_quota(probe.namespace, said.name, said.needed(verdict.refused))
        ample.setdefault(said.name, {}).update(said.needed(_AMPLE * probe.count))
        await dry.until_used(probe.namespace, said.name, _without_waiting(said, verdict))
        verdict = await dry.pods(probe, probe.count - fitted, priority, keep=True)
        await dry.drop_waiting()
        fitted += verdict.fitted
        if not verdict.refused:
            # What is tried next is made before the last try's pods are no longer counted.
            for name, hard in ample.items():
                await dry.raise_quota(probe.namespace, name, hard)
            return Raised(" and ".join(what), fitted)
    return None


def _without_waiting(said: Exceeded, verdict: Verdict) -> dict[str, str]:
    """What of a quota is used once the pods that wait for a node are gone."""
    waiting = verdict.wanted - verdict.refused - verdict.fitted
    return {key: str(parse(said.used[key]) - parse(each) * waiting) for key, each in said.requested.items()}


async def _lent(client: Client, namespace: str, said: Exceeded, pods: int) -> str:
    everywhere = [each async for page in client.pages("/api/v1/resourcequotas") for each in page]
    others = [each for each in everywhere if each["metadata"]["namespace"] != namespace]
    found = lender(others, said.missing(pods))
    return f", which {found} has to spare" if found else ""
