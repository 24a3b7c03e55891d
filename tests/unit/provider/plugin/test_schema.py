"""The package's schema: made from what the resources declare, typed, described, and as the resources behave."""

import json
import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import pytest

import kumulus
from kumulus.host.version import VERSION
from kumulus.model.devices import SLICES_KEYS
from kumulus.model.fault_effects import Condition, NodeEffects, PodEffects
from kumulus.model.pool_form import POOL_KEYS
from kumulus.model.pools import Taint
from kumulus.model.topology import LEVELS
from kumulus.provider.plugin.component_schema import _section
from kumulus.provider.plugin.components import component_kinds
from kumulus.provider.plugin.package import package, schema_json
from kumulus.provider.resources.base import Resource
from kumulus.provider.resources.in_cluster import PLACE_KEYS
from kumulus.provider.resources.registry import CLASSES, resources

SCHEMA = package()
COMPONENTS = {token for token, each in SCHEMA["resources"].items() if each.get("isComponent")}
# What is anybody's: a runtime's options, what is by driver, a chart's values, quantities as texts or numbers, what a
# refresh may find.
OPEN = {
    "Autoscaler.autoscaler",
    "Cluster.options",
    "ChartCrds.values",
    "KubernetesObject.manifest",
    "NodePool.drift",
    "KwokCluster.deviceBindings",
    "KwokCluster.runtimeConfig",
    "KindCluster.kindConfig",
    "KwokNodeGroup.capacity",
    "KwokNodeGroup.allocatable",
    "KwokNodeGroup.namedNodes",
    "HelmAddon.status",
    "HelmAddon.values",
    "Tenant.quota",
    "FleetFault.capacity",
    "FleetFault.limits",
}


def described() -> Iterator[tuple[str, dict[str, Any]]]:
    for token, found in {**SCHEMA["resources"], **SCHEMA["types"]}.items():
        for name, each in {**found.get("inputProperties", {}), **found["properties"]}.items():
            yield f"{token.rsplit(':', 1)[-1]}.{name}", each


def test_every_property_is_typed_and_described() -> None:
    for where, each in described():
        assert each.get("type") or each.get("$ref") or each.get("oneOf"), where
        assert re.match(r"[A-Za-z0-9`$].*[.]`?$", each["description"]), where
        if not where.split(".")[0].endswith("Spec"):  # A section of the stack file may have a text or a number.
            assert ("pulumi.json#/Any" in json.dumps(each)) == (where in OPEN), where


def test_every_type_that_is_referred_to_is_there_and_no_other() -> None:
    meant = set(re.findall(r'"#/types/([^"]+)"', schema_json()))
    assert meant == set(SCHEMA["types"])


@dataclass
class Inner:
    """A part of a section."""

    size: int


@dataclass
class Outer:
    """A section, as of an extra."""

    inner: Inner


def test_a_section_that_is_a_dataclass_may_have_others_in_it() -> None:
    types: dict[str, Any] = {}
    assert _section(Outer, False, types) == {"$ref": "#/types/kumulus:index:OuterSpec"}
    assert types["kumulus:index:OuterSpec"]["properties"]["inner"]["$ref"] == "#/types/kumulus:index:InnerSpec"
    assert types["kumulus:index:InnerSpec"]["properties"]["size"]["type"] == "integer"


def test_it_says_of_every_resource_what_the_plugin_serves() -> None:
    assert {each.token for each in CLASSES} == set(resources()) == set(SCHEMA["resources"]) - COMPONENTS
    assert {each.token for each in component_kinds()} == COMPONENTS


def test_every_component_that_is_public_is_served() -> None:
    # A fault is a resource, whose component has a name of its own; the others are parts of an EmulatedCluster.
    apart = {"Experiment", "Fault", "DeviceClass", "KwokCharts", "PrometheusStack"}
    assert {each.name for each in component_kinds()} - {"FleetFault"} == set(kumulus.__all__) - apart


def test_what_has_to_be_known_says_so_down_to_its_items() -> None:
    group = SCHEMA["resources"]["kumulus:index:KwokNodeGroup"]
    assert group["inputProperties"]["zones"]["plain"] is True
    assert group["inputProperties"]["zones"]["additionalProperties"] == {"type": "integer", "plain": True}
    assert "plain" not in group["inputProperties"]["labels"]
    assert group["requiredInputs"] == ["cluster", "zones"]
    tenant = SCHEMA["resources"]["kumulus:index:Tenant"]["properties"]
    assert [name for name, each in tenant.items() if each.get("secret")] == ["kubeconfig"]


