"""``python -m kumulus.nodes.catalog.fault_page``: write the table of faults into docs/faults.md."""

from __future__ import annotations

from pathlib import Path

from kumulus.model.node_effects import XID_ANNOTATION
from kumulus.model.words import with_part
from kumulus.nodes.catalog.faults import Kind, kinds

PAGE = Path(__file__).resolve().parents[4] / "docs" / "faults.md"


def table() -> str:
    """The catalog as Markdown tables for faults of nodes, pods and offerings, followed by its sources."""
    nodes = [kind for kind in kinds().values() if kind.of_nodes]
    pods = [kind for kind in kinds().values() if kind.pods is not None]
    lines = ["| Kind | What happens | On the node | Sources |", "|---|---|---|---|"]
    lines += [f"| {_names(each)} | {each.summary} | {_on_node(each)} | {', '.join(each.sources)} |" for each in nodes]
    lines += ["", "| Kind | What happens | In the pod | Sources |", "|---|---|---|---|"]
    lines += [f"| `{each.name}` | {each.summary} | {_in_pod(each)} | {', '.join(each.sources)} |" for each in pods]
    offers = [kind for kind in kinds().values() if kind.offers is not None]
    lines += ["", "| Kind | What happens | To an autoscaler's offerings | Sources |", "|---|---|---|---|"]
    lines += [f"| `{each.name}` | {each.summary} | {_to_offers(each)} | {', '.join(each.sources)} |" for each in offers]
    cited = {name: text for kind in kinds().values() for name, text in kind.sources.items()}
    return "\n".join([*lines, "", *(f"- {name}: {text}" for name, text in cited.items())]) + "\n"


def with_table(text: str) -> str:
    """The page with the current table; the text around the table stays."""
    return with_part(text, "catalog", table())


def _names(kind: Kind) -> str:
    return ", ".join(f"`{name}`" for name in (kind.name, *kind.also))


def _on_node(kind: Kind) -> str:
    node = kind.node
    found = [f"{name}={each.status} ({each.reason})" for name, each in node.conditions.items()]
    found += [f"taint `{taint.key}={taint.value}:{taint.effect}`" for taint in node.taints]
    found += [f"XID {node.annotations[XID_ANNOTATION]}"] if XID_ANNOTATION in node.annotations else []
    found += [f"{name}: {change}" for name, change in node.capacity.items()]
    found += [f"kubelet: {node.kubelet}"] if node.kubelet else []
    return "; ".join(found)


def _in_pod(kind: Kind) -> str:
    pods = kind.pods
    assert pods is not None
    exits = f", exit code {pods.exit_code}" if pods.action in ("fail", "failInit") else ""
    reason = f", {pods.reason}" if pods.reason else ""
    return f"{pods.action}{exits}{reason}"


def _to_offers(kind: Kind) -> str:
    offers = kind.offers
    if offers is not None and offers.interruption is not None:
        return "NodeClaims deleted at the notice, nodes gone at its end"
    if offers is not None and offers.sold_out:
        return "none available"
    return "no more than `limits`" if kind.name == "quota" else "their price times `priceFactor`"


if __name__ == "__main__":
    PAGE.write_text(with_table(PAGE.read_text()))
