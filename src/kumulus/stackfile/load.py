"""From a stack's configuration to its cluster and node pools; everything is checked before anything is created."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from kumulus.model.errors import Notice, Problem, SpecError, Where, path_text
from kumulus.model.names import default_cluster_name
from kumulus.model.pools import Pool
from kumulus.nodes.catalog.prices import Prices, catalog, with_own
from kumulus.runtimes import registry
from kumulus.runtimes.existing.section import content_problems
from kumulus.runtimes.kind.kind_config import node_ranges, real_nodes, with_room
from kumulus.stackfile import host_commands
from kumulus.stackfile.addons import chart_kind, missing_chart
from kumulus.stackfile.expand import kubelet_version, pools, system_pool
from kumulus.stackfile.fault_targets import ResolvedFault, resolve
from kumulus.stackfile.groups import Flavour
from kumulus.stackfile.location import read_text
from kumulus.stackfile.model import ClusterSpec
from kumulus.stackfile.nodes_file import with_nodes
from kumulus.stackfile.secrets import Secrets, hidden
from kumulus.stackfile.settings import StackSettings


@dataclass(frozen=True)
class LoadedCluster:
    """The wanted state of one cluster of a stack."""

    spec: ClusterSpec
    """The cluster as its file describes it."""
    cluster_name: str
    """The spec's name, or else one derived from the stack's."""
    flavour: Flavour
    """Whose labels the nodes have; `kemu` when the spec was read from a KEMU file."""
    pools: tuple[Pool, ...]
    """One per group and zone, in the order of the file."""
    faults: tuple[ResolvedFault, ...]
    """With the nodes they affect, in the order of the file."""
    notices: tuple[Notice, ...]
    """What was corrected or has no effect."""
    source: str
    """The file or URL the spec was read from."""
    secrets: Secrets = field(default_factory=Secrets)
    """The places in the spec that the stack's configuration keeps secret."""
    member: str = ""
    """Its name among several clusters in the file; empty if there is only one."""
    prices: Path | None = None
    """The user's own file of machine prices; None for the catalog alone."""
    section_options: Mapping[str, Any] = field(default_factory=dict)
    """The options that the runtime gets because of extras' sections, by the sections' names."""
    joined: tuple[str, ...] = ()
    """The keys about several clusters that it takes part in, such as `federation`."""

    def known_prices(self) -> Prices:
        """What machines cost; a file of prices may have been changed since it was checked."""
        return with_own(self.prices) if self.prices else catalog()

    @property
    def system_pool(self) -> Pool | None:
        """The pool for the emulated pods of add-ons; None without add-ons, or when real nodes run them."""
        emulated = self.spec.runtime_descriptor.local and bool(self.spec.clusterAddons)
        return system_pool(self.cluster_name, kubelet_version(self.spec)) if emulated else None


def load(
    config: Mapping[str, object],
    stack: str,
    base: Path,
    *,
    source: str = "",
    secrets: Secrets | None = None,
) -> LoadedCluster:
    """Read and check one cluster. Keys without a value count as absent.

    Args:
        config: the stack's plain configuration in the namespace kumulus, with or without that prefix: `cluster` (a
            mapping, or its JSON text) or `clusterConfig` (a KEMU file's path or URL), `runtime`, `skipAddons`, `prices`
            and :data:`kumulus.stackfile.settings.CONSENTS`.
        base: the project's directory; paths in the configuration start there.
        source: the name of the stack's file in messages; by default the stack's file in stacks/.
        secrets: the places in `cluster` that the configuration keeps secret.
    """
    source = source or f"stacks/Pulumi.{stack}.yaml"
    settings = StackSettings.read(config)
    secrets = secrets or Secrets()
    prices = settings.values.get("prices")
    if "clusterConfig" not in settings.values:
        spec, notices = _checked(settings, base, source, secrets)
        return replace(_loaded(spec, stack, base, "kumulus", notices, source, prices), secrets=secrets)
    if settings.problems:
        raise SpecError(settings.problems, source)
    # Imported here, because its models take 40 ms to build, which stacks in our own format do not need.
    from kumulus.stackfile.kemu import convert

    name, text = read_text(str(settings.values["clusterConfig"]), base, "clusterConfig", source)
    file = convert(text, name, settings.runtime or registry.DEFAULT, settings.skip_addons)
    return _loaded(file.spec, stack, base, "kemu", file.notices, name, prices)


