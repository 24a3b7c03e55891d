"""The whole of a Pulumi program: declare the cluster that the stack's file describes, and export what it is.

from kumulus import program

emulated = program.run()
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING

import pulumi
from pulumi.runtime.config import get_config_env, get_config_secret_keys_env

from kumulus.components import plugin
from kumulus.components.engine import end_with_engine, start_plugin, user_error
from kumulus.surroundings import protection, pulumi_project
from kumulus.surroundings.launcher import pulumi_home

if TYPE_CHECKING:
    from kumulus.components.emulated_cluster import EmulatedCluster
    from kumulus.stackfile.load import Loaded

_NAMESPACE = "kumulus:"
_CLUSTER = f"{_NAMESPACE}cluster"


def run() -> EmulatedCluster:
    """Declare what the stack's file says under `kumulus:cluster` or `kumulus:clusterConfig`, and export its outputs.

    To be called once, at the start of the program, in its main thread: while modules are imported, the plugin starts.
    Relative paths in the stack's file start at the project's directory.

    Returns:
        the cluster, for a program that declares more.

    Raises:
        pulumi.RunError: the stack's file has mistakes; with all of them. Or it has secrets that a shared backend would
            show to everybody who reads it.
    """
    if plugin.under_engine():
        end_with_engine()
        start_plugin()
    # Meanwhile the plugin starts.
    from kumulus.components.emulated_cluster import EmulatedCluster
    from kumulus.model.errors import SpecError

    base = Path.cwd()
    try:
        loaded = _load(base)
    except SpecError as error:
        raise user_error(str(error)) from None
    for notice in loaded.notices:
        pulumi.log.warn(str(notice))
    _require_protection(loaded, base)
    emulated = EmulatedCluster(loaded.cluster_name, loaded=loaded, base=base)
    _export(emulated)
    return emulated


def _load(base: Path) -> Loaded:
    from kumulus.stackfile.load import load
    from kumulus.stackfile.secrets import read_secrets

    stack = pulumi.get_stack()
    project = pulumi_project.find(base)
    file = project.stack_file(stack) if project else base / f"Pulumi.{stack}.yaml"
    # Every key of the namespace, so that a misspelt one is told instead of ignored.
    config = {key: value for key, value in get_config_env().items() if key.startswith(_NAMESPACE)}
    secrets = read_secrets(file, _CLUSTER) if _CLUSTER in get_config_secret_keys_env() else None
    return load(config, stack, base, source=project.shown(file) if project else file.name, secrets=secrets)


def _require_protection(loaded: Loaded, base: Path) -> None:
    """Refuse secrets that nothing protects where others have the state, and say so once where nobody else has.

    Raises:
        pulumi.RunError: the backend is shared.
    """
    has = [
        *(["secrets"] if get_config_secret_keys_env() else []),
        *(["tenants, whose tokens are secrets"] if loaded.spec.tenants else []),
    ]
    project = pulumi_project.find(base)
    if not has or project is None:
        return
    from kumulus.stackfile.secrets import parsed

    stack = pulumi.get_stack()
    document = parsed(project.stack_file(stack))
    found = protection.unprotected(project, stack, document, os.environ, pulumi_home())
    if found is None:
        return
    message = found.message(stack, " and ".join(has))
    if found.backend == "shared":
        raise user_error(message)
    if not found.known and not pulumi.runtime.is_dry_run():
        pulumi.log.warn(message)


def _export(emulated: EmulatedCluster) -> None:
    pulumi.export("kubeconfig", emulated.kubeconfig)
    if emulated.prometheus:
        pulumi.export("prometheus", emulated.prometheus)
    pulumi.export("clusterName", emulated.cluster_name)
    pulumi.export("nodeCount", emulated.node_count)
    pulumi.export("capacity", emulated.capacity)
    if emulated.gpu_products:
        pulumi.export("gpuProducts", emulated.gpu_products)
    pulumi.export("nodeGroups", emulated.node_groups)
    if emulated.tenants:
        pulumi.export(
            "tenants",
            {name: {"namespace": it.namespace, "kubeconfig": it.kubeconfig} for name, it in emulated.tenants.items()},
        )
