"""The same fleet in Python, YAML, TypeScript and Go: each previews the same, and finds nothing to change in another's.

The hosts of the other languages are optional tools: ./kumulus tools --with languages. Python is there always, and plays
another language, too: it declares the components as remote ones, as every generated SDK does.
"""

import json
import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

from kumulus import toolchain
from kumulus.host.version import GO_MODULE, NPM_PACKAGE, VERSION
from tests.support.pods import is_ready
from tests.support.project import NODES, ROOT, Project
from tests.support.tools import require

pytestmark = pytest.mark.e2e

EXAMPLES = ROOT / "examples" / "languages"
PLUGIN = ROOT / "src" / "kumulus" / "provider" / "pulumi-resource-kumulus"
# What a generated SDK does, without one.
REMOTE = """
import pulumi

class Remote(pulumi.ComponentResource):
    def __init__(self, kind, name, **inputs):
        outputs = {"kubeconfig": None, "nodes": None}
        super().__init__(f"kumulus:index:{kind}", name, {**outputs, **inputs}, None, remote=True)

cluster = Remote("KwokCluster", "fleet")
training = Remote(
    "KwokNodeGroup",
    "training",
    cluster=cluster,
    zones={"use1": 4, "use2": 4},
    instanceType="a3-highgpu-8g",
    labels={"team": pulumi.Output.from_input("research")},
    topology={"nodesPerRack": 2},
)
capacity = {"cpu": "16", "memory": "64Gi", "pods": "110"}
Remote("KwokNodeGroup", "general", cluster=cluster, zones={"use1": 3}, capacity=capacity, taints=[])
pulumi.export("kubeconfig", cluster.kubeconfig)
pulumi.export("gpuNodes", training.nodes)
"""
HOSTS = {"yaml": "pulumi-language-yaml", "typescript": "pulumi-language-nodejs", "go": "pulumi-language-go"}


@pytest.fixture(scope="module")
def fleet(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Project]:
    """The Python program, up."""
    project = Project(tmp_path_factory.mktemp("languages"), EXAMPLES / "python")
    project.write_config({}, stack="dev")
    try:
        project.up()
        yield project
        project.destroy()
        assert project.processes() == {}
    finally:
        project.close()


def steps(project: Project, **variables: Any) -> set[tuple[str, str, str, str]]:
    """What a preview of a stack that is not there says of each resource of ours, with its inputs.

    But for the stack's identity: it is drawn again for each preview, and no component of a program in Python owns it.
    """
    # Where the one that is up is not in its way.
    variables["KUMULUS_HOME"] = str(project.home.with_name("another"))
    result = project.pulumi("preview", "--json", stack="another", **variables)
    assert result.code == 0, result.text
    return {
        (step["op"], step["urn"].split("::")[2], step["urn"].split("::")[3], json.dumps(inputs(step), sort_keys=True))
        for step in json.loads(result.stdout)["steps"]
        if "kumulus:" in (kind := step["urn"].split("::")[2]) and not kind.endswith("StackIdentity")
    }


def inputs(step: dict[str, Any]) -> dict[str, Any]:
    # What a component was given is written down for those of other languages only.
    new = step["newState"]
    given = new.get("inputs") or {} if new.get("custom") else {}
    return {key: value for key, value in given.items() if key != "stackId"}


def as_language(project: Project, language: str) -> dict[str, Any]:
    """Put the program of a language in the project's place; returns the variables that its commands need."""
    source = EXAMPLES / ("python" if language == "remote" else language)
    settings = yaml.safe_load((project.directory / "Pulumi.yaml").read_text())
    own = yaml.safe_load((source / "Pulumi.yaml").read_text())
    (project.directory / "__main__.py").unlink(missing_ok=True)
    if language == "remote":
        (project.directory / "__main__.py").write_text(REMOTE)
        return {}
    settings |= {key: own[key] for key in ("runtime", "resources", "outputs") if key in own}
    (project.directory / "Pulumi.yaml").write_text(yaml.safe_dump(settings, sort_keys=False))
    found = host(HOSTS[language])
    variables = {"PATH": f"{found.parent}:{project.environment['PATH']}"}
    if language != "yaml":
        for file in source.iterdir():
            if file.is_file() and file.name != "Pulumi.yaml":
                shutil.copy(file, project.directory)
        {"typescript": node_modules, "go": go_modules}[language](project, variables)
    return variables


def host(name: str) -> Path:
    require(name)
    return toolchain.find(name)


def generated(project: Project, language: str) -> Path:
    """The SDK of a language, as `pulumi package add` puts it beside a program."""
    target = project.directory / "sdks" / "kumulus"
    generate(language, schema_of(project), target)
    return target


