"""Raise every pin that can be raised, keep what the tests pass with, and say what was left.

    python -m tests.support.refresh                  # with make lint and make test after each kind of pin
    python -m tests.support.refresh .venv/bin/python -m pytest tests/unit      # with another command

Each kind of pin is raised by itself. If the command fails then, the files are put back, and the kind is named as left;
what passes stays in the working tree, to be looked at and committed. What has to be done by hand is named with the
newer version: tools' checksums are what others have published (pins.toml), and bounds of pyproject.toml are decisions.
.github/workflows/refresh.yml runs this every month. The exit code is 1 if anything was put back.
"""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from packaging.utils import canonicalize_name
from packaging.version import InvalidVersion, Version

from kumulus.toolchain import pins, venv
from kumulus.toolchain.errors import ToolchainError

ROOT = Path(__file__).resolve().parents[2]
HASHED = ("src/kumulus/toolchain/uv-requirements.txt", "src/kumulus/extras/policy/requirements.txt")
_PINNED = re.compile(r"(?m)^([A-Za-z0-9_.-]+)==([^\s;\\]+)")
_ACTION = re.compile(r"uses: (actions/[a-z-]+)@([0-9a-f]{40}) # v([\d.]+)")
_BOUND = "kept by a bound of pyproject.toml or of another package"
_TOOL = "whose go.mod, version in pins.toml and checksums, if others have published them, are written by hand"
_TESTS = (("make", "lint"), ("make", "test"))


@dataclass
class Outcome:
    """What came of it."""

    raised: dict[str, list[str]] = field(default_factory=dict)
    """What is newer now, by kind of pin."""
    put_back: dict[str, str] = field(default_factory=dict)
    """Kinds whose new versions did not pass, with the last lines of what failed."""
    left: dict[str, list[str]] = field(default_factory=dict)
    """What has to be raised by hand, by what that takes."""

    def lines(self) -> Iterator[str]:
        """All of it, for people."""
        for kind, changes in self.raised.items():
            yield f"raised, {kind}: {', '.join(changes) or 'nothing newer'}"
        for kind, why in self.put_back.items():
            yield f"put back, {kind}:\n{why}"
        for why, each in self.left.items():
            yield f"left, {why}:"
            yield from (f"  {one}" for one in each)


def refresh(root: Path, kinds: Iterable[Kind], commands: Sequence[Sequence[str]]) -> Outcome:
    """Raise each kind of pin, and keep it if the commands pass.

    Args:
        root: a checkout without changes.
        commands: to be run after each, until one fails.
    """
    found = Outcome()
    for kind in kinds:
        before = {file: file.read_bytes() for file in kind.files(root)}
        try:
            changes = kind.raise_all(root)
            failed = _failing(root, commands) if changes else ""
        except (ToolchainError, subprocess.CalledProcessError, OSError) as error:
            failed, changes = f"  {error}", []
        if failed:
            for file, content in before.items():
                file.write_bytes(content)
            found.put_back[kind.name] = failed
        else:
            found.raised[kind.name] = changes
    return found


def _failing(root: Path, commands: Sequence[Sequence[str]]) -> str:
    for command in commands:
        done = subprocess.run(command, cwd=root, capture_output=True, text=True, errors="replace", check=False)
        if done.returncode:
            last = (done.stdout + done.stderr).strip().splitlines()[-12:]
            return "\n".join([f"  {' '.join(command)} failed:", *(f"    {line}" for line in last)])
    return ""


@dataclass(frozen=True)
class Kind:
    """A kind of pin."""

    name: str
    """For people."""
    files: Callable[[Path], list[Path]]
    """Those that have them."""
    raise_all: Callable[[Path], list[str]]
    """Raise them in these files; returns what is newer, as `name old → new`."""


def _lock(root: Path) -> list[str]:
    before = (root / venv.LOCK).read_text()
    venv.write_lock(root, upgrade=True)
    return changed(before, (root / venv.LOCK).read_text())


def _hashed(root: Path) -> list[str]:
    """Files of a few packages with all that these need: each package that is named, at its newest."""
    found = []
    for name in HASHED:
        file = root / name
        before = file.read_text()
        heading = re.match(r"(?:#.*\n)*", before)
        named = file.with_suffix(".in")
        named.write_text("".join(f"{package}>={version}\n" for package, version in _PINNED.findall(before)))
        try:
            options = [each if each != "pyproject.toml" else str(named) for each in venv.COMPILE]
            newest = ["--upgrade", "--prerelease", "explicit", "--no-header"]
            venv.write_requirements(root, [*options, *newest, "-o", str(file)])
        finally:
            named.unlink()
        file.write_text((heading[0] if heading else "") + file.read_text())
        found += changed(before, file.read_text())
    return found


