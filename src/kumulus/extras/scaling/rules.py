"""What is wrong between a stack's autoscaler and its node groups, faults and runtime."""

from collections.abc import Mapping
from fnmatch import fnmatchcase

from kumulus.extras.scaling import BUILT, NAMES
from kumulus.model.checks import problem
from kumulus.model.errors import Where, shown
from kumulus.model.pool_form import bounds_problems
from kumulus.nodes.catalog.faults import fault_kinds
from kumulus.stackfile.fault_checks import entry_of
from kumulus.stackfile.plain import Problems, duplicates, items, runtime_of

KARPENTERS = (
    "image",
    "zones",
    "instanceTypes",
    "capacityTypes",
    "nodePools",
    "batchIdleDuration",
    "batchMaxDuration",
    "preferencePolicy",
    "featureGates",
)
"""The fields that only Karpenter uses."""
CLUSTER_AUTOSCALERS = ("binary", "options")
"""The fields that only cluster-autoscaler uses."""
_BOUNDS = ("minReplicas", "maxReplicas")
# What depends on a number of nodes that is fixed in the stack file.
_COUNTED = ("resourceSlices", "topology")


def rules(raw: Mapping[str, object]) -> Problems:
    """See :meth:`kumulus.stackfile.section.ClusterSection.rules`."""
    yield from _autoscaler(raw)
    if runtime := runtime_of(raw):
        yield from _place(raw.get("autoscaler"), runtime.name, runtime.local)
    yield from _bounds(raw)
    yield from _offerings(raw)


def _fields(asked: Mapping[str, object]) -> Problems:
    """Fields of the section that the chosen autoscaler needs, or does not use."""
    name = asked.get("name")
    if name == "karpenter":
        if not asked.get("zones"):
            remedy = "write zones such as us-central1-a; their names tell the region"
            yield problem(("autoscaler", "zones"), "is missing: where Karpenter may make nodes", remedy)
        unused: tuple[str, ...] = CLUSTER_AUTOSCALERS
    elif name == "cluster-autoscaler":
        if not asked.get("binary"):
            remedy = "write the path of the program, such as bin/cluster-autoscaler"
            yield problem(("autoscaler", "binary"), "is missing: Kumulus does not build cluster-autoscaler", remedy)
        unused = KARPENTERS
    else:
        return
    for key in unused:
        if asked.get(key) is not None:
            yield problem(("autoscaler", key), f"has no effect with {name}", "leave it out")


def _place(asked: object, runtime: str, local: bool) -> Problems:
    """What conflicts with where the autoscaler runs: next to the cluster, or in it as a deployment.

    Args:
        asked: the section; may be malformed.
        local: whether the cluster's components run next to it on this machine.
    """
    if not isinstance(asked, Mapping):
        return
    name = asked.get("name")
    if local:
        if asked.get("image"):
            message = f"has no effect with the runtime {runtime}, where it runs alongside the cluster"
            yield problem(("autoscaler", "image"), message, "leave it out")
    elif name in NAMES and name not in BUILT:
        message = f"{name} is not supported with the runtime {runtime}: it resizes groups from outside the cluster"
        yield problem(("autoscaler", "name"), message, "write runtime: kwok, or name: karpenter")
    elif not asked.get("image"):
        remedy = (
            "write image: REF; `kumulus image karpenter` makes an archive of one, which loadImages: gets into a kind "
            "cluster's nodes and docker push into a registry"
        )
        yield problem(("autoscaler", "image"), f"is missing: with the runtime {runtime} it is a deployment", remedy)