@pytest.mark.parametrize("resource", CLASSES, ids=lambda each: each.token)
def test_what_it_says_is_replaced_is_replaced_by_the_resources_own_diff(resource: type[Resource]) -> None:
    inputs = SCHEMA["resources"][resource.token]["inputProperties"]
    said = {name for name, each in inputs.items() if each.get("willReplaceOnChanges")}
    served = resources()[resource.token]
    replaced = {
        name
        for name in inputs
        for before, after in [VALUES.get(name, ("before", "after"))]
        if any(found.replaces for found in served.diff({**OLD, name: before}, {**OLD, name: after}))
    }
    assert said == replaced == REPLACED[resource.token.rpartition(":")[2]]


# Enough of a cluster for its diff to be asked.
OLD = {"runtime": "kwok", "home": "/h", "name": "n"}
# Not every step is possible: this one is the rule.
VALUES = {"kubernetesVersion": ("v1.34.1", "v1.35.4")}
PLACE = {"clusterIdentity", "clusterName"}
REPLACED = {
    "Cluster": {"name", "runtime", "home"},
    "StackIdentity": set(),
    "NodePool": {"name", *PLACE},
    "Autoscaler": PLACE,
    "HyperNodes": PLACE,
    "Lifetime": {"clusterIdentity"},
    "DestroyCheck": set(),
    "Fault": {"name", *PLACE},
    "KubernetesObject": PLACE,
    "Namespace": {"name", *PLACE},
    "Definitions": {"group", *PLACE},
    "ReleasePreparation": {"namespace", "name", *PLACE},
    "ChartCrds": {"name", *PLACE},
    "ReleaseMark": {"namespace", "name", *PLACE},
    "FederationWorker": {"hub", *PLACE},
    "FederationHub": PLACE,
    "ReleaseReady": {"namespace", "name", *PLACE},
}


def test_the_inputs_of_a_pool_are_its_place_and_its_plain_form() -> None:
    pool = SCHEMA["resources"]["kumulus:index:NodePool"]["inputProperties"]
    assert tuple(pool) == (*PLACE_KEYS, *POOL_KEYS)
    types = SCHEMA["types"]
    assert tuple(types["kumulus:index:Devices"]["properties"]) == SLICES_KEYS
    assert tuple(types["kumulus:index:Topology"]["properties"]) == LEVELS
    assert types["kumulus:index:Taint"]["required"] == ["key", "effect"]


def test_object_types_have_the_keys_that_their_plain_forms_have() -> None:
    node = NodeEffects(
        {"Ready": Condition("False", "r", "m")},
        (Taint("a", "", "NoSchedule"),),
        {"a": ""},
        {"a": ""},
        {"cpu": "-1"},
        "reboot",
        2.0,
        "taint",
    )
    for plain, token in (
        (node.to_plain(), "NodeEffects"),
        (PodEffects("fail", images=("a",)).to_plain(), "PodEffects"),
    ):
        assert set(plain) == set(SCHEMA["types"][f"kumulus:index:{token}"]["properties"])


def test_what_is_fleeting_is_no_output_and_what_is_secret_says_so() -> None:
    chart = SCHEMA["resources"]["kumulus:index:ChartCrds"]
    assert {"access", "values"} & set(chart["properties"]) == set()
    assert [name for name, each in chart["inputProperties"].items() if each.get("secret")] == ["access", "values"]


def test_it_says_who_made_it_and_how_each_language_calls_it() -> None:
    assert SCHEMA["version"] == VERSION
    assert {"displayName", "publisher", "repository", "license", "keywords", "description"} <= set(SCHEMA)
    assert set(SCHEMA["language"]) == {"nodejs", "python", "go", "csharp", "java"}
    # Its name must not be that of the package it generates for.
    assert SCHEMA["language"]["python"]["packageName"] == "pulumi_kumulus"
    for language in ("nodejs", "python", "go", "csharp"):
        assert SCHEMA["language"][language]["respectSchemaVersion"] is True
