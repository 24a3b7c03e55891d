"""Our own components among those that kwokctl starts, as entries of its configuration."""

import hashlib
import json
import os
import sys
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from kumulus import toolchain
from kumulus.nodes.errors import ProviderError
from kumulus.runtimes.kwok.layout import Layout
from kumulus.toolchain.pins import CONTROL_PLANE

# The tools whose names are not those of their components.
_TOOLS = {"kwok-controller": "kwok"}
ANY_DIRECTORY = Path("/nowhere/clusters/any")
"""The cluster directory in a definition that is only compared: a fingerprint does not depend on where a cluster is, and
another path here would restart the component in every cluster that is there."""


def fingerprint(value: Any) -> str:
    """A short hash of what decides how a component runs."""
    return hashlib.sha256(json.dumps(value, sort_keys=True).encode()).hexdigest()[:16]


def definition(
    layout: Layout,
    name: str,
    arguments: Sequence[str],
    ports: Mapping[str, int],
    *,
    links: Sequence[str] = (),
    environment: Mapping[str, str] | None = None,
) -> dict[str, Any]:
    """A component as an entry of kwokctl's configuration, named as its executable in the cluster's ``bin`` is.

    It listens on the ports, of which ``http`` is the main one, and is started after its links.
    """
    return {
        "name": name,
        "binary": str(layout.directory / "bin" / name),
        "workDir": str(layout.directory),
        "links": list(links),
        "args": list(arguments),
        "ports": [{"name": called, "port": port, "protocol": "TCP"} for called, port in ports.items()],
        "envs": [{"name": key, "value": value} for key, value in (environment or {}).items()],
    }


def python(
    layout: Layout, name: str, module: str, arguments: Sequence[str] = (), links: Sequence[str] = ("kube-apiserver",)
) -> dict[str, Any]:
    """A component that is a module of Python, as an entry of kwokctl's configuration; its executable is linked."""
    link(layout, name, Path(sys.executable).resolve())
    # Started by a link in the cluster's directory, it would not find a venv's packages.
    variables = {"PYTHONPATH": os.pathsep.join(each for each in sys.path if each), "PYTHONUNBUFFERED": "1"}
    return definition(layout, name, ["-P", "-m", module, *arguments], {}, links=links, environment=variables)


def mark(name: str) -> dict[str, str]:
    """The labels of the objects that we make in a cluster for a component, which distinguish them from others'."""
    return {"app.kubernetes.io/name": name, "app.kubernetes.io/managed-by": "kumulus"}


def link(layout: Layout, name: str, executable: Path) -> None:
    """Link an executable into the cluster's ``bin``, so that the process table names its cluster."""
    target = layout.directory / "bin" / name
    target.unlink(missing_ok=True)
    target.symlink_to(executable)


def relink(layout: Layout) -> None:
    """Link programs again whose files are gone, as after `clean --tools` in another project."""
    version = (layout.settings().get("options") or {}).get("kubeVersion")
    for name in layout.components():
        program = layout.directory / "bin" / name
        if not program.is_symlink() or program.exists():
            continue
        try:
            link(layout, name, toolchain.find(_TOOLS.get(name, name), version if name in CONTROL_PLANE else None))
        except toolchain.ToolchainError as error:
            gone = f"{name} of cluster {layout.name} cannot start, as {program.readlink()} is gone"
            raise ProviderError(f"{gone}: {error}") from None


def replaced(settings: Mapping[str, Any], names: Iterable[str], *definitions: Mapping[str, Any]) -> dict[str, Any]:
    """Kwokctl's configuration without the components of these names, and with these definitions instead."""
    gone = set(names)
    others = [each for each in settings.get("components") or [] if each.get("name") not in gone]
    return {**settings, "components": [*others, *map(dict, definitions)]}


def flag(settings: Mapping[str, Any], component: str, name: str) -> str | None:
    """The value of one of a component's flags, by what kwokctl saved; None if it is started without the flag."""
    parsed = [each.removeprefix("--").partition("=") for each in arguments(settings, component)]
    return next((value for key, _, value in parsed if key == name), None)


def arguments(settings: Mapping[str, Any], component: str) -> list[str]:
    """The arguments of a component, by what kwokctl saved."""
    listed = settings.get("components") or []
    return [str(argument) for each in listed if each.get("name") == component for argument in each.get("args") or []]
