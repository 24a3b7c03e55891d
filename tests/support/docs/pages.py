"""Pages of Markdown: their headings' anchors, links and fenced blocks, each block with the marker above it."""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parents[3]
README = ROOT / "README.md"
DOCS = ROOT / "docs"
EXAMPLES = ROOT / "examples"
EXPERIMENTS = ROOT / "experiments"

_FENCE = re.compile(r"^(?P<indent> *)(?P<ticks>`{3,})(?P<language>[\w-]*)\s*$")
_COMMENT = re.compile(r"^\s*<!--\s*(?P<text>.*?)\s*-->\s*$")
_HEADING = re.compile(r"^#{1,6}\s+(?P<text>.+?)\s*#*$")
_LINK = re.compile(r"\[(?:[^\[\]]|\[[^\]]*\])*\]\((?P<target>[^()\s]+)(?:\s+\"[^\"]*\")?\)")
_CODE = re.compile(r"`[^`]*`")

SHELL = ("console", "sh", "bash", "shell")


@dataclass(frozen=True)
class Block:
    """A fenced block of a page."""

    page: Path
    """The file that contains it."""
    line: int
    """The number of its first line of text."""
    language: str
    """The word after the fence; "" without one."""
    text: str
    """The text between the fences, without the fence's indentation."""
    markers: tuple[str, ...]
    """The texts of the comments directly above it, in their order."""

    @property
    def place(self) -> str:
        """Where it is, for messages."""
        return f"{self.page.relative_to(ROOT)}:{self.line}"


def pages() -> list[Path]:
    """README and the other pages at the top, then those of docs/, of the examples and of the experiments."""
    others = sorted(page for page in ROOT.glob("*.md") if page != README)
    return [README, *others, *sorted(DOCS.rglob("*.md")), *sorted(EXAMPLES.rglob("*.md")), EXPERIMENTS / "README.md"]


def blocks(page: Path) -> list[Block]:
    """The fenced blocks of a page."""
    found: list[Block] = []
    markers: list[str] = []
    lines = iter(enumerate(page.read_text().splitlines(), start=1))
    for number, line in lines:
        if fence := _FENCE.match(line):
            indent, end = len(fence["indent"]), fence["indent"] + fence["ticks"]
            inside: list[str] = []
            for _, inner in lines:
                if inner.rstrip() == end:
                    break
                inside.append(inner[indent:])
            else:
                raise AssertionError(f"{page.relative_to(ROOT)}:{number}: the block has no end")
            found.append(Block(page, number + 1, fence["language"], "\n".join(inside), tuple(markers)))
            markers = []
        elif comment := _COMMENT.match(line):
            markers.append(comment["text"])
        elif line.strip():
            markers = []
    return found


def prose(page: Path) -> Iterator[tuple[int, str]]:
    """The numbered lines of a page that are in no fenced block."""
    end = ""
    for number, line in enumerate(page.read_text().splitlines(), start=1):
        if end:
            end = "" if line.rstrip() == end else end
        elif fence := _FENCE.match(line):
            end = fence["indent"] + fence["ticks"]
        else:
            yield number, line


def links(page: Path) -> Iterator[tuple[int, str]]:
    """The targets of a page's links and pictures, with their line numbers."""
    for number, line in prose(page):
        for link in _LINK.finditer(_CODE.sub("code", line)):
            yield number, link["target"]


def anchors(page: Path) -> set[str]:
    """The anchors that GitHub makes of a page's headings."""
    made: set[str] = set()
    for _, line in prose(page):
        if heading := _HEADING.match(line):
            text = re.sub(r"\[([^\]]*)\]\([^)]*\)", r"\1", heading["text"]).replace("`", "")
            slug = re.sub(r"[^\w\- ]", "", text.lower()).replace(" ", "-")
            anchor, again = slug, 0
            while anchor in made:
                again += 1
                anchor = f"{slug}-{again}"
            made.add(anchor)
    return made
