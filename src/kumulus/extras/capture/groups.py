"""From nodes to the node groups of a stack file: similar nodes together, each listed by name; pure functions.

The result depends only on the nodes, not on their order: a capture of the clone gives the same file.
"""

import json
from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from kumulus.extras.capture.grammar import reduced
from kumulus.extras.schedulers.forms import TAINTS, Form, Leaf
from kumulus.model.named_nodes import TOPOLOGY_PREFIX
from kumulus.model.names import NODE_NAME_LENGTH, SYSTEM_GROUP, dns_safe
from kumulus.model.nodes import features_of
from kumulus.model.pools import ARCH_LABEL, INSTANCE_TYPE_LABEL, OS_LABEL, REGION_LABEL, ZONE_LABEL
from kumulus.model.quantity import QuantityError, canonical, parse
from kumulus.nodes.catalog.instances import clouds

HOSTNAME = "kubernetes.io/hostname"
NODE: dict[str, Form] = {
    "metadata": {"name": Leaf.NAME, "labels": Leaf.LABELS},
    "spec": {"unschedulable": Leaf.WORD, "taints": TAINTS},
    "status": {"capacity": Leaf.RESOURCES, "allocatable": Leaf.RESOURCES, "declaredFeatures": [Leaf.WORD]},
}
KEPT: dict[str, Form] = {
    **NODE,
    "features": [Leaf.WORD],
    "ill": [Leaf.WORD],
    "machine": {"architecture": Leaf.WORD, "operatingSystem": Leaf.WORD},
}
"""The form of the results of `captured_node`."""
_PRESSURES = {
    "MemoryPressure": "memory-pressure",
    "DiskPressure": "disk-pressure",
    "PIDPressure": "pid-pressure",
    "NetworkUnavailable": "network-unavailable",
}
# Taints that the node controller adds for a node's conditions or its cordon, and would add again.
_FOLLOWING = frozenset(
    f"node.kubernetes.io/{each}" for each in ("not-ready", "unreachable", "unschedulable", *_PRESSURES.values())
)
_ARCHITECTURES = frozenset(("amd64", "arm64", "arm", "ppc64le", "s390x", "riscv64", "386"))
# A label with fewer nodes per value than this is specific to nodes: a rack, a host, an instance.
_SHARED_BY = 50
_GROUP_NAME = 28


def captured_node(raw: Mapping[str, Any]) -> dict[str, Any]:
    """What is kept of a v1 Node."""
    status = raw.get("status") or {}
    info = status.get("nodeInfo") or {}
    kept: dict[str, Any] = reduced(NODE, raw) or {}
    labels = kept["metadata"].get("labels") or {}
    for stable in (OS_LABEL, ARCH_LABEL):
        if labels.get(f"beta.{stable}") == labels.get(stable):
            labels.pop(f"beta.{stable}", None)
    if labels.get(HOSTNAME) == kept["metadata"]["name"]:
        del labels[HOSTNAME]
    if taints := [each for each in kept.get("spec", {}).get("taints", ()) if each.get("key") not in _FOLLOWING]:
        kept["spec"]["taints"] = taints
    else:
        kept.get("spec", {}).pop("taints", None)
    conditions = {str(each.get("type")): str(each.get("status")) for each in status.get("conditions") or ()}
    declared = sorted(kept.get("status", {}).pop("declaredFeatures", ()))
    own = declared != features_of(str(info.get("kubeletVersion", "")))
    features = {"features": declared} if own else {}
    return kept | features | {"ill": _illness(conditions), "machine": _machine(info, labels)}


def _illness(conditions: Mapping[str, str]) -> list[str]:
    found = [each for each in _PRESSURES if conditions.get(each) == "True"]
    ready = conditions.get("Ready", "Unknown")
    return found if ready == "True" else [*found, "NotReady" if ready == "False" else "Silent"]


