"""The JSON schemas and the loaders say the same of the same file: right ones pass both, mistakes fail both."""

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import jsonschema
import pytest
import yaml
from hypothesis import given, settings
from hypothesis import strategies as st

from kumulus.extras.lab.file.model import ExperimentSpec
from kumulus.extras.lab.file.schema import experiment_schema
from kumulus.model.errors import SpecError
from kumulus.stackfile import clusters
from kumulus.stackfile.kemu import convert, stack_file_of
from kumulus.stackfile.schema.stack import stack_schema
from kumulus.stackfile.secrets import with_placeholders
from kumulus.stackfile.yamltext import read_yaml
from tests.support.kemu import cluster_file
from tests.unit.stackfile.mistakes import (
    CLUSTER,
    EXPERIMENT,
    EXPERIMENT_BEYOND,
    EXPERIMENT_MISTAKES,
    MANY,
    MANY_BEYOND,
    MANY_MISTAKES,
    STACK,
    STACK_BEYOND,
    STACK_MISTAKES,
    Mistakes,
    Place,
    places,
    planted,
)

ROOT = Path(__file__).resolve().parents[3]
NEW = ROOT / "src" / "kumulus" / "cli" / "new_project" / "Pulumi.dev.yaml"
STACKS = sorted([*ROOT.glob("stacks/*.yaml"), *ROOT.glob("examples/**/Pulumi.*.yaml"), NEW])
EXPERIMENTS = sorted([*ROOT.glob("experiments/*.yaml"), *ROOT.glob("experiments/traces/*.yaml")])
MODELINE = "# yaml-language-server: $schema="

STACK_SCHEMA = jsonschema.Draft7Validator(stack_schema())
EXPERIMENT_SCHEMA = jsonschema.Draft7Validator(experiment_schema())


def load_stack(document: Mapping[str, Any]) -> None:
    """What Pulumi's program and the command do with a stack file, whose secrets they get as texts."""
    config = document.get("config")
    values = with_placeholders(config) if isinstance(config, dict) else {}
    assert isinstance(values, dict)
    clusters.load_stack({key: each for key, each in values.items() if key.startswith("kumulus:")}, "test", ROOT)


def load_experiment(document: Mapping[str, Any]) -> None:
    ExperimentSpec.checked(document)


def told(loader: Callable[[Mapping[str, Any]], None], document: Mapping[str, Any]) -> str:
    """What a loader says of a file; nothing of a right one."""
    try:
        loader(document)
    except SpecError as error:
        return str(error)
    return ""


def wrong(schema: jsonschema.Draft7Validator, document: Mapping[str, Any]) -> str:
    """What a schema says of a file; nothing of a right one."""
    return "\n".join(f"{each.json_path}: {each.message}"[:300] for each in schema.iter_errors(document))


FILES = [
    pytest.param(STACK_SCHEMA, load_stack, STACK, STACK_MISTAKES, STACK_BEYOND, id="stack"),
    pytest.param(STACK_SCHEMA, load_stack, MANY, MANY_MISTAKES, MANY_BEYOND, id="many"),
    pytest.param(
        EXPERIMENT_SCHEMA, load_experiment, EXPERIMENT, EXPERIMENT_MISTAKES, EXPERIMENT_BEYOND, id="experiment"
    ),
]
Checks = Callable[[Mapping[str, Any]], None]


@pytest.mark.parametrize(("schema", "loader", "right", "mistakes", "beyond"), FILES)
def test_planted_mistakes_are_found_by_the_loader_and_by_the_schema(
    schema: jsonschema.Draft7Validator,
    loader: Checks,
    right: dict[str, Any],
    mistakes: Mistakes,
    beyond: Mapping[str, str],
) -> None:
    assert told(loader, right) == ""
    assert wrong(schema, right) == ""
    assert len(mistakes) >= 20
    assert beyond.keys() <= mistakes.keys()
    passed_by_schema = []
    for name, (place, value, *words) in mistakes.items():
        document = planted(right, place, value)
        said = told(loader, document)
        assert said, name
        assert all(each in said for each in words), said
        passed_by_schema += [] if wrong(schema, document) else [name]
    assert passed_by_schema == list(beyond)


