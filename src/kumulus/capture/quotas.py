"""ResourceQuotas that are in the way: what is said of them, by how much they would have to be raised, and who has it.

Pure functions. The API server's own words are read (k8s.io/apiserver, admission/plugin/resourcequota/controller.go);
it decides again once the quota is raised.
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
    """What the API server says of a pod that a quota does not admit.

    Args:
        name: of the quota.
        requested: by the pod, of what is short.
        used: of these so far.
        limited: what there is of them.
    """

    name: str
    requested: Mapping[str, str]
    used: Mapping[str, str]
    limited: Mapping[str, str]

    def needed(self, pods: int) -> dict[str, str]:
        """What the quota would have to be for so many pods more."""
        return {key: str(parse(self.used[key]) + parse(each) * pods) for key, each in self.requested.items()}

    def missing(self, pods: int) -> dict[str, str]:
        """By how much it would have to be raised for them."""
        return {key: str(parse(each) - parse(self.limited[key])) for key, each in self.needed(pods).items()}

    def change(self, pods: int) -> str:
        """The raised quota as the end of a sentence."""
        wanted = self.needed(pods)
        steps = (f"{key} from {self.limited[key]} to {wanted[key]}" for key in sorted(wanted))
        return f"raising the quota {self.name} ({', '.join(steps)})"


def exceeded(message: str) -> Exceeded | None:
    """What a refusal says of a quota; None where it says something else."""
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
    """A quota that has all of it to spare, the one with the most left over, as `the quota NAME of NAMESPACE`.

    Args:
        quotas: v1 ResourceQuotas of other namespaces.
        missing: amounts by resource.
    """
    found: list[tuple[int, str]] = []
    for quota in quotas:
        status = quota.get("status") or {}
        hard, used = status.get("hard") or {}, status.get("used") or {}
        if (quota.get("spec") or {}).get("scopes") or (quota.get("spec") or {}).get("scopeSelector"):
            # It admits other pods than these.
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
