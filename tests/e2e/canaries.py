"""Canaries: made-up secrets that are planted, and looked for wherever a secret must not be."""

import base64
import re
import secrets
import stat
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path

import psutil

from tests.support.processes import repeated


class Canaries:
    """Secrets of one test, each another, all told by what they begin with; and others that are known later."""

    def __init__(self) -> None:
        self._prefix = f"canary{secrets.token_hex(8)}"
        self._others: dict[str, str] = {}
        self.planted: list[str] = []

    def new(self, kind: str) -> str:
        """Another one."""
        made = f"{self._prefix}{kind}{len(self.planted):03}"
        self.planted.append(made)
        return made

    def also(self, kind: str, secret: str) -> None:
        """A secret that somebody else has made, such as a token."""
        self._others[secret] = kind
        self.planted.append(secret)

    def found_in(self, content: bytes) -> set[str]:
        """Which are there, as they are or in base64, by their kind and number."""
        texts = [content, *(_decoded(found[0]) for found in _BASE64.finditer(content))]
        found = {match[0].decode() for text in texts for match in re.finditer(self._prefix.encode() + rb"\w+", text)}
        return found | {kind for secret, kind in self._others.items() if any(secret.encode() in text for text in texts)}


_BASE64 = re.compile(rb"[A-Za-z0-9+/]{40,}={0,2}")


def _decoded(text: bytes) -> bytes:
    try:
        return base64.b64decode(text + b"=" * (-len(text) % 4))
    except ValueError:
        return b""


class Watch:
    """What was seen while something went on.

    Attributes:
        commands: canaries in the command line of a process, which `ps` shows to everybody.
        files: canaries in a file that others may read, by its path.
        looks: how often it was looked.
    """

    def __init__(self) -> None:
        self.commands: set[str] = set()
        self.files: dict[str, set[str]] = {}
        self.looks = 0


@contextmanager
def watched(canaries: Canaries, temporary: Iterable[Path]) -> Iterator[Watch]:
    """Look at all processes and at temporary files again and again meanwhile.

    Args:
        temporary: the directories with temporary files.
    """
    seen = Watch()

    def look() -> None:
        for process in psutil.process_iter(["cmdline"]):
            words = "\0".join(process.info["cmdline"] or []).encode(errors="replace")
            seen.commands |= canaries.found_in(words)
        for folder in temporary:
            seen.files |= readable(canaries, folder)
        seen.looks += 1

    with repeated(look, 0.01):
        yield seen


def readable(canaries: Canaries, folder: Path) -> dict[str, set[str]]:
    """The files below a folder with canaries in them that somebody else may read, each with those."""
    return {
        str(path): found
        for path, found in in_files(canaries, folder).items()
        if not (is_private(path) or any(is_private(parent) for parent in path.parents if parent.is_relative_to(folder)))
    }


def in_files(canaries: Canaries, folder: Path) -> dict[Path, set[str]]:
    """The files below a folder with canaries in them, in their name or what they say."""
    found: dict[Path, set[str]] = {}
    for path in folder.rglob("*"):
        try:
            if path.is_file() and not path.is_symlink():
                found[path] = canaries.found_in(str(path).encode() + b"\n" + path.read_bytes())
        except OSError:
            # It is gone again.
            continue
    return {path: names for path, names in found.items() if names}


def is_private(path: Path) -> bool:
    """Whether a file or directory is its owner's alone."""
    try:
        return not path.stat().st_mode & (stat.S_IRWXG | stat.S_IRWXO)
    except OSError:
        return True
