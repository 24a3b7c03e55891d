"""The whole of a Pulumi program: declare the cluster that the stack's file describes, and export what it is.

from kumulus import program

emulated = program.run()
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import pulumi
from pulumi.runtime.config import get_config_env, get_config_secret_keys_env

from kumulus.components import plugin
from kumulus.components.engine import end_with_engine, start_plugin, user_error
from kumulus.surroundings import pulumi_project

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
        pulumi.RunError: the stack's file has mistakes; with all of them.
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