def schema_of(project: Project) -> Path:
    file = project.directory.parent / "schema.json"
    result = project._spawn("package", "get-schema", str(PLUGIN), variables={}).result()
    assert result.code == 0, result.text
    file.write_text(result.stdout)
    return file


def generate(language: str, schema: Path, target: Path) -> None:
    command = [str(host("pulumi-gen-sdk")), language, str(schema), str(target)]
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=120)
    assert done.returncode == 0, done.stderr


def node_modules(project: Project, variables: dict[str, str]) -> None:
    if "KUMULUS_NODE_MODULES" not in os.environ:
        pytest.skip(
            "KUMULUS_NODE_MODULES names no folder of node_modules with what examples/languages/typescript needs"
        )
    shutil.copytree(os.environ["KUMULUS_NODE_MODULES"], project.directory / "node_modules", symlinks=True)
    sdk = generated(project, "nodejs")
    tsc = ["node", str(project.directory / "node_modules" / "typescript" / "bin" / "tsc"), "-p", str(sdk)]
    built = subprocess.run(tsc, cwd=sdk, capture_output=True, text=True, check=False, timeout=300)
    assert built.returncode == 0, built.stdout
    shutil.copy(sdk / "package.json", sdk / "bin")
    place = project.directory / "node_modules" / NPM_PACKAGE
    place.parent.mkdir()
    place.symlink_to(sdk)


def go_modules(project: Project, variables: dict[str, str]) -> None:
    if shutil.which("go") is None:
        pytest.skip("no Go")
    sdk = generated(project, "go")
    module = f"module {GO_MODULE}\n\ngo 1.26\n\n"
    (sdk / "go.mod").write_text(f"{module}require github.com/pulumi/pulumi/sdk/v3 v3.246.0\n")
    variables |= {key: value for key, value in os.environ.items() if key in ("GOMODCACHE", "GOCACHE", "GONOSUMDB")}
    command = ["go", "mod", "tidy"]
    tidied = subprocess.run(
        command,
        cwd=project.directory,
        env={**os.environ, "GOFLAGS": "-mod=mod"},
        capture_output=True,
        text=True,
        check=False,
    )
    if tidied.returncode:
        pytest.skip(f"its modules are out of reach: {tidied.stderr.strip().splitlines()[-1]}")


def test_the_python_program_makes_eleven_nodes(fleet: Project) -> None:
    nodes = fleet.api("fleet").list(NODES)
    assert sorted(node["metadata"]["name"] for node in nodes) == sorted(
        [
            *(f"training-{zone}-{n}" for zone in ("use1", "use2") for n in range(4)),
            *(f"general-use1-{n}" for n in range(3)),
        ]
    )
    assert all(map(is_ready, nodes))
    assert fleet.outputs()["gpuNodes"] == 8


@pytest.mark.parametrize("language", ["remote", *HOSTS])
def test_another_language_previews_the_same_and_has_nothing_to_change(fleet: Project, language: str) -> None:
    before = {file: file.read_text() for file in (fleet.directory / "Pulumi.yaml", fleet.directory / "__main__.py")}
    try:
        expected = steps(fleet)
        variables = as_language(fleet, language)
        assert steps(fleet, **variables) == expected
        assert {name for _, _, name, _ in expected} >= {"fleet-control-plane", "training-use2", "general-use1"}
        result = fleet.pulumi("up", "--yes", "--skip-preview", "--expect-no-changes", **variables)
        assert result.code == 0, result.text
        assert fleet.outputs()["gpuNodes"] == 8
    finally:
        for file, text in before.items():
            file.write_text(text)


def test_pulumi_gets_the_schema_of_a_path(fleet: Project) -> None:
    told = json.loads(schema_of(fleet).read_text())
    assert {"kumulus:index:NodePool", "kumulus:index:KwokNodeGroup"} <= set(told["resources"])
    assert told["version"] == VERSION


def test_the_schema_is_bound_and_generates_an_sdk_in_each_language(fleet: Project, tmp_path: Path) -> None:
    schema = schema_of(fleet)
    for language in ("nodejs", "go", "python"):
        generate(language, schema, tmp_path / language)
    assert "class KwokNodeGroup" in (tmp_path / "nodejs" / "kwokNodeGroup.ts").read_text()
    assert "func NewKwokNodeGroup(" in (tmp_path / "go" / "kwokNodeGroup.go").read_text()
    compiled = subprocess.run([sys.executable, "-m", "compileall", "-q", str(tmp_path / "python")], check=False)
    assert compiled.returncode == 0