def _checked(
    settings: StackSettings, base: Path, source: str, secrets: Secrets
) -> tuple[ClusterSpec, tuple[Notice, ...]]:
    """The cluster of a stack's own file, and what has no effect in it."""
    problems = list(settings.problems)
    spec = ClusterSpec()
    notices: tuple[Notice, ...] = ()
    if "cluster" in settings.values:
        cluster, notices = _overridden(settings)
        try:
            if "nodes" in settings.values and not settings.problems:
                cluster = with_nodes(cluster, str(settings.values["nodes"]), base, source)
            spec = ClusterSpec.checked(cluster)
        except SpecError as error:
            if error.source not in ("", source):
                # The mistakes are in the file of nodes.
                raise
            found = hidden(error.problems, secrets)
            problems += [replace(each, path=each.path or "cluster") for each in found]
    problems += content_problems(spec.existing, encrypted=bool(secrets.within("existing", "kubeconfig")))
    if problems:
        raise SpecError(problems, source)
    return spec, notices


def _overridden(settings: StackSettings) -> tuple[object, tuple[Notice, ...]]:
    """The cluster's mapping with the overriding settings, and a notice of each key that is dropped because of them."""
    written = settings.values["cluster"]
    if not isinstance(written, Mapping):
        return written, ()
    raw = dict(written)
    notices: list[Notice] = []
    if settings.skip_addons:
        raw.pop("clusterAddons", None)
    runtime = raw.get("runtime") or registry.DEFAULT
    if settings.runtime and settings.runtime != runtime:
        for key, owner in registry.sections().items():
            if runtime == owner and raw.pop(key, None) is not None:
                notices.append(Notice(key, f"is for the runtime {owner}, so it is not used with {settings.runtime}"))
        raw["runtime"] = settings.runtime
    return raw, tuple(notices)


def _loaded(
    spec: ClusterSpec,
    stack: str,
    base: Path,
    flavour: Flavour,
    notices: tuple[Notice, ...],
    source: str,
    prices: object,
) -> LoadedCluster:
    own_prices = None if prices is None else base / str(prices)
    if own_prices:
        # Read once to check it.
        with_own(own_prices)
    prefix: Where = ("spec",) if flavour == "kemu" else ()
    if problems := _missing_files(spec, base, prefix):
        raise SpecError(problems, source)
    name = spec.name or default_cluster_name(stack)
    # KEMU's nodes say that they are fake.
    expanded = tuple(pools(spec, name, flavour, "" if flavour == "kemu" else kubelet_version(spec)))
    faults, problems = resolve(spec.faults, expanded)
    if notice := _range_notice(spec, expanded, prefix):
        notices = (*notices, notice)
    loaded = LoadedCluster(spec, name, flavour, expanded, tuple(faults), notices, source, prices=own_prices)
    options: dict[str, Any] = {}
    for key, section in spec.sections_of_extras().items():
        option, wrong = section.runtime_option(loaded, base)
        problems += wrong
        if option is not None:
            options[key] = option
    if problems:
        raise SpecError(problems, source)
    return replace(loaded, section_options=options)


def _range_notice(spec: ClusterSpec, expanded: Sequence[Pool], prefix: Where) -> Notice | None:
    """A notice if a kind cluster has more nodes than its pod subnet has address ranges for; None otherwise."""
    if not spec.kindConfig:
        return None
    room = node_ranges(with_room(spec.kindConfig))
    nodes = sum(pool.replicas for pool in expanded) + real_nodes(spec.kindConfig)
    if room is None or nodes <= room:
        return None
    message = (
        f"has address ranges for {room:,} nodes, and the stack has {nodes:,}: the others stay without one, and "
        "kube-controller-manager keeps trying; leave podSubnet out, or write a larger one"
    )
    return Notice(path_text((*prefix, "kindConfig", "networking", "podSubnet")), message)


def _missing_files(spec: ClusterSpec, base: Path, prefix: Where) -> list[Problem]:
    """Files and directories that the spec names and that do not exist on this machine."""
    named: list[tuple[Where, str]] = [
        ((*prefix, "clusterAddons", index, "chart"), addon.chart) for index, addon in enumerate(spec.clusterAddons)
    ]
    if spec.kwokCharts.install is not False:
        named += [(("kwokCharts", key), getattr(spec.kwokCharts, key)) for key in ("chart", "stageFastChart")]
    charts = [(where, missing_chart(base / chart)) for where, chart in named if chart_kind(chart) == "path"]
    directories = [
        (("hostCommands", index, "dir"), host_commands.missing_directory(command, base))
        for index, command in enumerate(spec.hostCommands)
    ]
    # A command that runs before the images are loaded may write their archives.
    images = [] if any(command.when == "beforeAddons" for command in spec.hostCommands) else spec.loadImages
    archives = [
        (("loadImages", index), host_commands.missing_archive(image, base)) for index, image in enumerate(images)
    ]
    return [Problem(path_text(where), *wrong) for where, wrong in (*charts, *directories, *archives) if wrong]