def _machine(info: Mapping[str, Any], labels: Mapping[str, str]) -> dict[str, str]:
    """The node's reported architecture and OS, if its labels differ or are missing."""
    found = {}
    for key, label, known in (
        ("architecture", ARCH_LABEL, _ARCHITECTURES),
        ("operatingSystem", OS_LABEL, frozenset(("linux", "windows"))),
    ):
        if info.get(key) in known and info[key] != labels.get(label):
            found[key] = str(info[key])
    return found


def stack(nodes: Iterable[Mapping[str, Any]]) -> dict[str, Any]:
    """The cluster section of a stack file, for nodes as `captured_node` makes them."""
    listed = sorted(nodes, key=lambda node: str(node["metadata"]["name"]))
    own = _own_labels(listed)
    alike: dict[str, list[Mapping[str, Any]]] = defaultdict(list)
    for node in listed:
        alike[_shape(node, own)].append(node)
    groups = _named(sorted(alike.items(), key=lambda item: (_base(item[1][0]), item[0])), own)
    return {"nodeGroups": groups, **_faults(listed)}


def _own_labels(nodes: Sequence[Mapping[str, Any]]) -> frozenset[str]:
    """Keys of labels that are specific to nodes: with few nodes per value, over the whole cluster."""
    having: Counter[str] = Counter()
    values: dict[str, set[str]] = defaultdict(set)
    for node in nodes:
        for key, value in (node["metadata"].get("labels") or {}).items():
            having[key] += 1
            values[key].add(value)
    shared_by = max(2.0, min(float(_SHARED_BY), len(nodes) / 20))
    never = {ZONE_LABEL, REGION_LABEL, INSTANCE_TYPE_LABEL}
    few = {key for key in having if having[key] / len(values[key]) < shared_by and key not in never}
    return frozenset(few | {key for key in having if key.startswith(TOPOLOGY_PREFIX)})


def _shape(node: Mapping[str, Any], own: frozenset[str]) -> str:
    labels = {key: value for key, value in (node["metadata"].get("labels") or {}).items() if key not in own}
    taints = sorted(node.get("spec", {}).get("taints", ()), key=json.dumps)
    rest = [node.get(each) for each in ("status", "machine", "features")]
    return json.dumps([labels, taints, *rest], sort_keys=True)


def _base(node: Mapping[str, Any]) -> str:
    labels = node["metadata"].get("labels") or {}
    # Karpenter's before the clouds' own, which its nodes lack or share.
    keys = ("karpenter.sh/nodepool", *(cloud.node_pool for cloud in clouds().values()), INSTANCE_TYPE_LABEL)
    label = next((labels[key] for key in keys if labels.get(key)), "")
    base = dns_safe(label, _GROUP_NAME) or "nodes"
    return base if base != SYSTEM_GROUP else f"{base}-nodes"


def _named(alike: Sequence[tuple[str, list[Mapping[str, Any]]]], own: frozenset[str]) -> list[dict[str, Any]]:
    counts, numbers = Counter(_base(nodes[0]) for _, nodes in alike), Counter[str]()
    taken = set(counts)
    found = []
    for _, nodes in alike:
        name = base = _base(nodes[0])
        while counts[base] > 1 and (name == base or name in taken):
            numbers[base] += 1
            name = f"{base}-{numbers[base]}"
        taken.add(name)
        found.append(_group(name, nodes, own))
    return found