def _actions(root: Path) -> list[str]:
    """GitHub's own actions, by the commits of their newest tags."""
    found, newest = [], dict[str, tuple[Version, str]]()
    for file in workflows(root):
        text = file.read_text()
        for name, commit, version in sorted(set(_ACTION.findall(text))):
            if name not in newest:
                newest[name] = _newest_tag(f"{os.environ.get('REFRESH_GIT', 'https://github.com')}/{name}")
            latest, at = newest[name]
            if latest > Version(version):
                text = text.replace(f"{name}@{commit} # v{version}", f"{name}@{at} # v{latest}")
                found.append(f"{name} {version} → {latest}")
        file.write_text(text)
    return sorted(set(found))


def _newest_tag(url: str) -> tuple[Version, str]:
    command = ["git", "ls-remote", "--tags", url]
    listed = subprocess.run(command, capture_output=True, text=True, check=True, timeout=60).stdout
    tags: dict[Version, str] = {}
    # A tag with a message is followed by a line for the commit that it names.
    for commit, version in re.findall(r"(?m)^([0-9a-f]{40})\trefs/tags/v(\d+\.\d+\.\d+)(?:\^\{\})?$", listed):
        tags[Version(version)] = commit
    newest = max(tags)
    return newest, tags[newest]


def workflows(root: Path) -> list[Path]:
    """The files that name actions."""
    found = [path for folder in (".github/workflows", "examples/ci") for path in (root / folder).glob("*.yml")]
    return sorted([root / "action.yml", *found])


def changed(before: str, after: str) -> list[str]:
    """The packages whose versions differ, as `name old → new`."""
    old, new = (
        {canonicalize_name(name): version for name, version in _PINNED.findall(each)} for each in (before, after)
    )
    return [f"{name} {old.get(name, '–')} → {version}" for name, version in new.items() if old.get(name) != version]


KINDS = (
    Kind("Python packages", lambda root: [root / venv.LOCK], _lock),
    Kind("uv and the policy pack", lambda root: [root / name for name in HASHED], _hashed),
    Kind("GitHub's actions", workflows, _actions),
)


def by_hand(root: Path) -> dict[str, list[str]]:
    """What is newer than its pin and has to be raised by hand, by what that takes."""
    listed = _json([str(venv.python(root)), "-m", "pip", "list", "--outdated", "--format", "json"])
    packages = listed if isinstance(listed, list) else []
    modules = []
    for path, pinned, named in sorted(_modules()):
        found = _json(["go", "list", "-m", "-json", f"{path}@latest"])
        if isinstance(found, dict) and _newer(found["Version"], pinned):
            modules.append(f"{path} {pinned} → {found['Version']}, of {named}")
    return {
        _BOUND: [f"{each['name']} {each['version']} → {each['latest_version']}" for each in packages],
        _TOOL: modules,
    }


def _modules() -> set[tuple[str, str, str]]:
    """The Go modules that tools are made of: path, version, and the folder under modules/ that requires it."""
    known = pins.load()
    found = {("k8s.io/kubernetes", f"v{known.default_kubernetes}", "kubernetes")}
    for file in (pins.HERE / "modules").glob("*/go.mod"):
        required = {each["Path"]: each for each in json.loads(_go_mod(file))["Require"]}
        packages = [tool.package for tool in known.tools if tool.package and tool.workspace == file.parent.name]
        for package in packages:
            above = [path for path in required if package == path or package.startswith(f"{path}/")]
            own = [max(above, key=len)] if above else [path for path in required if not required[path].get("Indirect")]
            found |= {(path, required[path]["Version"], file.parent.name) for path in own}
    return found


def _go_mod(file: Path) -> str:
    command = ["go", "mod", "edit", "-json", str(file)]
    return subprocess.run(command, capture_output=True, text=True, check=True, timeout=60).stdout


def _newer(latest: str, pinned: str) -> bool:
    try:
        return Version(latest.lstrip("v")) > Version(pinned.lstrip("v"))
    except InvalidVersion:
        return False


def _json(command: list[str]) -> object:
    done = subprocess.run(command, cwd="/", capture_output=True, text=True, check=False, timeout=300)
    return json.loads(done.stdout) if done.returncode == 0 and done.stdout.strip() else None


if __name__ == "__main__":
    outcome = refresh(ROOT, KINDS, [sys.argv[1:]] if sys.argv[1:] else _TESTS)
    outcome.left = by_hand(ROOT)
    print("\n".join(outcome.lines()))
    sys.exit(bool(outcome.put_back))
