"""A fault that begins now: one of a command line, a page or a timeline, on the pools that a cluster has on record."""

import re
from collections.abc import Mapping
from dataclasses import replace

from kumulus.model.errors import SpecError
from kumulus.model.pools import Pool
from kumulus.stackfile.fault_targets import ResolvedFault, resolve
from kumulus.stackfile.faults import FaultSpec, offer_effects


class NoPools(Exception):
    """The cluster has no pools on record; `str()` is the message for the user.

    Args:
        stack: the cluster's stack, where it has to be named.
    """

    def __init__(self, stack: str = "") -> None:
        remedy = f"`pulumi up {f'-s {stack} ' if stack else ''}--refresh` records them"
        super().__init__(f"the cluster has no recorded pools, by which nodes are chosen; {remedy}")


def resolved(fault: FaultSpec, pools: Mapping[str, Pool], source: str, stack: str = "") -> ResolvedFault:
    """The nodes of a fault, and what it does there.

    Args:
        pools: the cluster's recorded pools, by name.
        source: where the fault is from, for the message.
        stack: the cluster's stack, where a remedy has to name it.

    Raises:
        NoPools: there are none, and it needs nodes.
    """
    if not pools and offer_effects(fault) is None:
        raise NoPools(stack)
    found, problems = resolve([fault], sorted(pools.values(), key=lambda pool: pool.name))
    if problems:
        # There is no list of which it would be the first.
        raise SpecError((replace(each, path=re.sub(r"^faults\[0\]\.?", "", each.path)) for each in problems), source)
    return found[0]
