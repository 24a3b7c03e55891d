"""The stack's identity as the components declare it: one for a whole program."""

from __future__ import annotations

from weakref import WeakKeyDictionary

import pulumi
from pulumi.runtime.settings import get_root_resource

from kumulus.components import plugin

_NAME = "stack-identity"


class StackIdentity(pulumi.CustomResource):
    """``kumulus:index:StackIdentity``: who the stack is.

    Args:
        resource_name: its name in the stack.
        opts: Pulumi's resource options.
    """

    def __init__(self, resource_name: str, opts: pulumi.ResourceOptions | None = None) -> None:
        super().__init__("kumulus:index:StackIdentity", resource_name, {"stackId": None}, plugin.asked_for(opts))

    @property
    def stack_id(self) -> pulumi.Output[str]:
        """The identity, known in previews."""
        found: pulumi.Output[str] = pulumi.get(self, "stackId")
        return found


_declared: WeakKeyDictionary[pulumi.Resource, StackIdentity] = WeakKeyDictionary()


def stack_identity(cluster: pulumi.Resource, resource_name: str) -> pulumi.Output[str]:
    """The identity of the stack that a cluster component belongs to.

    A Python program has a single identity, which no component owns: it stays whatever happens to the clusters and their
    names. A component of a program in another language cannot see the program's root, so it has its own identity; an
    alias keeps the old one if the program was in Python before.

    Args:
        cluster: the component.
        resource_name: its name in the stack.
    """
    root = get_root_resource()
    if root is None:
        before = pulumi.Alias(name=_NAME, parent=pulumi.ROOT_STACK_RESOURCE)
        opts = pulumi.ResourceOptions(parent=cluster, aliases=[before])
        return StackIdentity(f"{resource_name}-{_NAME}", opts).stack_id
    if root not in _declared:
        _declared[root] = StackIdentity(_NAME)
    return _declared[root].stack_id
