"""What an instance type and a GPU product add to a node group, before the group is checked.

The catalog fills in the figures of the group's nodeTemplate that the stack file leaves out, so that all later code sees
one complete template, and an error in it has the path in the file.
"""

from collections.abc import Mapping, Sequence
from typing import Annotated

from kumulus.model.checks import problem
from kumulus.model.errors import Problem, Where, shown
from kumulus.model.fields import checked
from kumulus.model.gfd import GPU_RESOURCE, gfd_labels
from kumulus.model.names import nearest
from kumulus.model.pools import INSTANCE_TYPE_LABEL
from kumulus.model.quantity import LARGEST, NANO, QuantityError, parse
from kumulus.nodes.catalog.instances import PODS, InstanceType, gpu_products, instance_types, types_with_gpu

Group = Mapping[str, object]

_NAMED = 3


def with_shapes(raw: object) -> object:
    """A copy of a cluster's mapping with the templates of its node groups completed from the catalog.

    Values of the wrong type are left unchanged: the models report them.
    """
    groups = raw.get("nodeGroups") if isinstance(raw, Mapping) else None
    if not isinstance(raw, Mapping) or not isinstance(groups, list | tuple):
        return raw
    return {**raw, "nodeGroups": [_shaped(group) if isinstance(group, Mapping) else group for group in groups]}


def instance_type_problems(where: Where, raw: object) -> list[Problem]:
    """Whether a text is an instance type of the catalog; others are reported with the types that may be meant."""
    if not isinstance(raw, str) or raw in instance_types():
        return []
    near = nearest(raw, instance_types()) or [each.name for each in types_with_gpu(raw)][:_NAMED]
    other = "leave it out and write the shape as nodeTemplate.capacity"
    remedy = f"write {any_of(near)}, or {other}" if near else other
    return [problem(where, f"{shown(raw)} is not in the catalog", remedy)]


def gpu_product_problems(where: Where, raw: object) -> list[Problem]:
    """Whether a text is a GPU product of the catalog; others are reported with the products that may be meant."""
    if not isinstance(raw, str) or raw in gpu_products():
        return []
    near = nearest(raw, gpu_products(), likeness=0.5) or list(gpu_products())
    return [problem(where, f"{shown(raw)} is not in the catalog", f"write {any_of(near)}")]


InstanceTypeName = Annotated[str, checked(instance_type_problems, form="instanceType")]
GpuProductName = Annotated[str, checked(gpu_product_problems, form="gpuProduct")]


def shape_problems(where: Where, group: Group) -> list[Problem]:
    """Conflicts between a completed group's product and its capacity."""
    product = group.get("gpuProduct")
    if not isinstance(product, str) or product not in gpu_products() or _gpus(group.get("nodeTemplate")) != 0:
        return []
    message = f"is given, but no node of the group has {GPU_RESOURCE}"
    return [problem((*where, "gpuProduct"), message, f'write {GPU_RESOURCE}: "8" in nodeTemplate.capacity')]


def _shaped(group: Group) -> Group:
    name, product = group.get("instanceType"), group.get("gpuProduct")
    if name is None and product is None:
        return group
    kind = instance_types().get(name) if isinstance(name, str) else None
    template = group.get("nodeTemplate")
    if template is None and name is not None:
        template = {}
    if not isinstance(template, Mapping):
        return group
    template = {**template, **_completed(template, kind, name is not None)}
    metadata = template.get("metadata")
    if metadata is None or isinstance(metadata, Mapping):
        of_type = {INSTANCE_TYPE_LABEL: kind.name, **kind.labels} if kind else {}
        labels = {**of_type, **_gpu_labels(template, kind, product)}
        template["metadata"] = {**(metadata or {}), "labels": _under((metadata or {}).get("labels"), labels)}
    return {**group, "nodeTemplate": template}


def _completed(template: Group, kind: InstanceType | None, named: bool) -> dict[str, object]:
    """The parts of a template that an instance type determines."""
    if kind is None:
        # An unknown type is reported as such; a problem about the capacity that it leaves out would only repeat that.
        return {"capacity": _under(template.get("capacity"), {"pods": PODS})} if named else {}
    capacity = {"capacity": _under(template.get("capacity"), kind.capacity)}
    if kind.architecture == "amd64":
        return capacity
    return {**capacity, "nodeInfo": _under(template.get("nodeInfo"), {"architecture": kind.architecture})}


def _gpu_labels(template: Group, kind: InstanceType | None, product: object) -> dict[str, str]:
    of_type = kind.product if kind else ""
    known = gpu_products().get(product if isinstance(product, str) else of_type)
    count = _gpus(template)
    return gfd_labels(known, count, kind.machine if kind else "") if known and count > 0 else {}


def _gpus(template: object) -> int:
    """The number of GPUs in a template's capacity; -1 when it is malformed or absurd, which is reported elsewhere."""
    capacity = template.get("capacity") if isinstance(template, Mapping) else None
    if not isinstance(capacity, Mapping):
        return -1
    written = capacity.get(GPU_RESOURCE, 0)
    if isinstance(written, bool) or not isinstance(written, str | int | float):
        return -1
    try:
        amount = parse(written)
    except QuantityError:
        return -1
    return amount.nanos // NANO if amount.is_whole() and 0 <= amount.nanos < LARGEST * NANO else -1


def _under(written: object, known: Mapping[str, str]) -> object:
    """The known values overridden by those that the file has; only the file's value where it is not a mapping."""
    if written is None:
        return dict(known)
    return {**known, **written} if isinstance(written, Mapping) else written


def any_of(names: Sequence[str]) -> str:
    """One of some names, for people: `a, b or c`."""
    return names[0] if len(names) == 1 else f"{', '.join(names[:-1])} or {names[-1]}"
