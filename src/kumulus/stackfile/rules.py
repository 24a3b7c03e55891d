"""Rules between the parts of a stack file, which no single field can check: duplicates, collisions, dependencies.

They check the plain file rather than the models, because a model exists only if every field is valid, and the user
should see all problems at once. Values of the wrong type are skipped here: the models report them.
"""

from collections.abc import Iterable, Mapping
from graphlib import CycleError, TopologicalSorter
from urllib.parse import urlsplit

from kumulus.model.checks import problem
from kumulus.model.errors import Problem, Where, shown
from kumulus.runtimes import registry
from kumulus.stackfile.addons import chart_kind, chart_name
from kumulus.stackfile.group_rules import device_problems, group_pool_problems, group_problems, node_name_problems
from kumulus.stackfile.host_commands import load_name_problems
from kumulus.stackfile.plain import Item, Problems, duplicates, items, runtime_of, text
from kumulus.stackfile.section import ClusterSection
from kumulus.stackfile.tenants import tenant_problems


def rule_problems(raw: object, sections: Iterable[type[ClusterSection]]) -> list[Problem]:
    """Every problem between the parts of a cluster's mapping, by the core's rules and those of extras' sections."""
    if not isinstance(raw, Mapping):
        return []
    return [
        *_runtime(raw),
        *addon_problems(raw),
        *_commands(raw),
        *group_problems(raw),
        *group_pool_problems(raw),
        *node_name_problems(raw),
        *duplicates(items(raw, "tenants"), ("tenants",), "name", "name"),
        *tenant_problems(items(raw, "tenants")),
        *_loads(raw),
        *device_problems(raw),
        *(found for each in sections for found in each.rules(raw)),
    ]


def _runtime(raw: Mapping[str, object]) -> Problems:
    if (known := runtime_of(raw)) is None:
        return
    runtime = known.name
    for key, owner in registry.sections().items():
        if raw.get(key) is not None and runtime != owner:
            message = f"has no effect with the runtime {shown(runtime)}"
            yield problem((key,), message, f"leave it out or write runtime: {owner}")
    if known.local and raw.get("kwokCharts") is not None:
        message = f"has no effect with the runtime {runtime}, where KWOK runs alongside the cluster"
        yield problem(("kwokCharts",), message, f"leave it out, or write runtime: {container_runtimes()}")
    if not known.chooses_version and raw.get("kubernetesVersion") is not None:
        yield problem(("kubernetesVersion",), "has no effect: an existing cluster has its own", "leave it out")
    yield from known.rules(raw)


def _loads(raw: Mapping[str, object]) -> Problems:
    """Loads that pods share, where nothing counts these pods."""
    if (known := runtime_of(raw)) is None or known.local:
        return
    for index, usage in items(raw, "podUsage"):
        for key in ("cpu", "memory"):
            if isinstance(asked := usage.get(key), Mapping) and "load" in asked:
                message = f"is not for the runtime {known.name}, in which nothing counts the pods that share it"
                remedy = f"write runtime: {registry.DEFAULT}, or {key}: 80%"
                yield problem(("podUsage", index, key, "load"), message, remedy)


def container_runtimes() -> str:
    """The runtimes whose nodes run containers, for people."""
    return registry.listed(tuple(each for each in registry.every() if not each.local))


def _commands(raw: Mapping[str, object]) -> Problems:
    commands = items(raw, "hostCommands")
    yield from duplicates(commands, ("hostCommands",), "name", "name")
    places: dict[str, Where] = {text(each, "name"): ("hostCommands", index, "name") for index, each in commands}
    yield from load_name_problems(raw.get("loadImages"), places)


def addon_problems(raw: Mapping[str, object]) -> Problems:
    """Add-ons of the same name, charts that cannot be found, and dependencies that are unknown or circular."""
    where: Where = ("clusterAddons",)
    addons = items(raw, "clusterAddons")
    yield from duplicates(addons, where, "name", "name")
    for index, addon in addons:
        yield from _chart((*where, index), addon)
    yield from _dependencies(where, addons)


def _chart(where: Where, addon: Mapping[str, object]) -> Problems:
    chart, url, repository = text(addon, "chart"), text(addon, "repoURL"), text(addon, "repoName")
    if not chart or not chart.isprintable():
        # The model reports what is wrong with it, and it cannot be quoted in a remedy.
        return
    kind = chart_kind(chart)
    if addon.get("repositoryOpts") is not None and (kind != "repository" or url.startswith("oci://")):
        # For a registry, helm.v3.Release accepts neither a password nor a certificate authority.
        host = "" if kind == "path" else urlsplit(chart if kind == "oci" else url).netloc
        remedy = f"leave it out, and run: helm registry login {host}" if host else "leave it out"
        yield problem((*where, "repositoryOpts"), "is for chart repositories only", remedy)
    if kind != "repository":
        if url:
            name = "an OCI reference" if kind == "oci" else "a path"
            yield problem((*where, "repoURL"), f"is not used, as the chart is {name}", "leave it out")
        return
    prefix, slash, _ = chart.rpartition("/")
    if "/" in prefix:
        remedy = f"write repoName/chart, ./{chart} for a path, or oci://{chart}"
        yield problem((*where, "chart"), f"{shown(chart)} names no repository", remedy)
    elif slash and repository and prefix != repository:
        message = f"{shown(chart)} is of another repository than repoName, {shown(repository)}"
        yield problem((*where, "chart"), message, f"write {shown(f'{repository}/{chart_name(chart)}')}")
    elif not url:
        remedy = f"write repoURL: https://…, or chart: ./{chart} for a path"
        yield problem((*where, "repoURL"), "is missing, so the chart cannot be found", remedy)


def _dependencies(where: Where, addons: list[Item]) -> Problems:
    names = {text(addon, "name") for _, addon in addons}
    graph: dict[str, list[str]] = {}
    for index, addon in addons:
        wanted = addon.get("dependsOn")
        for place, name in enumerate(wanted if isinstance(wanted, list | tuple) else ()):
            if not isinstance(name, str):
                continue
            if name in names:
                graph.setdefault(text(addon, "name"), []).append(name)
                continue
            others = ", ".join(sorted(names - {text(addon, "name"), ""}))
            remedy = f"write one of {others}" if others else "leave it out"
            yield problem((*where, index, "dependsOn", place), f"{shown(name)} is not an add-on", remedy)
    try:
        TopologicalSorter(graph).prepare()
    except CycleError as error:
        circle: list[str] = error.args[1]
        index = next(index for index, addon in addons if text(addon, "name") == circle[0])
        message = f"goes round in a circle: {' → '.join(reversed(circle))}"
        yield problem((*where, index, "dependsOn"), message, "leave one of them out")
