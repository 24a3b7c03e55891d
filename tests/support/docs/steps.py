"""The steps that a page asks its reader to do, in order: commands to run, and files to write or edit.

A block of commands has one of these comments above it:

    <!-- run -->                     its commands are run; they have to write the output that is printed
    <!-- run: unordered -->          …, in any order of lines
    <!-- run: fails 2, 3 -->         …, and the second and the third command have to fail
    <!-- not run: REASON -->         its commands are not run, for this reason

Any other block may have one of these above it:

    <!-- file: PATH -->              the block is written to the file
    <!-- file: PATH, end -->         the block is appended to the file

These may be anywhere, for steps that the page describes in words:

    <!-- edit: PATH: OLD => NEW -->  the first OLD in the file becomes NEW
    <!-- meanwhile: COMMAND -->      run but not printed, such as waiting for something that a reader would see
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from tests.support.docs import pages
from tests.support.docs.pages import Block

_RUN = re.compile(r"^run(:\s*(?P<how>.*))?$")
_NOT_RUN = re.compile(r"^not run:\s*(?P<reason>\S.*)$")
_FILE = re.compile(r"^file:\s*(?P<path>\S+?)(?P<end>,\s*end)?$")
_EDIT = re.compile(r"^edit:\s*(?P<path>\S+):\s+(?P<old>.+?)\s+=>\s+(?P<new>.+)$")
_MEANWHILE = re.compile(r"^meanwhile:\s*(?P<command>.+)$")
_PROMPT = "$ "


@dataclass(frozen=True)
class Command:
    """A command to run."""

    place: str
    """Its page and line, for messages."""
    text: str
    """The command, of one line or several."""
    output: str | None = None
    """The output that the page prints below it; None when it prints nothing."""
    fails: bool = False
    """Whether it has to fail."""
    unordered: bool = False
    """Whether its output's lines may come in any order."""


@dataclass(frozen=True)
class File:
    """A file to write, whole or at its end."""

    place: str
    path: str
    text: str
    at_end: bool = False


@dataclass(frozen=True)
class Edit:
    """A text to replace in a file, once."""

    place: str
    path: str
    old: str
    new: str


Step = Command | File | Edit


def steps(page: Path) -> list[Step]:
    """The steps of a page.

    Raises:
        AssertionError: a marker is unknown or in the wrong place.
    """
    return [step for _, step in sorted(_all(page), key=lambda numbered: numbered[0])]


def marker_problem(block: Block) -> str | None:
    """What is wrong with how a block is marked, or None."""
    shell = block.language in pages.SHELL
    if not shell:
        line = next((line for line in block.text.splitlines() if line.startswith(_PROMPT)), None)
        return f"has a command and is no console block: {line}" if line else None
    wanted = [marker for marker in block.markers if _RUN.match(marker) or _NOT_RUN.match(marker)]
    if len(wanted) != 1:
        return "has commands, and above it neither <!-- run --> nor <!-- not run: REASON -->"
    if not block.text.startswith(_PROMPT):
        return 'has commands: the first line begins with "$ "'
    return None


def is_run(page: Path) -> bool:
    """Whether any of a page's commands are run."""
    return any(isinstance(step, Command) for step in steps(page))


def _all(page: Path) -> Iterator[tuple[int, Step]]:
    for block in pages.blocks(page):
        for marker in block.markers:
            if run := _RUN.match(marker):
                for number, command in enumerate(_commands(block, run["how"] or "")):
                    yield block.line + number, command
            elif file := _FILE.match(marker):
                yield block.line, File(block.place, file["path"], block.text + "\n", file["end"] is not None)
    for number, line in pages.prose(page):
        place = f"{page.relative_to(pages.ROOT)}:{number}"
        comment = re.match(r"^\s*<!--\s*(.*?)\s*-->\s*$", line)
        if comment is None:
            continue
        if edit := _EDIT.match(comment[1]):
            yield number, Edit(place, edit["path"], edit["old"], edit["new"])
        elif meanwhile := _MEANWHILE.match(comment[1]):
            yield number, Command(place, meanwhile["command"])


def _commands(block: Block, how: str) -> Iterator[Command]:
    fails = {int(number) for number in re.findall(r"\d+", how)} if "fails" in how else set()
    lines = block.text.splitlines()
    parts: list[tuple[list[str], list[str]]] = []
    for line in lines:
        if line.startswith(_PROMPT):
            parts.append(([line.removeprefix(_PROMPT)], []))
        elif parts and not parts[-1][1] and parts[-1][0][-1].endswith("\\"):
            parts[-1][0].append(line)
        else:
            parts[-1][1].append(line)
    for number, (command, output) in enumerate(parts, start=1):
        printed = "\n".join(output)
        yield Command(
            f"{block.page.relative_to(pages.ROOT)}:{block.line}, command {number}",
            "\n".join(command),
            printed if printed.strip() else None,
            number in fails,
            "unordered" in how,
        )
