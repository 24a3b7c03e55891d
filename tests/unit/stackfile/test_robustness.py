"""Whatever a stack file holds, the user is told in words; and the plugin's half of the package starts quickly."""

import json
import subprocess
import sys
from pathlib import Path

from hypothesis import example, given, settings
from hypothesis import strategies as st

from kumulus.model.errors import SpecError
from kumulus.model.nodes import node_manifest
from kumulus.model.totals import totals
from kumulus.stackfile.expand import pools
from kumulus.stackfile.kemu import convert
from kumulus.stackfile.load import load
from kumulus.stackfile.model import ClusterSpec
from tests.unit.stackfile.mistakes import CLUSTER, Place, places, planted

KEYS = ["capacity", "chart", "cpu", "name", "nodeGroups", "placement", "pods", "replicas"]
keys = st.sampled_from(KEYS) | st.text(max_size=4)
scalars = (
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats()
    | st.text(max_size=6)
    | st.sampled_from(["1Gi", "\ud800", "a\nb", "oci://", "./", 10**400, -(10**400), 1e308])
)
values = st.recursive(
    scalars,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(keys | st.integers(), inner, max_size=3),
    max_leaves=8,
)


PLACES = list(places(CLUSTER))


def told(error: SpecError) -> None:
    assert error.problems
    assert len(str(error).splitlines()) == 1 + len(error.problems)
    str(error).encode()


def check(raw: object) -> None:
    try:
        found = pools(ClusterSpec.checked(raw, "x"), "dev")
    except SpecError as error:
        told(error)
    else:
        json.dumps(totals(found).to_plain())
        for pool in found:
            json.dumps(node_manifest(pool, 0, "2026-01-31T12:00:00Z"), allow_nan=False)


@settings(max_examples=300, deadline=None)
@example(("nodeGroups", 0, "nodeTemplate", "capacity"), {"\n0": None})
@given(st.sampled_from(PLACES), values)
def test_any_value_at_any_place_is_taken_or_told(where: Place, value: object) -> None:
    check(planted(CLUSTER, where, value))


@settings(max_examples=100, deadline=None)
@given(values)
def test_anything_for_a_file_is_taken_or_told(raw: object) -> None:
    check(raw)


@settings(max_examples=100, deadline=None)
@given(st.dictionaries(st.sampled_from(["cluster", "clusterConfig", "runtime", "skipAddons", "x"]), values, max_size=4))
def test_any_configuration_is_taken_or_told(config: dict[str, object]) -> None:
    try:
        load(config, "dev", Path("/nonexistent"))
    except SpecError as error:
        told(error)


@settings(max_examples=150, deadline=None)
@given(st.sampled_from(PLACES), values)
def test_any_kemu_file_is_taken_or_told(where: Place, value: object) -> None:
    check_kemu(json.dumps({"kind": "ClusterConfig", "spec": planted(CLUSTER, where, value)}))


@settings(max_examples=150, deadline=None)
@given(st.text(max_size=30) | st.text(alphabet="ab:-[]{}&*!|>#?'\"\n\t ", max_size=30))
def test_any_text_for_a_kemu_file_is_taken_or_told(text: str) -> None:
    check_kemu(text)
    check_kemu(f"kind: ClusterConfig\nspec: {text}")


def check_kemu(text: str) -> None:
    try:
        convert(text, "x")
    except SpecError as error:
        told(error)


def test_the_plugins_half_imports_neither_pydantic_nor_yaml() -> None:
    half = ("pools", "nodes", "totals", "consequences", "names", "quantity", "errors")
    heavy = "{'pydantic', 'pydantic_core', 'yaml', 'pulumi', 'difflib'}"
    code = f"import sys; from kumulus.model import {', '.join(half)}; print(*{heavy} & set(sys.modules))"
    command, root = [sys.executable, "-c", code], Path(__file__).parents[3]
    done = subprocess.run(command, check=False, capture_output=True, text=True, cwd=root)
    assert (done.returncode, done.stdout.strip(), done.stderr) == (0, "", "")
