"""A runtime is a descriptor, in a folder of ours or of an extra: whoever needs to know of them asks the registry."""

import json
import re
from pathlib import Path
from typing import Any

import pytest

import kumulus
from benchmarks import pages
from kumulus.components.control_plane import type_of
from kumulus.components.described_cluster import CLASSES
from kumulus.provider.plugin import references
from kumulus.runtimes import registry
from kumulus.runtimes.base import Runtime
from kumulus.runtimes.section import RuntimeSection
from kumulus.toolchain import pins
from tests.support import toy

QUESTIONS = """
import argparse, contextlib, io, json
from pathlib import Path
from kumulus.cli import convert, needs, project
from kumulus.components import described_cluster
from kumulus.components.control_plane import type_of
from kumulus.components.existing_cluster import KwokPlan
from kumulus.model.errors import SpecError
from kumulus.provider.resources.registry import resources
from kumulus.stackfile.load import load
from kumulus.stackfile.schema.document import DEFINITIONS
from kumulus.stackfile.schema.stack import stack_schema

def read(**cluster):
    return load({"cluster": cluster}, "dev", Path())

def refused(**cluster):
    try:
        read(**cluster)
    except SpecError as error:
        return str(error)

toy = read(runtime="toy", toy={"size": 3})
parser = argparse.ArgumentParser()
convert.add_arguments(parser)
with contextlib.redirect_stdout(io.StringIO()) as shown, contextlib.suppress(SystemExit):
    parser.parse_args(["-h"])
too_large = {"name": "a", "runtime": "toy", "options": {"size": 20}}
served = resources()["kumulus:index:Cluster"]
home = Path("clusters/dev")
home.mkdir(parents=True)
(home / "toy.yaml").touch()
project.clusters_directory = lambda: Path("clusters")
print(json.dumps({
    "schema": stack_schema()[DEFINITIONS],
    "overridden": load({"cluster": {"kwok": {}, "runtime": "kwok"}, "runtime": "toy"}, "dev", Path()).spec.runtime,
    "elsewhere": refused(toy={"size": 3}),
    "not its own": refused(runtime="toy", kind={"wait": "1m"}),
    "unlucky": refused(runtime="toy", toy={"size": 13}),
    "version": refused(runtime="toy", kubernetesVersion="1.35.4"),
    "charts": refused(runtime="kwok", kwokCharts={}),
    "command": shown.getvalue(),
    "needed": needs.of_loaded(toy).tools,
    "parts": list(needs.needed_by("helm")),
    "kubeconfig": project.kubeconfig("dev").name,
    "component": type_of("toy"),
    "options": described_cluster._options(toy, Path(), KwokPlan()),
    "alias": [str(each.type_) for each in described_cluster._aliases("kwok")],
    "checked": [str(each) for each in served.check({}, too_large, "/").failures],
    "plugin": next(repr(each) for each in served.inputs if each.name == "runtime"),
}))
"""


@pytest.fixture(scope="module")
def answers(toy_site: Path, tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    answer = toy.ask(toy_site, "-c", QUESTIONS, cwd=tmp_path_factory.mktemp("asked"))
    assert answer.returncode == 0, answer.stderr
    found: dict[str, Any] = json.loads(answer.stdout)
    return found


def test_the_schema_has_a_third_partys_runtime_and_its_section(answers: dict[str, Any]) -> None:
    cluster = answers["schema"]["ClusterSpec"]["properties"]
    assert "toy" in json.dumps(cluster["runtime"])
    assert "toy" in cluster
    assert "size" in answers["schema"]["Toy"]["properties"]


def test_rules_and_loading_know_what_is_its_own(answers: dict[str, Any]) -> None:
    assert answers["overridden"] == "toy"
    assert 'toy: has no effect with the runtime "kwok"; leave it out or write runtime: toy' in answers["elsewhere"]
    assert 'kind: has no effect with the runtime "toy"' in answers["not its own"]
    assert "toy.size: is unlucky; write 12" in answers["unlucky"]
    assert "kubernetesVersion: has no effect" in answers["version"]
    assert "write runtime: kind, existing or toy" in answers["charts"]


def test_the_command_and_its_tools_name_it(answers: dict[str, Any]) -> None:
    assert "{kwok,kind,existing,toy}" in answers["command"]
    assert "helm" in answers["needed"]
    assert "runtime: toy" in answers["parts"]
    assert answers["kubeconfig"] == "toy.yaml"


def test_the_plugin_serves_it_and_a_stack_declares_it(answers: dict[str, Any]) -> None:
    assert len(answers["checked"]) == 1
    assert "write less" in answers["checked"][0]
    assert "or `toy` (in a box)" in answers["plugin"]
    assert answers["component"] == "kumulus:index:ToyCluster"
    assert answers["options"] == {"size": 3}
    assert "kumulus:index:ToyCluster" in answers["alias"]


@pytest.mark.parametrize("name", registry.OURS)
def test_a_descriptor_says_what_is_so(name: str) -> None:
    runtime = registry.get(name)
    made = runtime.make()
    assert isinstance(made, Runtime)
    assert (runtime.name, made.name) == (name, name)
    assert issubclass(runtime.options.load(), RuntimeSection)
    assert set(runtime.option_sections) <= set(runtime.further_sections)
    known = pins.load()
    for tool in runtime.tools:
        assert known.named(tool), f"pins.toml has no {tool}"


def test_every_runtime_of_ours_is_a_class_for_programs_too() -> None:
    """A runtime without one can be had by a stack file alone."""
    assert [each.runtime for each in CLASSES] == list(registry.OURS), "components/described_cluster.py: CLASSES"
    assert [each.__name__ for each in CLASSES] == [type_of(each).rpartition(":")[2] for each in registry.OURS]
    names = {each.__name__ for each in CLASSES}
    assert names <= set(kumulus.__all__), "kumulus/__init__.py"
    assert {*names, "EmulatedCluster"} == set(references._CLUSTERS), "plugin/references.py: _CLUSTERS"


def test_the_page_has_the_table_of_the_registry() -> None:
    text = (pages.DOCS / "clusters.md").read_text()
    assert pages.with_runtimes(text) == text, "run: python -m benchmarks.pages"


def test_nobody_else_tells_runtimes_apart_by_their_names() -> None:
    """What branches on a name has to ask the descriptor instead."""
    root = Path(registry.__file__).parents[1]
    names = "|".join(registry.OURS)
    branch = re.compile(
        rf'runtime\w*"?\]? (?:==|!=|in|not in) \(?"(?:{names})"|get\("runtime"\) (?:==|!=) "(?:{names})"'
    )
    found = [
        f"{file.relative_to(root)}:{number}: {line.strip()}"
        for file in root.rglob("*.py")
        for number, line in enumerate(file.read_text().splitlines(), 1)
        if branch.search(line)
    ]
    assert found == []