def _group(name: str, nodes: Sequence[Mapping[str, Any]], own: frozenset[str]) -> dict[str, Any]:
    labels = [node["metadata"].get("labels") or {} for node in nodes]
    # Includes labels that could be specific to nodes, if all nodes of this group have the same value.
    common = {
        key: value
        for key, value in labels[0].items()
        if all(each.get(key) == value for each in labels) and not key.startswith(TOPOLOGY_PREFIX)
    }
    zone = dns_safe(labels[0].get(ZONE_LABEL, ""), _GROUP_NAME) or "nowhere"
    status, taints = nodes[0].get("status", {}), nodes[0].get("spec", {}).get("taints", [])
    capacity = {key: _canonical(value) for key, value in (status.get("capacity") or {}).items()}
    allocatable = {key: _canonical(value) for key, value in (status.get("allocatable") or {}).items()}
    capacity = {"pods": "0", **allocatable, **_at_least(capacity, allocatable)}
    different = {key: value for key, value in sorted(allocatable.items()) if capacity.get(key) != value}
    template = {
        "metadata": {"defaults": False, **({"labels": common} if common else {})},
        "taints": [dict(taint) for taint in taints],
        "capacity": dict(sorted(capacity.items())),
        **({"allocatable": different} if different else {}),
        **({"nodeInfo": nodes[0]["machine"]} if nodes[0].get("machine") else {}),
        **({"declaredFeatures": nodes[0]["features"]} if "features" in nodes[0] else {}),
    }
    listed = [_entry(node, labels[index], common) for index, node in enumerate(nodes)]
    placement = {"availabilityZone": zone, "replicas": len(nodes), "nodes": listed}
    return {"name": name, "placement": [placement], "nodeTemplate": template}


def _entry(node: Mapping[str, Any], labels: Mapping[str, str], common: Mapping[str, str]) -> dict[str, Any]:
    own = {key: value for key, value in labels.items() if key not in common}
    cordoned = node.get("spec", {}).get("unschedulable") is True
    return {
        "name": node_name(str(node["metadata"]["name"])),
        **({"labels": own} if own else {}),
        **({"unschedulable": True} if cordoned else {}),
    }


def node_name(name: str) -> str:
    """A node's name in a clone: unchanged, or shortened if it is too long for the value of the hostname label."""
    return name if len(name) <= NODE_NAME_LENGTH else dns_safe(name, NODE_NAME_LENGTH, dots=True)


def on_nodes(item: Mapping[str, Any]) -> dict[str, Any]:
    """A ResourceSlice, or a ResourceClaim, with the names that its nodes have in a clone."""
    if item["kind"] == "ResourceClaim":
        terms = item.get("status", {}).get("allocation", {}).get("nodeSelector", {}).get("nodeSelectorTerms", ())
        for field in (each for term in terms for each in term.get("matchFields", ())):
            field["values"] = [node_name(each) for each in field["values"]]
        return dict(item)
    spec = dict(item["spec"])
    if "nodeName" in spec:
        spec["nodeName"] = node_name(spec["nodeName"])
    if "devices" in spec:
        spec["devices"] = [
            {**each, "nodeName": node_name(each["nodeName"])} if "nodeName" in each else each
            for each in spec["devices"]
        ]
    return {**item, "spec": spec}


def _canonical(written: str) -> str:
    try:
        return canonical(written)
    except QuantityError:
        return "0"


def _at_least(capacity: Mapping[str, str], allocatable: Mapping[str, str]) -> dict[str, str]:
    """The capacity, raised where it is below the allocatable amount."""
    return {
        key: allocatable[key] if key in allocatable and parse(allocatable[key]).nanos > parse(value).nanos else value
        for key, value in capacity.items()
    }


def _faults(nodes: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """Unhealthy nodes, as faults for the stack file."""
    ill: dict[str, list[str]] = defaultdict(list)
    for node in nodes:
        for each in node.get("ill", ()):
            ill[each].append(node_name(str(node["metadata"]["name"])))
    faults = [
        {"name": _FAULT_NAMES[each], **_EFFECTS[each], "target": {"names": names}}
        for each, names in sorted(ill.items())
    ]
    return {"faults": faults} if faults else {}


_FAULT_NAMES = {"NotReady": "not-ready", "Silent": "silent", **_PRESSURES}
_EFFECTS: dict[str, dict[str, Any]] = {
    "NotReady": {"kubelet": "notReady"},
    "Silent": {"kubelet": "silent"},
    **{each: {"conditions": {each: {"status": "True"}}} for each in _PRESSURES},
}
