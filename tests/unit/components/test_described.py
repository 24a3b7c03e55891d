"""The components' own descriptions: whole, and nothing left out that a stack file can say."""

import re
from collections.abc import Mapping, Sequence
from importlib import import_module
from typing import Any, Literal, get_args, get_origin

import pytest

import kumulus
from kumulus.components.arguments import Argument, described_arguments, outputs
from kumulus.components.resources import ClusterLike
from kumulus.extras.watch.section import PrometheusStackSpec
from kumulus.runtimes.existing.section import Existing
from kumulus.runtimes.kind.section import KindSpec
from kumulus.runtimes.kwok.section import Kwok
from kumulus.stackfile.addons import Addon
from kumulus.stackfile.cluster_charts import KwokChartsSpec
from kumulus.stackfile.faults import FaultSpec
from kumulus.stackfile.groups import MetadataSpec, NodeGroup, NodeTemplate, PlacementSpec
from kumulus.stackfile.tenants import TenantSpec

COMPONENTS = [name for name in kumulus.__all__ if name != "Experiment"]


def args_of(name: str) -> dict[str, Argument]:
    module = import_module(getattr(kumulus, name).__module__)
    return {each.name: each for each in described_arguments(getattr(module, f"{name}Args"))}


def snake(field: str) -> str:
    return re.sub(r"(?<=[a-z])([A-Z]+)", lambda found: f"_{found[0].lower()}", field)


# What a component calls otherwise than the stack file, and what it has no argument for, with the reason.
OTHERWISE: dict[str, dict[str, str]] = {
    "KwokNodeGroup": {
        "availability_zone": "zones",
        "replicas": "zones",
        "region": "regions",
        "nodes": "named_nodes",
        "defaults": "default_labels",
    },
    "HelmAddon": {"name": "release_name", "values_object": "values"},
    "PrometheusStack": {"values_object": "values"},
}
NOT_THERE = {
    # The resource's name is the group's, the tenant's and the fault's; the rest are mappings around other fields.
    # An autoscaler is a stack file's, and so are the bounds within which it resizes.
    "KwokNodeGroup": {"name", "placement", "nodeTemplate", "metadata", "minReplicas", "maxReplicas"},
    # A name that has no meaning; and what other add-ons a program names in opts.
    "HelmAddon": {"repoName", "dependsOn"},
    "Tenant": {"name"},
    "Fault": {"name"},
}


@pytest.mark.parametrize(
    ("name", "sections"),
    [
        ("KwokNodeGroup", [NodeGroup, PlacementSpec, NodeTemplate, MetadataSpec]),
        ("HelmAddon", [Addon]),
        ("Tenant", [TenantSpec]),
        ("Fault", [FaultSpec]),
        ("PrometheusStack", [PrometheusStackSpec]),
        ("KwokCharts", [KwokChartsSpec]),
        ("KwokCluster", [Kwok]),
        ("KindCluster", [KindSpec]),
        ("ExistingCluster", [Existing]),
    ],
)
def test_whatever_a_stack_file_says_a_component_can_be_told(name: str, sections: list[Any]) -> None:
    arguments, otherwise = args_of(name), OTHERWISE.get(name, {})
    fields = {field for section in sections for field in section.model_fields} - NOT_THERE.get(name, set())
    missing = {field for field in fields if otherwise.get(snake(field), snake(field)) not in arguments}
    assert not missing, f"{name} has no argument for {', '.join(sorted(missing))}"


@pytest.mark.parametrize("name", COMPONENTS)
def test_every_argument_and_output_is_described(name: str) -> None:
    found = [*args_of(name).values(), *outputs(getattr(kumulus, name))]
    assert [each.name for each in found if not each.doc] == []
    # Of what another language can say.
    for each in found:
        plain = get_origin(each.type) or each.type
        assert plain in (str, int, float, bool, Any, Literal, Mapping, Sequence, ClusterLike), each


def test_a_description_says_what_is_required_and_what_may_be_an_output() -> None:
    addon = args_of("HelmAddon")
    assert {name for name, each in addon.items() if each.required} == {"cluster", "chart"}
    assert {name for name, each in addon.items() if each.plain} >= {"cluster", "chart", "crds", "base"}
    assert not any(addon[name].plain for name in ("version", "values", "namespace", "repo_url", "timeout"))
    assert (addon["repo_url"].key, addon["repo_url"].type) == ("repoUrl", str)
    assert addon["repository_opts"].section == "kumulus.stackfile.addons:RepositoryOpts"
    assert get_args(addon["crds"].type) == ("CreateReplace", "Create", "Skip")
    # Of the one it extends, too.
    assert list(args_of("KwokCluster"))[:2] == ["cluster_name", "kubernetes_version"]
    assert args_of("KwokNodeGroup")["zones"].type == Mapping[str, int]


def test_every_section_is_there() -> None:
    for name in COMPONENTS:
        for each in args_of(name).values():
            if each.section:
                module, _, model = each.section.partition(":")
                assert isinstance(getattr(import_module(module), model), type), each


def test_outputs_are_those_of_the_class_and_of_what_it_is_made_from() -> None:
    assert [each.key for each in outputs(kumulus.KwokCluster)] == ["kubeconfig", "identity", "server", "stackId"]
    assert [each.key for each in outputs(kumulus.Tenant)] == ["namespace", "kubeconfig"]
    assert {each.type for each in outputs(kumulus.KwokNodeGroup)} == {int}
