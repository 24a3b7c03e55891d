"""The user's Pulumi project, as its Pulumi.yaml describes it; for the command and for programs.

In a fresh clone the command runs on a Python that has no YAML library. There, and only there, the few fields that it
needs are found with regular expressions.
"""

import functools
import hashlib
import json
import os
import re
from dataclasses import dataclass
from pathlib import Path
from typing import Any

_NAMES = ("Pulumi.yaml", "Pulumi.yml", "Pulumi.json")
_FILE = "file://"
_SALT = "encryptionsalt:"
_OURS = re.compile(r"^from kumulus import program$", re.MULTILINE)


@dataclass(frozen=True)
class PulumiProject:
    """A project."""

    file: Path
    """Its Pulumi.yaml."""
    name: str
    """Its name in Pulumi; "" if the file does not say."""
    stack_files: Path
    """The directory of its stacks' files."""
    backend: str
    """The URL of its backend; "" if the file names none."""
    plugin: Path | None
    """The directory of Kumulus' provider plugin that the file names; None if the engine looks for it."""
    runtime: str = ""
    """What runs its program, such as `python` or `nodejs`; "" if the file does not say."""

    @property
    def root(self) -> Path:
        """Its directory, to which relative paths refer."""
        return self.file.parent

    @property
    def describes_clusters(self) -> bool:
        """Whether its program is Kumulus' own, which does nothing but declare the clusters in a stack's file."""
        try:
            return _OURS.search((self.root / "__main__.py").read_text(encoding="utf-8")) is not None
        except (OSError, UnicodeDecodeError):
            return False

    def stack_file(self, stack: str) -> Path:
        """The path of a stack's file, which need not exist; it ends as the project's does, as Pulumi has it."""
        return self.stack_files / f"Pulumi.{stack}{self.file.suffix}"

    def shown(self, file: Path) -> str:
        """A file's path as shown to the user: relative to the project's directory if it is inside."""
        return str(file.relative_to(self.root)) if file.is_relative_to(self.root) else str(file)

    def stacks(self) -> list[str]:
        """The names of the stacks that have a file."""
        files = self.stack_files.glob(f"Pulumi.?*{self.file.suffix}")
        return sorted(file.stem.removeprefix("Pulumi.") for file in files)

    def backend_directory(self) -> Path | None:
        """The directory with the stacks' state, or None if it is not on this machine."""
        url = os.environ.get("PULUMI_BACKEND_URL") or self.backend
        if not url.startswith(_FILE):
            return None
        path = url.removeprefix(_FILE).partition("?")[0]
        return (self.root / os.path.expanduser(path)).resolve()

    def selected_stack(self, pulumi_home: Path) -> str | None:
        """The stack that `pulumi stack select` chose, or None.

        Pulumi keeps it in a file of its own, named after the path by which it found Pulumi.yaml. Since 3.256, its
        `stacks` has one for each backend that was used; the `stack` of older versions is for all others.
        """
        url = os.environ.get("PULUMI_BACKEND_URL") or self.backend or logged_in(pulumi_home)
        for path in dict.fromkeys((str(self.file), str(self.file.resolve()))):
            digest = hashlib.sha1(path.encode(), usedforsecurity=False).hexdigest()
            found = _json(pulumi_home / "workspaces" / f"{self.name}-{digest}-workspace.json")
            stacks = found.get("stacks")
            stack = stacks[url] if isinstance(stacks, dict) and url in stacks else found.get("stack")
            if isinstance(stack, str) and stack:
                return stack.rpartition("/")[2]
        return None


def logged_in(pulumi_home: Path) -> str:
    """The URL of the backend that `pulumi login` chose; "" if nobody is logged in."""
    return str(_json(pulumi_home / "credentials.json").get("current") or "")


def find(start: Path) -> PulumiProject | None:
    """The project that a directory is in: the nearest one at or above it, as Pulumi finds it."""
    for folder in (start, *start.parents):
        for name in _NAMES:
            if (folder / name).is_file():
                return read(folder / name)
    return None


def salt(file: Path) -> str:
    """The line with the salt of a stack's secrets, which Pulumi writes into its file; empty if the file has none.

    Whoever writes the file anew has to keep it.
    """
    try:
        lines = file.read_text(encoding="utf-8", errors="replace").splitlines()
    except FileNotFoundError:
        return ""
    return "".join(f"{line}\n" for line in lines if line.startswith(_SALT))


@functools.lru_cache(maxsize=8)
def read(file: Path) -> PulumiProject:
    """A project, read from its file; fields that cannot be read are left empty, for Pulumi to report."""
    fields = _fields(file)
    backend = fields.get("backend")
    url = backend.get("url") if isinstance(backend, dict) else None
    runtime = fields.get("runtime")
    if isinstance(runtime, dict):
        runtime = runtime.get("name")
    plugins = fields.get("plugins")
    providers = plugins.get("providers") if isinstance(plugins, dict) else None
    paths = [
        each.get("path")
        for each in (providers if isinstance(providers, list) else [])
        if isinstance(each, dict) and each.get("name") == "kumulus"
    ]
    return PulumiProject(
        file=file,
        name=str(fields.get("name") or ""),
        stack_files=file.parent / str(fields.get("stackConfigDir") or "."),
        backend=str(url or ""),
        plugin=file.parent / str(paths[0]) if paths and paths[0] else None,
        runtime=str(runtime or ""),
    )


def _json(file: Path) -> dict[str, Any]:
    try:
        found = json.loads(file.read_text())
    except (OSError, ValueError):
        return {}
    return found if isinstance(found, dict) else {}


def _fields(file: Path) -> dict[str, Any]:
    try:
        text = file.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError):
        return {}
    try:
        import yaml
    except ImportError:
        return _without_a_library(text)
    try:
        found = yaml.safe_load(text)
    except (yaml.YAMLError, ValueError):
        return {}
    return found if isinstance(found, dict) else {}


def _without_a_library(text: str) -> dict[str, Any]:
    """The fields that the command needs before there is a YAML library, found by their usual spelling."""

    def field(pattern: str) -> str:
        match = re.search(pattern, text, re.MULTILINE)
        return match[1].strip("\"'") if match else ""

    return {
        "name": field(r"^name:[ \t]*(\S+)"),
        "stackConfigDir": field(r"^stackConfigDir:[ \t]*(\S+)"),
        "backend": {"url": field(r"^backend:\s*(?:#.*\s+)?\{?\s*url:[ \t]*([^\s}]+)")},
        "runtime": field(r"^runtime:\s*(?:name:[ \t]*)?(\S+)"),
        "plugins": {"providers": [{"name": "kumulus", "path": field(r"^[ \t]*path:[ \t]*(\S+)")}]},
    }
