"""What emulated GPU nodes say of their GPUs beside what NVIDIA's drivers said of real ones, as far as it is public."""

from pathlib import Path
from typing import Any, NamedTuple

import yaml

from kumulus.model.gfd import GPU_PRODUCT_LABEL, GPU_RESOURCE, gfd_labels
from kumulus.model.quantity import canonical
from kumulus.model.words import with_part
from kumulus.nodes.catalog.instances import gpu_products
from kumulus.stackfile.resource_slices import ResourceSlices, devices_of

RECORDED = Path(__file__).with_name("gpus.yaml")
_PREFIX = "nvidia.com/"


class Compared(NamedTuple):
    """What one source says of a product."""

    product: str
    kind: str
    """`labels` of a node or `slice`: the attributes and the memory of a device."""
    n: int
    """How many nodes or devices said so."""
    equal: int
    """How many fields are the same here."""
    differs: dict[str, tuple[str, str | None]]
    """The others: the real value, and the emulated one."""
    source: str


def compared() -> list[Compared]:
    """Every source beside what a node with that product says here."""
    found = []
    for each in yaml.safe_load(RECORDED.read_text())["recorded"]:
        kind = "labels" if "labels" in each else "slice"
        n, real = each[kind].pop("n"), {name: _one_form(name, str(value)) for name, value in each[kind].items()}
        ours = (_labels if kind == "labels" else _slice)(each["product"])
        differs = {name: (value, ours.get(name)) for name, value in real.items() if ours.get(name) != value}
        found.append(Compared(each["product"], kind, n, len(real) - len(differs), differs, each["source"]))
    return found


def consequences() -> dict[str, str]:
    """What follows from a field that differs; a field `gpu.deploy.x` is of `gpu.deploy`."""
    known: dict[str, str] = yaml.safe_load(RECORDED.read_text())["consequences"]
    return known


def consequence_of(field: str) -> str:
    """The key of :func:`consequences` for a field.

    Raises:
        LookupError: nobody has said what follows from it.
    """
    for key in consequences():
        if field == key or field.startswith(f"{key}."):
            return key
    raise LookupError(f"no consequence in {RECORDED.name} says what follows from {field}")


def with_gpus(text: str) -> str:
    """The page of fidelity with the table."""
    lines = [
        "| GPU | what | n | fields equal | differ: real | emulated | recorded in |",
        "|---|---|---|---|---|---|---|",
    ]
    fields: dict[str, None] = {}
    for each in compared():
        fields |= dict.fromkeys(map(consequence_of, each.differs))
        real = ", ".join(f"`{name}: {value}`" for name, (value, _) in each.differs.items())
        ours = ", ".join(f"`{value}`" if value else "absent" for _, value in each.differs.values())
        shown = f"[{each.source}]({each.source})" if each.source.startswith("https:") and " " not in each.source else ""
        lines.append(
            f"| {each.product} | {each.kind} | {each.n} | {each.equal} of {each.equal + len(each.differs)} "
            f"| {real or '–'} | {ours or '–'} | {shown or each.source} |"
        )
    lines += ["", "| Field that differs | Not to be trusted: |", "|---|---|"]
    lines += [f"| `{field}` | {consequences()[field].strip()} |" for field in sorted(fields)]
    return with_part(text, "gpus", "\n".join(lines) + "\n")


def _labels(product: str) -> dict[str, str]:
    return {key.removeprefix(_PREFIX): value for key, value in gfd_labels(gpu_products()[product], 1, "").items()}


def _slice(product: str) -> dict[str, str]:
    devices = devices_of(ResourceSlices(), {GPU_RESOURCE: "1"}, {GPU_PRODUCT_LABEL: product})
    assert devices is not None
    attributes: dict[str, Any] = {name: next(iter(value.values())) for name, value in devices.attributes.items()}
    return {**attributes, **devices.capacity}


def _one_form(name: str, value: str) -> str:
    return canonical(value) if name == "memory" else value
