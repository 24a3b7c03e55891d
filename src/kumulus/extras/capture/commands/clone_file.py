"""A clone's stack file: as a capture has it, with the nodes next to it where Pulumi could not take them within it."""

import os
from collections.abc import Collection, Mapping
from pathlib import Path
from typing import Any

from kumulus.cli import project
from kumulus.cli.errors import UserError
from kumulus.host import files, pulumi_project

_CLUSTER, _NODES, _PRICES = "kumulus:cluster", "kumulus:nodes", "kumulus:prices"


def write(file: Path, text: str) -> None:
    """Write a stack's file, and keep the salt that Pulumi has put into it."""
    from kumulus.kube import safe_yaml
    from kumulus.stackfile.nodes_file import needs_nodes_file, without_nodes, written

    salt = pulumi_project.salt(file)
    file.parent.mkdir(parents=True, exist_ok=True)
    config = config_of(text)
    if needs_nodes_file(config):
        nodes_path = file.with_name(f"{file.stem.removeprefix('Pulumi.')}.nodes.json")
        cluster, nodes = without_nodes(config[_CLUSTER])
        lines = written(nodes)
        # A clone that was killed before it wrote the stack's file has left the same nodes.
        if nodes_path.exists() and not file.exists() and nodes_path.read_bytes() != lines.encode():
            shown = project.current().shown(nodes_path)
            raise UserError(
                f"{shown} is already there, and was not written by this clone\n  Name another with -s, or delete it"
            )
        files.write(nodes_path, lines)
        named = {_NODES: os.path.relpath(nodes_path, project.current().root), _CLUSTER: cluster}
        text = safe_yaml.written({"config": named}, width=120)
    files.write(file, text + salt)


def read(file: Path) -> dict[str, Any]:
    """The configuration in a stack's file that `write` wrote, as the capture has it; empty if the file is broken."""
    import yaml

    from kumulus.model.errors import SpecError
    from kumulus.stackfile.nodes_file import with_nodes

    try:
        config = config_of(file.read_text(encoding="utf-8"))
        if (named := config.pop(_NODES, None)) is not None:
            config[_CLUSTER] = with_nodes(config.get(_CLUSTER), str(named), project.current().root, str(file))
    except (SpecError, ValueError, yaml.YAMLError):
        return {}
    return config


def require(file: Path, known: Collection[Mapping[str, Any]], capture: Path) -> None:
    """Check that a stack's file is a clone's: as `write` wrote it, but for prices, which no capture has."""
    # Not from the cache that other commands use: the file changes while a command runs.
    there = {key: each for key, each in read(file).items() if key != _PRICES}
    if there not in known:
        raise UserError(
            f"{project.current().shown(file)} is another stack's, or has been changed since it was cloned from "
            f"{capture}\n  Undo the change, or name another stack with -s, or delete that file"
        )


def config_of(text: str) -> dict[str, Any]:
    """The configuration in a stack file's text; empty if it has none."""
    import yaml

    from kumulus.kube.safe_yaml import FAST_LOADER

    document = yaml.load(text, Loader=FAST_LOADER)  # noqa: S506 - a safe loader
    config = document.get("config") if isinstance(document, dict) else None
    return config if isinstance(config, dict) else {}
