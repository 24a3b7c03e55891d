"""CustomResourceDefinitions of a scheduler's own: taken from its Go module or its chart, and kept with its tools."""

import functools
from pathlib import Path
from typing import Any

import yaml

from kumulus import toolchain
from kumulus.extras.schedulers import registry
from kumulus.extras.schedulers.errors import SchedulerError
from kumulus.host import installation
from kumulus.kube.safe_yaml import FAST_LOADER
from kumulus.toolchain import pins


def crds(name: str) -> list[dict[str, Any]]:
    """The definitions of a scheduler's own kinds; none for kube-scheduler and YuniKorn."""
    return [each for each in manifests(name) if each["kind"] == "CustomResourceDefinition"]


def manifests(name: str) -> list[dict[str, Any]]:
    """Every manifest kept with a scheduler's tool."""
    return [document for file in sorted(_kept(name).glob("*.yaml")) for document in _documents(file)]


def text(name: str, file: str) -> str:
    """The text of a file kept with a scheduler's tool."""
    return (_kept(name) / file).read_text()


def find(tool: str, tool_set: str, version: str | None = None) -> Path:
    """A scheduler's program.

    Args:
        tool: its name in pins.toml.
        tool_set: the tool set that builds it with everything else the scheduler needs.
        version: of Kubernetes, for one of its programs.
    """
    try:
        return toolchain.find(tool, version)
    except toolchain.ToolMissing as error:
        first = str(error).splitlines()[0]
        if version not in (None, toolchain.version(tool)):
            raise SchedulerError(str(error)) from None
        remedy = f"{installation.command()} tools" + (f" --with {tool_set}" if tool_set else "")
        raise SchedulerError(f"{first}\n  To get it: {remedy}") from None


def _kept(name: str) -> Path:
    scheduler, known = registry.get(name), pins.load()
    keeping = next((tool for tool in scheduler.tools if known.tool(tool).keep), scheduler.tools[0])
    find(keeping, scheduler.tool_set)
    return toolchain.kept(keeping)


def _documents(file: Path) -> list[dict[str, Any]]:
    # Kueue's definition of a Workload is 1.4 MB and takes half a second to parse; a caller that changes one copies it.
    stamp = file.stat().st_mtime_ns
    return [dict(document) for document in _parsed(file, stamp)]


@functools.lru_cache(maxsize=64)
def _parsed(file: Path, stamp: int) -> tuple[dict[str, Any], ...]:
    try:
        return tuple(each for each in yaml.load_all(file.read_text(), Loader=FAST_LOADER) if each)
    except yaml.YAMLError as error:
        raise SchedulerError(
            f"{file} is damaged: {error}\n  Remove its directory and run {installation.command()} tools again"
        ) from None