@pytest.mark.parametrize("path", [*STACKS, *EXPERIMENTS], ids=lambda path: path.stem)
def test_every_file_that_comes_along_is_right_for_the_schema_that_its_first_line_names(path: Path) -> None:
    text, kind = path.read_text(encoding="utf-8"), "stack" if path in STACKS else "experiment"
    document = read_yaml(text)
    assert isinstance(document, dict)
    assert wrong(STACK_SCHEMA if kind == "stack" else EXPERIMENT_SCHEMA, document) == ""
    assert kind == "experiment" or told(load_stack, document) == ""
    # A new project has a schema of its own: test_projects.py.
    named = (path.parent / text.splitlines()[0].removeprefix(MODELINE)).resolve()
    assert path == NEW or named == ROOT / "docs" / "schema" / f"{kind}.schema.json"


@pytest.mark.parametrize("runtime", ["kwok", "kind"])
def test_a_converted_kemu_file_is_right_for_the_schema(runtime: str) -> None:
    converted = stack_file_of(convert(cluster_file("gcp-small"), "kemu.yaml", runtime))
    assert wrong(STACK_SCHEMA, yaml.safe_load(converted)) == ""


def test_a_secret_may_stand_where_a_text_may() -> None:
    secret = {"secure": "AAABAKvYxY4="}
    for changed in (
        {"kumulus:cluster": secret},
        {"kumulus:cluster": {**CLUSTER, "hostCommands": [{"name": "a", "create": "b", "environment": {"T": secret}}]}},
        {"kumulus:cluster": {"runtime": "existing", "existing": {"kubeconfig": secret}}},
    ):
        assert wrong(STACK_SCHEMA, {"config": changed}) == ""
    assert wrong(STACK_SCHEMA, {"config": {"kumulus:cluster": {**CLUSTER, "tenants": secret}}})


def test_a_key_without_a_value_counts_as_absent() -> None:
    for key in STACK_SCHEMA.schema["definitions"]["ClusterSpec"]["properties"]:
        document = {"config": {"kumulus:cluster": {key: None}, "kumulus:clusterConfig": None}}
        assert (key, told(load_stack, document), wrong(STACK_SCHEMA, document)) == (key, "", "")


TEXTS = """
    1 1Gi 1.5 500m 1e3 -1 -0 0 10% 99.5% 120% 5s 1h30m a A a.b a/b x-1 1.35.4 use1 r3 ./a oci://a/b https://a NoSchedule
    kwok Job restart rack true volcano
"""
SCALARS = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(-2, 70_000),
    # Not finer than a thousandth: amounts below a billionth are rounded, which no schema can say.
    st.integers(-2000, 200_000).map(lambda number: number / 1000),
    st.text(max_size=5),
    st.sampled_from(TEXTS.split()),
)
VALUES = st.one_of(
    SCALARS,
    st.lists(SCALARS, max_size=2),
    st.dictionaries(
        st.sampled_from(["cpu", "pods", "a", "example.com/a", "name", "range", "normal"]), SCALARS, max_size=2
    ),
)


@pytest.mark.parametrize(
    ("schema", "loader", "right"), [each.values[:3] for each in FILES], ids=["stack", "many", "experiment"]
)
def test_what_the_loader_takes_the_schema_takes(
    schema: jsonschema.Draft7Validator, loader: Checks, right: dict[str, Any]
) -> None:
    # What Pulumi keeps in a stack file is Pulumi's to check.
    checked = [place for place in places(right) if place != ("config",) and place[0] != "encryptionsalt"]

    @settings(max_examples=400, deadline=None, derandomize=True)
    @given(st.sampled_from(checked), VALUES)
    def drawn(place: Place, value: object) -> None:
        document = planted(right, place, value)
        if not told(loader, document):
            assert wrong(schema, document) == ""

    drawn()
