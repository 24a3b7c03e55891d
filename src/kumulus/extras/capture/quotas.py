"""ResourceQuotas that do not admit pods: by how much they would have to be raised, and which others have that to spare.

Pure functions. They parse the API server's message (k8s.io/apiserver, admission/plugin/resourcequota/controller.go);
the API server decides again once the quota is raised.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from kumulus.model.quantity import QuantityError, parse

_EXCEEDED = re.compile(
    r"exceeded quota: (?P<name>[^,\s]+), requested: (?P<requested>\S+), used: (?P<used>\S+), limited: (?P<limited>\S+)$"
)


@dataclass(frozen=True)
class Exceeded:
    """The API server's message about a pod that a quota does not admit.

    Args:
        name: of the quota.
        requested: the pod's requests of the resources that are exceeded.
        used: what is used of these so far.
        limited: the quota's limits of these.
    """

    name: str
    requested: Mapping[str, str]
    used: Mapping[str, str]
    limited: Mapping[str, str]

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
    parts = [_amounts(found[each]) for each in ("requested", "used", "limited")]
    requested, used, limited = parts
    try:
        for each in (*requested.values(), *used.values(), *limited.values()):
            parse(each)
    except QuantityError:
        return None
    if not requested or requested.keys() - used.keys() or requested.keys() - limited.keys():
        return None
    return Exceeded(found["name"], requested, used, limited)


def lender(quotas: Iterable[Mapping[str, Any]], missing: Mapping[str, str]) -> str | None:
    """A quota that can spare all missing amounts, the one with the most left, as `the quota NAME of NAMESPACE`.

    Args:
        quotas: v1 ResourceQuotas of other namespaces.
        missing: amounts by resource.
    """
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
