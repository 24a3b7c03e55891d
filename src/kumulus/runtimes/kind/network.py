"""How many nodes a kind cluster has address ranges for, and a pod subnet with room for a fleet.

kube-controller-manager cuts a range for each node, including emulated ones, out of the pod subnet. With /24 each,
kind's default subnet, a /16, is enough for 256. See docs/decisions/kind.md.
"""

import ipaddress
from collections.abc import Iterator, Mapping
from typing import Any

from kumulus.runtimes.kind.kind_config import EMPTY

_ROOMY = {"ipv4": "100.64.0.0/10", "ipv6": "fd00:10:244::/48"}
_DEFAULT = {"ipv4": "10.244.0.0/16", "ipv6": "fd00:10:244::/56"}
# kube-controller-manager's defaults for --node-cidr-mask-size-ipv4 and -ipv6.
_MASKS = {4: 24, 6: 64}
# The words in a patch for kubeadm that decide how ranges are cut.
_OF_RANGES = ("podSubnet", "cluster-cidr", "node-cidr-mask-size", "allocate-node-cidrs")


def with_room(config: Mapping[str, Any]) -> dict[str, Any]:
    """Kind's configuration with a pod subnet for 16,384 nodes, unless it decides itself where pods get addresses."""
    networking = config.get("networking") or {}
    if networking.get("podSubnet") or networking.get("disableDefaultCNI") or _patched(config):
        return dict(config)
    subnet = ",".join(_ROOMY[family] for family in _families(networking))
    return {**EMPTY, **config, "networking": {**networking, "podSubnet": subnet}}


def node_ranges(config: Mapping[str, Any]) -> int | None:
    """How many nodes, real and emulated, get a range of addresses; None where a patch decides."""
    if _patched(config):
        return None
    networking = config.get("networking") or {}
    subnets = str(networking.get("podSubnet") or ",".join(_DEFAULT[each] for each in _families(networking)))
    try:
        networks = [ipaddress.ip_network(each.strip(), strict=False) for each in subnets.split(",")]
    except ValueError:
        return None  # kind reports it
    return min(1 << max(0, _MASKS[each.version] - each.prefixlen) for each in networks)


def real_nodes(config: Mapping[str, Any]) -> int:
    """How many nodes kind makes."""
    return len(config.get("nodes") or []) or 1


def _families(networking: Mapping[str, Any]) -> tuple[str, ...]:
    family = networking.get("ipFamily") or "ipv4"
    return ("ipv4", "ipv6") if family == "dual" else (family,)


def _patched(config: Mapping[str, Any]) -> bool:
    return any(word in text for text in _patches(config) for word in _OF_RANGES)


def _patches(config: Mapping[str, Any]) -> Iterator[str]:
    for part in (config, *(config.get("nodes") or [])):
        yield from map(str, part.get("kubeadmConfigPatches") or [])
        yield from (str(each.get("patch")) for each in part.get("kubeadmConfigPatchesJSON6902") or [])
