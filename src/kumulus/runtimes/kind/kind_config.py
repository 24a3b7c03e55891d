"""kind's own configuration, `kindConfig`: checks that do not need kind, and how many nodes its address ranges are for.

The shapes are those of kind.x-k8s.io/v1alpha4 (sigs.k8s.io/kind, pkg/apis/config/v1alpha4/types.go), which kind decodes
strictly: a key that it does not know is an error. Everything else about it is left to kind.

kube-controller-manager cuts a range for each node, including emulated ones, out of the pod subnet. With /24 each,
kind's default subnet, a /16, is enough for 256. See docs/decisions/kind.md.
"""

import ipaddress
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from kumulus.model.checks import problem, unknown_key_problems
from kumulus.model.errors import Problem, Where, shown
from kumulus.model.names import suggest

API_VERSION = "kind.x-k8s.io/v1alpha4"
CONTROL_PLANE = "control-plane"
EMPTY: Mapping[str, str] = {"kind": "Cluster", "apiVersion": API_VERSION}
"""The configuration that kind uses without one: one node."""


@dataclass(frozen=True)
class Values:
    """A mapping of any keys to values of one shape."""

    shape: Any


_TEXT, _WHOLE, _SWITCH = str, int, bool
_PATCHES_6902 = [{"group": _TEXT, "version": _TEXT, "kind": _TEXT, "patch": _TEXT}]
_MOUNT = {
    "containerPath": _TEXT,
    "hostPath": _TEXT,
    "readOnly": _SWITCH,
    "selinuxRelabel": _SWITCH,
    "propagation": ("None", "HostToContainer", "Bidirectional"),
}
_PORT = {
    "containerPort": _WHOLE,
    "hostPort": _WHOLE,
    "listenAddress": _TEXT,
    "protocol": ("TCP", "UDP", "SCTP"),
}
_NODE = {
    "role": (CONTROL_PLANE, "worker"),
    "image": _TEXT,
    "labels": Values(_TEXT),
    "extraMounts": [_MOUNT],
    "extraPortMappings": [_PORT],
    "kubeadmConfigPatches": [_TEXT],
    "kubeadmConfigPatchesJSON6902": _PATCHES_6902,
}
_NETWORKING = {
    "ipFamily": ("ipv4", "ipv6", "dual"),
    "apiServerPort": _WHOLE,
    "apiServerAddress": _TEXT,
    "podSubnet": _TEXT,
    "serviceSubnet": _TEXT,
    "disableDefaultCNI": _SWITCH,
    "kubeProxyMode": ("iptables", "ipvs", "nftables", "none"),
    "dnsSearch": [_TEXT],
}
CLUSTER = {
    "kind": ("Cluster",),
    "apiVersion": (API_VERSION,),
    "name": _TEXT,
    "nodes": [_NODE],
    "networking": _NETWORKING,
    "featureGates": Values(_SWITCH),
    "runtimeConfig": Values(_TEXT),
    "kubeadmConfigPatches": [_TEXT],
    "kubeadmConfigPatchesJSON6902": _PATCHES_6902,
    "containerdConfigPatches": [_TEXT],
    "containerdConfigPatchesJSON6902": [_TEXT],
}
"""The shape of all of it: a mapping of known keys, lists as a list of one shape, choices as a tuple, types as such."""


def config_problems(where: Where, raw: Mapping[str, object]) -> list[Problem]:
    """Problems of kind's configuration; an empty one has none."""
    if not raw:
        return []
    found = [
        problem((*where, key), "is missing", f"write {key}: {value}") for key, value in EMPTY.items() if key not in raw
    ]
    found += _problems(where, raw, CLUSTER)
    nodes = raw.get("nodes")
    if isinstance(nodes, list) and nodes and all(isinstance(node, Mapping) for node in nodes):
        roles = {node.get("role", CONTROL_PLANE) for node in nodes}
        if roles == {"worker"}:
            remedy = f"add - role: {CONTROL_PLANE}"
            found.append(problem((*where, "nodes"), "has workers only, and no control plane", remedy))
    return found


def _problems(where: Where, value: object, shape: Any) -> list[Problem]:
    """Where a value does not have a shape, see :data:`CLUSTER`; a key without a value is as one left out."""
    if value is None:
        return []
    if isinstance(shape, tuple):
        return _choice_problems(where, value, shape)
    if isinstance(shape, list):
        if not isinstance(value, list):
            return [problem(where, f"is {shown(value)}, not a list", "write it with - before each part")]
        return [each for index, part in enumerate(value) for each in _problems((*where, index), part, shape[0])]
    if isinstance(shape, Values | dict):
        return _mapping_problems(where, value, shape)
    return _scalar_problems(where, value, shape)


