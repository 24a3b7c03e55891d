"""The whole of a Pulumi program: declare the clusters that the stack's file describes, and export what they are.

from kumulus import program

emulated = program.run()
"""

from __future__ import annotations

import gc
import os
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, nullcontext
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pulumi
from pulumi.runtime.config import get_config_env, get_config_secret_keys_env

from kumulus.components.engine import (
    end_with_engine_if_hosted,
    is_hosted,
    start_plugin,
    under_engine,
    user_error,
)
from kumulus.host import protection, pulumi_project
from kumulus.host.extras import BrokenExtra
from kumulus.host.installation import pulumi_home

if TYPE_CHECKING:
    from kumulus.components.emulated_cluster import EmulatedCluster
    from kumulus.stackfile.clusters import Stack

_NAMESPACE = "kumulus:"
# The keys that describe clusters, in which Pulumi may keep secrets.
_DESCRIPTIONS = ("cluster", "clusters", "defaults")


def run() -> EmulatedCluster:
    """Declare what the stack's file says, and export its outputs, for a program that declares more in its cluster.

    Returns:
        the cluster; of several the hub, or the first where the file names none.

    Raises:
        pulumi.RunError: as :func:`run_all`.
    """
    made, hub = _run()
    return made[hub] if hub in made else next(iter(made.values()))


def run_all() -> dict[str, EmulatedCluster]:
    """Declare what the stack's file says under `kumulus:cluster`, `kumulus:clusters` or `kumulus:clusterConfig`.

    Its outputs are exported. To be called once, or :func:`run`, at the start of the program, in its main thread: while
    modules are imported, the plugin starts. Relative paths in the stack's file start at the project's directory.

    Returns:
        the clusters, by their names in the file; the only one of `kumulus:cluster` has the name "".

    Raises:
        pulumi.RunError: the stack's file has mistakes; with all of them. Or it has secrets that a shared backend would
            show to everybody who reads it.
    """
    return _run()[0]


def _run() -> tuple[dict[str, EmulatedCluster], str]:
    if under_engine():
        end_with_engine_if_hosted()
        start_plugin()
    try:
        return _declared()
    except BrokenExtra as error:
        raise user_error(str(error)) from None


def _declared() -> tuple[dict[str, EmulatedCluster], str]:
    # Importing takes a while, during which the engine starts the plugin.
    with _without_garbage_collection() if is_hosted() else nullcontext():
        from kumulus.components.emulated_cluster import EmulatedCluster
        from kumulus.model.errors import SpecError

    base = Path.cwd()
    try:
        stack = _load(base)
    except SpecError as error:
        raise user_error(str(error)) from None
    for notice in stack.notices:
        pulumi.log.warn(str(notice))
    _require_protection(stack, base)
    made = {
        name: EmulatedCluster(loaded.cluster_name, loaded=loaded, base=base) for name, loaded in stack.clusters.items()
    }
    for key, joined in stack.joined.items():
        pulumi.export(key, joined.declare(key, made, stack.clusters))
    costs = _costs(stack)
    if stack.only:
        _export(made[""], costs[""])
    else:
        _export_all(made, stack.hub, costs)
    return made, stack.hub


def _costs(stack: Stack) -> dict[str, dict[str, Any]]:
    from kumulus.nodes.catalog.prices import fleet_cost

    return {name: fleet_cost(each.pools, each.known_prices()).outputs() for name, each in stack.clusters.items()}


@contextmanager
def _without_garbage_collection() -> Iterator[None]:
    """Import modules without a search for garbage among them, now or when the program ends: there is none."""
    gc.disable()
    try:
        yield
    finally:
        gc.freeze()
        gc.enable()


def _load(base: Path) -> Stack:
    from kumulus.stackfile.clusters import load_stack
    from kumulus.stackfile.secrets import read_secrets

    stack = pulumi.get_stack()
    project = pulumi_project.find(base)
    file = project.stack_file(stack) if project else base / f"Pulumi.{stack}.yaml"
    # Every key of the namespace, so that a misspelt one is reported instead of ignored.
    config = {key: value for key, value in get_config_env().items() if key.startswith(_NAMESPACE)}
    with_secrets = get_config_secret_keys_env()
    named = {key: f"{_NAMESPACE}{key}" for key in _DESCRIPTIONS}
    secrets = {key: read_secrets(file, name) for key, name in named.items() if name in with_secrets}
    return load_stack(config, stack, base, source=project.shown(file) if project else file.name, secrets=secrets)


def _require_protection(stack: Stack, base: Path) -> None:
    """Refuse unprotected secrets in a shared state, and warn about them once in a local one."""
    secrets = ["secrets"] if get_config_secret_keys_env() else []
    if any(each.spec.tenants for each in stack.clusters.values()):
        secrets.append("tenants, whose tokens are secrets")
    project = pulumi_project.find(base)
    if not secrets or project is None:
        return
    from kumulus.stackfile.secrets import parsed

    name = pulumi.get_stack()
    document = parsed(project.stack_file(name))
    found = protection.unprotected(project, name, document, os.environ, pulumi_home())
    if found is None:
        return
    message = found.message(name, " and ".join(secrets))
    if found.backend == "shared":
        raise user_error(message)
    if not found.known and not pulumi.runtime.is_dry_run():
        pulumi.log.warn(message)


def _export(emulated: EmulatedCluster, cost: Mapping[str, Any]) -> None:
    for name, value in {**_outputs(emulated), **cost}.items():
        pulumi.export(name, value)
    if emulated.tenants:
        pulumi.export("tenants", _tenants(emulated))


def _export_all(made: Mapping[str, EmulatedCluster], hub: str, costs: Mapping[str, Mapping[str, Any]]) -> None:
    """Export the outputs of several clusters: each one's under its name, and the hub's kubeconfig."""
    if hub:
        pulumi.export("hub", hub)
        pulumi.export("kubeconfig", made[hub].kubeconfig)
    pulumi.export("nodeCount", sum(each.node_count for each in made.values()))
    pulumi.export("clusters", {name: {**_outputs(each), **costs[name]} for name, each in made.items()})
    # Apart: an output with a secret in it is secret as a whole.
    if tenants := {name: _tenants(each) for name, each in made.items() if each.tenants}:
        pulumi.export("tenants", tenants)


def _outputs(emulated: EmulatedCluster) -> dict[str, Any]:
    return {
        "kubeconfig": emulated.kubeconfig,
        **({"prometheus": emulated.prometheus} if emulated.prometheus else {}),
        "clusterName": emulated.cluster_name,
        "nodeCount": emulated.node_count,
        "capacity": emulated.capacity,
        **({"gpuProducts": emulated.gpu_products} if emulated.gpu_products else {}),
        "nodeGroups": emulated.node_groups,
    }


def _tenants(emulated: EmulatedCluster) -> dict[str, Any]:
    tenants = emulated.tenants.items()
    return {name: {"namespace": tenant.namespace, "kubeconfig": tenant.kubeconfig} for name, tenant in tenants}
