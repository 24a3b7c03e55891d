"""``FleetFault``: a fault whose nodes are chosen by a target, for programs in other languages."""

from typing import Unpack

import pulumi

from kumulus.components.fault import Fault, FaultArgs
from kumulus.model.node_sets import to_plain


class FleetFaultArgs(FaultArgs, total=False):
    """What a FleetFault is given."""


class FleetFault(pulumi.ComponentResource):
    """Something that goes wrong on nodes or with pods while it is declared; its nodes are chosen by a target.

    Args:
        resource_name: its name in the stack, and the fault's.
        args: see :class:`FaultArgs`.
    """

    nodes: pulumi.Output[dict[str, str]]
    """Its nodes: by pool, ordinals as ranges."""

    def __init__(
        self, resource_name: str, *, opts: pulumi.ResourceOptions | None = None, **args: Unpack[FleetFaultArgs]
    ) -> None:
        super().__init__("kumulus:index:FleetFault", resource_name, None, opts)
        self.resource = Fault(resource_name, opts=pulumi.ResourceOptions(parent=self), **args)
        self.nodes = pulumi.Output.from_input(to_plain(self.resource.fault.nodes))
        self.register_outputs({"nodes": self.nodes})
