"""Which workloads no node matches, by the labels of nodes, and what there is instead."""

from collections.abc import Iterable, Iterator, Mapping, Sequence

from kumulus.extras.lab.plan.pods import PlannedJob
from kumulus.extras.schedulers.manifests import pod_templates
from kumulus.model.names import suggest
from kumulus.model.words import listed

Labels = Mapping[str, str]
Selector = frozenset[tuple[str, str]]
REMEDY = "  Write labels that a node has; gpuProduct is a value of productLabel"
"""For all lines of :func:`unmatched` together."""
_SHOWN = 4
_KINDS_OF_GPU = 20


def selectors(jobs: Iterable[PlannedJob]) -> dict[str, set[Selector]]:
    """The node selectors of each workload's pods, by the workload's name; an empty one for pods without."""
    found: dict[str, set[Selector]] = {}
    for job in jobs:
        asked = found.setdefault(job.workload, set())
        for each in job.objects:
            asked |= {
                frozenset((spec.get("nodeSelector") or {}).items())
                for template in pod_templates(each)
                if (spec := template.get("spec")) is not None
            }
    return found


def unmatched(wanted: Mapping[str, set[Selector]], nodes: Sequence[Labels], product_label: str) -> Iterator[str]:
    """For each workload none of whose pods can go to any node, a line for each label that is not there, with what is.

    Args:
        wanted: as of :func:`selectors`.
    """
    for workload, asked in wanted.items():
        if asked and not any(selector <= labels.items() for selector in asked for labels in nodes):
            selector = min(asked, key=sorted)
            lines = [*_why(selector, nodes, product_label)]
            both = " and ".join(f"{key}={value}" for key, value in sorted(selector))
            for line in lines or [f"no node has {both} at once"]:
                yield f"no node matches workload {workload}: {line}"


def _why(selector: Selector, nodes: Sequence[Labels], product_label: str) -> Iterator[str]:
    for key, value in sorted(selector):
        there = sorted({labels[key] for labels in nodes if key in labels})
        if value in there:
            continue
        what = f"product {value} is not there" if key == product_label else f"{key}={value} is not there"
        if there:
            near = suggest(value, there)
            meant = f"; did you mean {near}?" if near else ""
            yield f"{what}; there {'is' if len(there) == 1 else 'are'} {listed(there, _SHOWN)}{meant}"
        elif (other := _under(value, nodes) if key == product_label else None) is None:
            yield f"{what}, as no node has the label {key}"
        else:
            label, values = other
            there_is = f"{'is' if len(values) == 1 else 'are'} {listed(values, _SHOWN)}"
            yield f"{what}, as no node has the label {key}; with productLabel: {label} there {there_is}"


def _under(value: str, nodes: Sequence[Labels]) -> tuple[str, list[str]] | None:
    """Another label that seems to say which GPUs a node has, by the wanted value or by its name; and its values."""
    by_key: dict[str, set[str]] = {}
    for labels in nodes:
        for key, text in labels.items():
            by_key.setdefault(key, set()).add(text)
    keys = [key for key, values in by_key.items() if value in values]
    keys += [
        key
        for key, values in sorted(by_key.items())
        if any(word in key.rpartition("/")[2] for word in ("gpu", "accelerator"))
        and len(values) <= _KINDS_OF_GPU
        and not any(each.isdigit() or each in ("true", "false", "") for each in values)
    ]
    return (keys[0], sorted(by_key[keys[0]])) if keys else None
