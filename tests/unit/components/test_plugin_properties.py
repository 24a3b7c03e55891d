"""The plugin's resources as components declare them: every property that the plugin declares has its place there."""

import ast
from functools import cache
from pathlib import Path
from typing import Any

import pytest

from kumulus.model import pool_form, pools
from kumulus.provider.resources.base import Resource
from kumulus.provider.resources.in_cluster import InClusterResource
from kumulus.provider.resources.registry import CLASSES
from tests.support.project import ROOT

COMPONENTS = sorted((ROOT / "src" / "kumulus" / "components").glob("*.py"))
EXTRAS = ROOT / "src" / "kumulus" / "extras"
# What no component says, with the reason.
NOT_THERE = {
    # The plugin's own default; a state remembers it.
    "Cluster": {"home"},
}
# What is written as properties outside the components: a plain object, and what an extra declares.
ELSEWHERE = {
    "NodePool": [Path(pools.__file__), Path(pool_form.__file__)],
    "Autoscaler": [EXTRAS / "scaling" / "section.py"],
    "FederationHub": [EXTRAS / "federation" / "joined.py"],
    "FederationWorker": [EXTRAS / "federation" / "joined.py"],
    "ReleaseReady": [EXTRAS / "watch" / "prometheus_stack.py"],
}


@cache
def parsed(file: Path) -> ast.Module:
    """The code of a file; each is parsed once, as all kinds are looked for in all of them."""
    return ast.parse(file.read_text())


def texts(tree: ast.AST) -> set[str]:
    """The texts in code, among them the names of properties."""
    return {each.value for each in ast.walk(tree) if isinstance(each, ast.Constant) and isinstance(each.value, str)}


def declaring(name: str) -> list[ast.AST]:
    """The classes of components in whose code a resource's token stands, or its last part."""
    found: list[ast.AST] = [
        each
        for file in COMPONENTS
        for each in parsed(file).body
        if isinstance(each, ast.ClassDef) and texts(each) & {f"kumulus:index:{name}", name}
    ]
    return [*found, *(parsed(file) for file in ELSEWHERE.get(name, []))]


@pytest.mark.parametrize("kind", CLASSES, ids=lambda kind: kind.token.rpartition(":")[2])
def test_every_property_of_a_resource_of_the_plugin_has_its_place_in_the_components(kind: type[Resource]) -> None:
    name = kind.token.rpartition(":")[2]
    places = declaring(name)
    assert places, f"no class in components/ declares {kind.token}"
    said = set[str]().union(*map(texts, places))
    if issubclass(kind, InClusterResource):
        said |= _of_all_in_clusters()
    missing = {each.name for each in kind.inputs} - said - NOT_THERE.get(name, set())
    assert not missing, f"{kind.token} takes what components/ does not say: {', '.join(sorted(missing))}"


def _of_all_in_clusters() -> set[str]:
    [base] = (
        each
        for each in parsed(ROOT / "src" / "kumulus" / "components" / "resources.py").body
        if isinstance(each, ast.ClassDef) and each.name == InClusterResource.__name__
    )
    found: Any = texts(base)
    return set(found)
