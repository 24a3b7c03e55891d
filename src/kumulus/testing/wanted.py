"""What cluster a test asks for: keywords, a mapping or a stack file, read and checked as a stack file is."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from kumulus.cli import needs
from kumulus.host import pulumi_project
from kumulus.model.errors import SpecError
from kumulus.model.names import suggest
from kumulus.model.pools import Pool
from kumulus.model.words import listed
from kumulus.nodes.catalog.instances import InstanceType, instance_types, types_with_gpu
from kumulus.stackfile.clusters import load_stack
from kumulus.stackfile.load import LoadedCluster
from kumulus.stackfile.secrets import with_placeholders
from kumulus.stackfile.yamltext import read_stack_file
from kumulus.testing.errors import ClusterError
from kumulus.toolchain.plugins import COMMAND, PROVIDER

Spec = Mapping[str, Any] | str | Path
"""A cluster as a stack file's `kumulus:cluster` has it, or the path of a stack file."""
Nodes = int | Mapping[str, int]
"""How many plain nodes, or how many of each kind of machine: an instance type, or a GPU such as `h100`."""

NAME = "test"
_ZONE = "zone-1"
_PLAIN = {"cpu": "32", "memory": "256Gi", "pods": "110"}
_SOURCE = "the cluster"
# Sections that only Pulumi's resources, or nodes that run containers, can bring about.
_NEED_A_STACK = ("clusterAddons", "hostCommands", "loadImages", "tenants")


def loaded(spec: Spec | None, nodes: Nodes | None, cluster: str, sections: Mapping[str, Any]) -> LoadedCluster:
    """The cluster that is asked for.

    Args:
        spec: the cluster; None if keywords say all.
        nodes: nodes in addition to those of the spec.
    """
    added = {**sections, **({"nodeGroups": list(_groups(nodes))} if nodes is not None else {})}
    try:
        if isinstance(spec, str | Path):
            found = _of_file(Path(spec), cluster, added)
        else:
            if spec and (both := spec.keys() & added.keys()):
                raise ClusterError(f"{listed(sorted(both), 3)}: in the mapping and an argument; write it in one place")
            section = {"name": NAME, **(spec or {}), **added}
            found = load_stack({"cluster": section}, NAME, Path.cwd(), source=_SOURCE).clusters[""]
    except SpecError as error:
        raise ClusterError(str(error)) from None
    _require(found)
    return found


def nodes_of(words: Sequence[str]) -> Nodes:
    """The nodes that words ask for, such as `30`, or `h100=100` and `l4=20`; three nodes without any.

    Raises:
        ValueError: they are neither a number nor numbers by machine.
    """
    if not words:
        return 3
    if len(words) == 1 and "=" not in words[0]:
        return int(words[0])
    pairs = (word.rstrip(",").partition("=") for word in words)
    return {machine: int(number) for machine, _, number in pairs}


def tools(wanted: LoadedCluster) -> list[str]:
    """The programs that a cluster needs, but for kubectl, which only the first of its kind does."""
    # kubectl is got when a cluster has to be made by kwokctl, because there is no template of its kind yet.
    others = {*needs.ENGINE, PROVIDER, COMMAND, "kubectl"}
    return [tool for need in needs.NEEDS if need.asked(wanted) for tool in need.tools if tool not in others]


def resized(pools: Mapping[str, Pool], nodes: int | Mapping[str, int]) -> list[Pool]:
    """Pools with other numbers of nodes."""
    known = listed(sorted(pools), 10)
    if isinstance(nodes, int):
        if len(pools) != 1:
            raise ClusterError(f"the cluster has several pools; write numbers by pool: {known}")
        nodes = dict.fromkeys(pools, nodes)
    found = []
    for name, number in nodes.items():
        named = [each for each in pools.values() if name in (each.name, each.group)]
        if len(named) != 1:
            why = "has several pools" if named else "is no pool"
            raise ClusterError(f"{name} {why}; write one of {known}")
        if number < 0:
            raise ClusterError(f"{name}: {number} is less than no nodes; write a number from 0")
        found.append(replace(named[0], replicas=number))
    return found


def _of_file(file: Path, cluster: str, added: Mapping[str, Any]) -> LoadedCluster:
    if added:
        raise ClusterError(f"{', '.join(sorted(added))}: {file} says what the cluster is like; write it there")
    try:
        document = read_stack_file(file, str(file))
    except (OSError, UnicodeDecodeError) as error:
        raise ClusterError(f"{file} cannot be read: {error}; name a stack file, or write nodes=30") from None
    config = document.get("config") if isinstance(document, dict) else None
    ours = {
        str(key): with_placeholders(value)
        for key, value in (config if isinstance(config, dict) else {}).items()
        if str(key).startswith("kumulus:")
    }
    if not ours:
        raise ClusterError(f"{file} is no stack file of Kumulus: it has no kumulus:cluster below config")
    project = pulumi_project.find(file.absolute().parent)
    base = project.root if project else file.absolute().parent
    # Not called after its stack: then it is made of the same template as all others.
    found = load_stack(ours, NAME, base, source=str(file))
    if (cluster or found.hub) in found.clusters:
        return found.clusters[cluster or found.hub]
    names = listed([each for each in found.clusters if each], 10)
    if names:
        raise ClusterError(f"{file} has the clusters {names}; write cluster= with one of them")
    raise ClusterError(f"{file} has one cluster, without a name; leave cluster= out")


def _require(found: LoadedCluster) -> None:
    """Refuse what cannot be done without a stack."""
    if not found.spec.runtime_descriptor.local:
        raise ClusterError(f"runtime: {found.spec.runtime} needs a stack; clusters for tests have the runtime kwok")
    sections = [each for each in _NEED_A_STACK if getattr(found.spec, each)]
    sections += found.joined
    if sections:
        raise ClusterError(f"{', '.join(sections)}: needs a stack (pulumi up); leave it out for a test")


def _groups(nodes: Nodes) -> Iterator[dict[str, Any]]:
    if isinstance(nodes, bool) or not isinstance(nodes, int | Mapping):
        raise ClusterError(f"nodes is {nodes!r}; write a number, or numbers by machine such as {{'h100': 100}}")
    if isinstance(nodes, int):
        placement = [{"availabilityZone": _ZONE, "replicas": nodes}]
        yield {"name": "node", "placement": placement, "nodeTemplate": {"capacity": _PLAIN, "taints": []}}
        return
    for name, number in nodes.items():
        placement = [{"availabilityZone": _ZONE, "replicas": number}]
        group = {"name": name, "instanceType": _machine(name).name, "placement": placement}
        # Taints keep others' pods away from a pool; this cluster is all the test's own.
        yield {**group, "nodeTemplate": {"taints": []}}


def _machine(name: str) -> InstanceType:
    """A machine by its own name, or by its GPU's: the first one of the catalog with the most of these."""
    known = instance_types()
    if name in known:
        return known[name]
    fitting = types_with_gpu(name)
    if not fitting:
        gpus = sorted({each.product for each in known.values() if each.product})
        words = {word.lower() for gpu in gpus for word in gpu.replace("_", "-").split("-")}
        near = suggest(name, {*known, *(word for word in words if types_with_gpu(word))}, likeness=0.8)
        other = f"an instance type such as a3-highgpu-8g, or a part of one of {', '.join(gpus)}"
        raise ClusterError(f"nodes: {name} is no instance type, and no GPU of the catalog; write {near or other}")
    return fitting[0]
