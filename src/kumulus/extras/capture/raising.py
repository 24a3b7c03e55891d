"""Raises quotas in a clone until they admit all pods: by how much, and which other quota has that to spare.

By how much quotas would have to be raised, and which others have that to spare, is read from the API server's message
(k8s.io/apiserver, admission/plugin/resourcequota/controller.go); it decides again once the quota is raised.
Checked against Kubernetes 1.35 to 1.37.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from kumulus.model.quantity import QuantityError, parse

if TYPE_CHECKING:
    from kumulus.extras.capture.dry import Dry
    from kumulus.extras.capture.probe import Probe, ProbeVerdict
    from kumulus.kube import Client

_AMPLE = 4
_MOST = 8
"""Most raises: of several quotas of a namespace, or of resources that are exceeded one after another."""
_EXCEEDED = re.compile(
    r"exceeded quota: (?P<name>[^,\s]+), requested: (?P<requested>\S+), used: (?P<used>\S+), limited: (?P<limited>\S+)$"
)


@dataclass(frozen=True)
class Raised:
    """The effect of raised quotas."""

    what: str
    """Which were raised, from what to what, as the end of a sentence."""
    fitted: int
    """How many of all pods then have a node."""


async def raised_quotas(client: Client, dry: Dry, probe: Probe, priority: str, verdict: ProbeVerdict) -> Raised | None:
    """Raise the quotas that refuse pods, one after the other, until the API server accepts all pods.

    The pods that got a node stay, and the quotas stay raised, until the end of `dry`: later tries run with them.
    None if the pods are not refused because of a quota's amounts.

    Raises:
        Undecided: the scheduler, or the quota's controller, did not decide.
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


def _without_waiting(quota: Exceeded, verdict: ProbeVerdict) -> dict[str, str]:
    """What is used of a quota once the pods that wait for a node are gone."""
    waiting = verdict.wanted - verdict.refused - verdict.fitted
    return {key: str(parse(quota.used[key]) - parse(each) * waiting) for key, each in quota.requested.items()}


async def _lent(client: Client, namespace: str, quota: Exceeded, pods: int) -> str:
    everywhere = [each async for page in client.pages("/api/v1/resourcequotas") for each in page]
    others = [each for each in everywhere if each["metadata"]["namespace"] != namespace]
    found = lender(others, quota.missing(pods))
    return f", which {found} has to spare" if found else ""


@dataclass(frozen=True)
class Exceeded:
    """The API server's message about a pod that a quota does not admit."""

    name: str
    requested: Mapping[str, str]
    """The pod's requests of the resources that are exceeded."""
    used: Mapping[str, str]
    """What is used of these so far."""
    limited: Mapping[str, str]
    """The quota's limits of these."""

    def needed(self, pods: int) -> dict[str, str]:
        """The amounts that the quota would need for so many more pods."""
        return {key: str(parse(self.used[key]) + parse(each) * pods) for key, each in self.requested.items()}

    def missing(self, pods: int) -> dict[str, str]:
        """By how much the quota would have to be raised for them."""
        return {key: str(parse(each) - parse(self.limited[key])) for key, each in self.needed(pods).items()}

    def change(self, pods: int) -> str:
        """The raised quota as the end of a sentence."""
        wanted = self.needed(pods)
        steps = (f"{key} from {self.limited[key]} to {wanted[key]}" for key in sorted(wanted))
        return f"raising the quota {self.name} ({', '.join(steps)})"


def exceeded(message: str) -> Exceeded | None:
    """The exceeded quota in a refusal; None if the refusal is about something else."""
    found = _EXCEEDED.search(message)
    if found is None:
        return None
    requested, used, limited = (_amounts(found[each]) for each in ("requested", "used", "limited"))
    try:
        for each in (*requested.values(), *used.values(), *limited.values()):
            parse(each)
    except QuantityError:
        return None
    if not requested or requested.keys() - used.keys() or requested.keys() - limited.keys():
        return None
    return Exceeded(found["name"], requested, used, limited)


def lender(quotas: Iterable[Mapping[str, Any]], missing: Mapping[str, str]) -> str | None:
    """A quota that can spare all missing amounts, the one with the most left, as `the quota NAME of NAMESPACE`."""
    found: list[tuple[int, str]] = []
    for quota in quotas:
        status = quota.get("status") or {}
        hard, used = status.get("hard") or {}, status.get("used") or {}
        if (quota.get("spec") or {}).get("scopes") or (quota.get("spec") or {}).get("scopeSelector"):
            # With scopes, it may not apply to these pods.
            continue
        try:
            spare = [
                (parse(hard[key]) - parse(used.get(key, "0")) - parse(each)).nanos
                for key, each in missing.items()
                if key in hard
            ]
        except QuantityError:
            continue
        if len(spare) == len(missing) and min(spare) >= 0:
            metadata = quota["metadata"]
            found.append((min(spare), f"the quota {metadata['name']} of {metadata['namespace']}"))
    return max(found)[1] if found else None


def _amounts(text: str) -> dict[str, str]:
    return {key: amount for key, _, amount in (part.partition("=") for part in text.split(",")) if amount}
