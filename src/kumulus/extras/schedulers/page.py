"""``python -m kumulus.extras.schedulers.page``: write the table in docs/schedulers.md; a test compares them."""

from pathlib import Path

from kumulus import toolchain
from kumulus.extras.schedulers import registry
from kumulus.model.words import with_part

PAGE = Path(__file__).resolve().parents[4] / "docs" / "schedulers.md"


def table() -> str:
    """The schedulers as a Markdown table."""
    lines = [
        "| Name | What runs | Version | Gangs | One `topology` place | Queues | To get it: `./kumulus tools --with` |",
        "|---|---|---|---|---|---|---|",
    ]
    for each in registry.every():
        tools = f"`{each.tool_set}`" if each.tool_set else "–"
        version, gangs, queues = toolchain.version(each.tools[0]), each.gangs_are or "–", each.queues_are or "–"
        place = "yes" if each.bind else "–"
        lines.append(f"| `{each.name}` | {each.runs} | {version} | {gangs} | {place} | {queues} | {tools} |")
    return "\n".join(lines) + "\n"


def with_table(text: str) -> str:
    """The page with the current table; the text around it stays."""
    return with_part(text, "schedulers", table())


if __name__ == "__main__":
    PAGE.write_text(with_table(PAGE.read_text()))
