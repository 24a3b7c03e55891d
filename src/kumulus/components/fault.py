"""``Fault``: something that goes wrong on nodes or with pods while it is declared."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Annotated, Any, Required, TypedDict, Unpack

import pulumi

from kumulus.components.arguments import SectionOf, checked, fields
from kumulus.components.inputs import problems_explained, within
from kumulus.components.kwok_node_group import KwokNodeGroup
from kumulus.components.mistakes import collected
from kumulus.components.resources import ClusterLike, InCluster
from kumulus.model.errors import SpecError
from kumulus.model.fields.validation import validated
from kumulus.model.node_sets import to_plain
from kumulus.model.pools import Pool
from kumulus.stackfile import faults
from kumulus.stackfile.fault_targets import ResolvedFault, resolve


class FaultArgs(TypedDict, total=False):
    """Arguments of a Fault. All of them are plain values, so that a preview can show the nodes."""

    cluster: Required[ClusterLike]
    """The cluster it happens in."""
    kind: str
    """An entry of the catalog (docs/faults.md), such as ``gpu-fell-off-bus``; the other arguments are added to it."""
    target: Annotated[Mapping[str, Any], SectionOf("kumulus.stackfile.faults:Target")]
    """The nodes, such as ``{"nodeGroup": "a100", "count": 2}``. For a fault of pods: the nodes whose pods are affected.
    Default: all nodes."""
    node_groups: Sequence[KwokNodeGroup]
    """The groups whose nodes ``target`` chooses from. Default: those declared in the cluster before the fault."""
    conditions: Mapping[str, Mapping[str, str]]
    """Conditions of each node, by type: status, reason and message. The default status is True."""
    taints: Sequence[Mapping[str, str]]
    """Taints of each node."""
    labels: Mapping[str, str]
    """Labels of each node."""
    annotations: Mapping[str, str]
    """Annotations of each node."""
    capacity: Mapping[str, Any]
    """What is left of a resource, ``{"nvidia.com/gpu": "7"}``, or what is lost of it, ``{"nvidia.com/gpu": "-1"}``."""
    kubelet: str
    """State of each node's kubelet: silent, notReady, reboot or gone."""
    devices: str
    """What becomes of the devices in ResourceSlices that ``capacity`` takes: ``remove`` (default) or ``taint``."""
    down_for: str
    """How long a reboot takes, a duration such as ``2m``."""
    pods: Annotated[Mapping[str, Any], SectionOf("kumulus.stackfile.pod_selection:PodSelector")]
    """For a fault of pods: which pods, such as ``{"labels": {"app": "training"}}``."""
    container: str
    """For a fault of pods: the container that fails. Default: the first."""
    exit_code: int
    """For a fault of pods: the container's exit code, 0 to 255."""
    reason: str
    """For a fault of pods: the reason in the container's status."""
    message: str
    """For a fault of pods: the message in the container's status."""
    delay: str
    """For a fault of pods: the time from the pod's start to the failure, a duration."""
    jitter: str
    """For a fault of pods: a random part, evenly distributed from 0 to this, that is added to ``delay``, a duration."""
    repeat: bool
    """For a fault of pods: False affects only pods that exist when the fault begins, each once."""
    share: float
    """For a fault of pods: the share of the pods that are affected, in per cent."""
    offers: Annotated[Mapping[str, Any], SectionOf("kumulus.stackfile.faults:OffersSpec")]
    """For a fault of an autoscaler's offerings: which of them. Default: all."""
    price_factor: float
    """For the kind ``price-change``: what their prices are multiplied by."""
    limits: Mapping[str, Any]
    """For the kind ``quota``: how much there may be of all of them together, such as ``{"cpu": "64", "nodes": "10"}``.
    """
    notice: str
    """For the kind ``spot-interruption``: the time from the notice to the machines' end, a duration."""


_FIELDS = fields(FaultArgs, but=("cluster", "node_groups"))
_NAMES = {"name": "resource_name", **{field: name for name, field in _FIELDS.items()}}


@collected
class Fault(InCluster):
    """``kumulus:index:Fault``: a fault, with its nodes. Declared no longer, it ends, and its effects go with it.

    Args:
        resource_name: its name in the stack, and the fault's.

    Attributes:
        fault: the fault, with its nodes.
    """

    def __init__(
        self, resource_name: str, *, opts: pulumi.ResourceOptions | None = None, **args: Unpack[FaultArgs]
    ) -> None:
        source = f"Fault {resource_name}"
        with checked(args, FaultArgs, source) as wrong, problems_explained(source, _NAMES):
            declared = _declared(resource_name, args)
            cluster = args["cluster"]
            wrong.require("node_groups")
            groups = args.get("node_groups") or cluster.groups
            found = _resolved(declared, (pool for group in groups for pool in group.pools), cluster.faults)
        # Before it is declared, which is refused after a mistake: later faults are compared with it all the same.
        cluster.faults.append(self)
        self._declare(found, cluster, groups, opts)

    @classmethod
    def of_resolved(cls, fault: ResolvedFault, cluster: ClusterLike, opts: pulumi.ResourceOptions) -> Fault:
        """Declare a fault whose nodes are known, from a loaded stack file."""
        made = cls.__new__(cls)
        made._declare(fault, cluster, cluster.groups, opts)
        return made

    def _declare(
        self,
        fault: ResolvedFault,
        cluster: ClusterLike,
        groups: Iterable[KwokNodeGroup],
        opts: pulumi.ResourceOptions | None,
    ) -> None:
        self.fault = fault
        properties = {
            "name": fault.name,
            "kind": fault.kind,
            "nodes": to_plain(fault.nodes),
            "node": fault.node.to_plain(),
            "pods": fault.pods.to_plain() if fault.pods else None,
            "lost": dict(fault.lost),
            **({"offers": fault.offers.to_plain()} if fault.offers else {}),
        }
        pools = {name: pool for group in groups for name, pool in group.resources.items()}
        own = pulumi.ResourceOptions(
            depends_on=[pools[name] for name in fault.nodes], deleted_with=cluster.deleted_with
        )
        super().__init__(
            "kumulus:index:Fault",
            f"{cluster.prefix}{fault.name}",
            cluster,
            properties,
            pulumi.ResourceOptions.merge(opts, own),
        )


def _declared(name: str, args: Mapping[str, Any]) -> faults.FaultSpec:
    """A fault as in an item of the stack file's ``faults``."""
    declared = {field: value for key, field in _FIELDS.items() if (value := args.get(key)) is not None}
    return validated(faults.FaultSpec, {"name": name, **declared}, "")


def _resolved(fault: faults.FaultSpec, pools: Iterable[Pool], before: Sequence[Fault]) -> ResolvedFault:
    """A fault with its nodes, which must not conflict with the cluster's faults before it."""
    found, problems = resolve([fault], list(pools), [each.fault for each in before])
    if problems:
        raise SpecError(within(problems, "faults[0]"))
    return found[0]