def _mapping_problems(where: Where, value: object, shape: Values | dict[str, Any]) -> list[Problem]:
    if not isinstance(value, Mapping):
        return [problem(where, f"is {shown(value)}, not a mapping", "write keys and values")]
    if isinstance(shape, Values):
        return [each for key, part in value.items() for each in _problems((*where, str(key)), part, shape.shape)]
    found = unknown_key_problems(where, value, shape)
    return found + [each for key in shape for each in _problems((*where, key), value.get(key), shape[key])]


def _choice_problems(where: Where, value: object, choices: tuple[str, ...]) -> list[Problem]:
    if value in choices:
        return []
    meant = suggest(value, choices) if isinstance(value, str) else None
    if len(choices) == 1:
        (meant,) = choices
    return [problem(where, f"is {shown(value)}", f"write {meant}" if meant else f"write one of {', '.join(choices)}")]


def _scalar_problems(where: Where, value: object, shape: type) -> list[Problem]:
    if shape is bool:
        wrong, remedy = not isinstance(value, bool), "write true or false"
    elif shape is int:
        wrong, remedy = isinstance(value, bool) or not isinstance(value, int), "write a whole number"
    else:
        # As in go-yaml, any scalar is a text where a text is wanted.
        wrong, remedy = isinstance(value, Mapping | list), "write a text"
    return [problem(where, f"is {shown(value)}", remedy)] if wrong else []


_ROOMY_SUBNETS = {"ipv4": "100.64.0.0/10", "ipv6": "fd00:10:244::/48"}
_DEFAULT_SUBNETS = {"ipv4": "10.244.0.0/16", "ipv6": "fd00:10:244::/56"}
# kube-controller-manager's defaults for --node-cidr-mask-size-ipv4 and -ipv6.
_NODE_MASKS = {4: 24, 6: 64}
# The words in a patch for kubeadm that decide how ranges are cut.
_WORDS_OF_RANGES = ("podSubnet", "cluster-cidr", "node-cidr-mask-size", "allocate-node-cidrs")


def with_room(config: Mapping[str, Any]) -> dict[str, Any]:
    """Kind's configuration with a pod subnet for 16,384 nodes, unless it decides itself where pods get addresses."""
    networking = config.get("networking") or {}
    if networking.get("podSubnet") or networking.get("disableDefaultCNI") or _patches_ranges(config):
        return dict(config)
    subnet = ",".join(_ROOMY_SUBNETS[family] for family in _families(networking))
    return {**EMPTY, **config, "networking": {**networking, "podSubnet": subnet}}


def node_ranges(config: Mapping[str, Any]) -> int | None:
    """How many nodes, real and emulated, get a range of addresses; None where a patch decides."""
    if _patches_ranges(config):
        return None
    networking = config.get("networking") or {}
    subnets = str(networking.get("podSubnet") or ",".join(_DEFAULT_SUBNETS[each] for each in _families(networking)))
    try:
        networks = [ipaddress.ip_network(each.strip(), strict=False) for each in subnets.split(",")]
    except ValueError:
        return None  # kind reports it
    return min(1 << max(0, _NODE_MASKS[each.version] - each.prefixlen) for each in networks)


def real_nodes(config: Mapping[str, Any]) -> int:
    """How many nodes kind makes."""
    return len(config.get("nodes") or []) or 1


def _families(networking: Mapping[str, Any]) -> tuple[str, ...]:
    family = networking.get("ipFamily") or "ipv4"
    return ("ipv4", "ipv6") if family == "dual" else (family,)


def _patches_ranges(config: Mapping[str, Any]) -> bool:
    """Whether a patch for kubeadm may decide which ranges nodes get."""
    return any(word in text for text in _patches(config) for word in _WORDS_OF_RANGES)


def _patches(config: Mapping[str, Any]) -> Iterator[str]:
    for part in (config, *(config.get("nodes") or [])):
        yield from map(str, part.get("kubeadmConfigPatches") or [])
        yield from (str(each.get("patch")) for each in part.get("kubeadmConfigPatchesJSON6902") or [])