def _bounds(raw: Mapping[str, object]) -> Problems:
    """Rules of groups with `maxReplicas`, so that the stack and an autoscaler never want different things."""
    asked = raw.get("autoscaler")
    scaler = asked.get("name") if isinstance(asked, Mapping) else None
    bounded = False
    for index, group in enumerate(_list(raw.get("nodeGroups"))):
        if not isinstance(group, Mapping) or all(group.get(key) is None for key in _BOUNDS):
            continue
        bounded = True
        where: Where = ("nodeGroups", index)
        if scaler != "cluster-autoscaler":
            has = f"is for cluster-autoscaler, and the stack has {scaler}" if scaler else "has no effect: nobody scales"
            key = "maxReplicas" if group.get("maxReplicas") is not None else "minReplicas"
            remedy = "write autoscaler: {name: cluster-autoscaler, binary: PATH}, or leave it out"
            yield problem((*where, key), has, remedy)
        yield from _group(where, group)
    if scaler == "cluster-autoscaler" and not bounded:
        message = "has nothing to do: no node group has maxReplicas"
        yield problem(("autoscaler", "name"), message, "write maxReplicas on the groups that it is to resize")


def _group(where: Where, group: Mapping[str, object]) -> Problems:
    for key in _COUNTED:
        if group.get(key) is not None:
            message = "is not supported with maxReplicas: it assumes a fixed number of nodes"
            yield problem((*where, key), message, "leave one of the two out")
    placement = [each for each in _list(group.get("placement")) if isinstance(each, Mapping)]
    # The bounds themselves are checked once, then each zone's number of nodes is checked against them.
    yield from bounds_problems(where, group, None)
    for number, each in enumerate(placement):
        here: Where = (*where, "placement", number)
        if each.get("nodes"):
            message = "names nodes, which an autoscaler would make and take away by number"
            yield problem((*here, "nodes"), message, "leave it out, or maxReplicas")
        if not list(bounds_problems(where, group, None)):
            yield from bounds_problems(here, group, each.get("replicas"))


def _list(raw: object) -> list[object]:
    return list(raw) if isinstance(raw, list | tuple) else []


def _offerings(raw: Mapping[str, object]) -> Problems:
    """Faults of an autoscaler's offerings without an autoscaler, or of offerings that it does not have."""
    asked = raw.get("autoscaler")
    for index, fault in items(raw, "faults"):
        kind = fault_kinds().get(entry_of(str(fault.get("kind"))))
        if kind is None or kind.offers is None:
            continue
        if not isinstance(asked, Mapping):
            message = f"is about what an autoscaler is offered ({fault['kind']}), and the stack has none"
            yield problem(("faults", index, "kind"), message, "write autoscaler:, or leave the fault out")
            continue
        if asked.get("name") == "cluster-autoscaler":
            message = f"is about what Karpenter is offered ({fault['kind']}), and the stack has cluster-autoscaler"
            yield problem(("faults", index, "kind"), message, "leave the fault out")
            continue
        which = fault.get("offers")
        for key in ("zones", "instanceTypes") if isinstance(which, Mapping) else ():
            assert isinstance(which, Mapping)
            there, chosen = asked.get(key), which.get(key)
            # Without a list of types, the autoscaler may choose from all.
            for at, each in enumerate(chosen if isinstance(chosen, list) and isinstance(there, list) else ()):
                assert isinstance(there, list)
                if there and not any(fnmatchcase(str(one), str(each)) for one in there):
                    remedy = f"write one of {', '.join(map(str, there))}"
                    yield problem(("faults", index, "offers", key, at), f"{shown(each)} is not offered", remedy)


def _autoscaler(raw: Mapping[str, object]) -> Problems:
    """Problems of the autoscaler's section, and node groups whose nodes the autoscaler would manage too."""
    asked = raw.get("autoscaler")
    if not isinstance(asked, Mapping):
        return
    yield from _fields(asked)
    yield from duplicates(items(asked, "nodePools"), ("autoscaler", "nodePools"), "name", "name")
    for index, group in items(raw, "nodeGroups"):
        labels: object = group.get("nodeTemplate")
        for key in ("metadata", "labels"):
            labels = labels.get(key) if isinstance(labels, Mapping) else None
        if isinstance(labels, Mapping) and _NODEPOOL in labels:
            where: Where = ("nodeGroups", index, "nodeTemplate", "metadata", "labels", _NODEPOOL)
            yield problem(where, "marks nodes of the autoscaler, which would take these for its own", "leave it out")


_NODEPOOL = "karpenter.sh/nodepool"
