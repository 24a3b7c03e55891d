"""``python -m kumulus.runtimes.page``: write the table in docs/clusters.md; a test compares them."""

from __future__ import annotations

from pathlib import Path

from kumulus.model.words import with_part
from kumulus.runtimes import registry

PAGE = Path(__file__).resolve().parents[3] / "docs" / "clusters.md"


def table() -> str:
    """The runtimes as a table of Markdown."""
    lines = ["| `runtime:` | What it is | Takes | Ready in |", "|---|---|---|---|"]
    for each in registry.every():
        name = f"[`{each.name}`]({each.page})" if each.page else f"`{each.name}`"
        name += " (default)" if each.name == registry.DEFAULT else ""
        lines.append(f"| {name} | {each.about} | {each.takes} | {each.ready_in} |")
    return "\n".join(lines) + "\n"


def with_table(text: str) -> str:
    """The page with the table as it is now; the text around it stays."""
    return with_part(text, "runtimes", table())


if __name__ == "__main__":
    PAGE.write_text(with_table(PAGE.read_text()))
