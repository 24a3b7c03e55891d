"""Rules of the stack file's `clusterAddons`: where each chart is, and what depends on what.

As in `rules`, they check the plain file, so that all problems are reported at once.
"""

from __future__ import annotations

from collections.abc import Mapping
from graphlib import CycleError, TopologicalSorter
from urllib.parse import urlsplit

from kumulus.model.checks import problem
from kumulus.model.errors import Where, shown
from kumulus.stackfile.addons import chart_kind, chart_name
from kumulus.stackfile.plain import Found, Item, duplicates, items, text


def addon_problems(raw: Mapping[str, object]) -> Found:
    """Add-ons of the same name, charts that cannot be found, and dependencies that are unknown or circular."""
    where: Where = ("clusterAddons",)
    addons = items(raw, "clusterAddons")
    yield from duplicates(addons, where, "name", "name")
    for index, addon in addons:
        yield from _chart((*where, index), addon)
    yield from _dependencies(where, addons)


def _chart(where: Where, addon: Mapping[str, object]) -> Found:
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


def _dependencies(where: Where, addons: list[Item]) -> Found:
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
