"""200 secrets of every kind in two stacks: none is in a log, in `ps`, in a readable file, or plain in a state."""

import base64
import json
import os
import re
import subprocess
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.e2e import canaries as birds
from tests.e2e.canaries import Canaries
from tests.support import charts, stand_in_command, stranger
from tests.support.project import Project, Result, node_group

pytestmark = pytest.mark.e2e
VERBOSE = ("-d", "--logtostderr", "-v=9")
# From 3.247 on, Pulumi's engine masks no secret in these lines, which -v=9 brings: docs/security.md says so.
PROPERTY = re.compile(r'^.*"msg":"(?:M|Unm)arshaling property for RPC\[.*\n?', re.MULTILINE)
TENANTS = 10
WORD = "$WORD0"


@dataclass
class Planted:
    """The stack with its secrets, and everything that pulumi said of it."""

    project: Project
    canaries: Canaries
    temporary: Path
    said: list[Result] = field(default_factory=list)
    seen: list[birds.Watch] = field(default_factory=list)

    def pulumi(self, *arguments: str) -> Result:
        """Run it; what it said, but for the lines of the engine about each property."""
        with birds.watched(self.canaries, [self.temporary]) as seen:
            whole = self.project.pulumi(*arguments)
        result = replace(whole, stdout=PROPERTY.sub("", whole.stdout), stderr=PROPERTY.sub("", whole.stderr))
        assert (result != whole) == ("-v=9" in arguments)
        self.said.append(result)
        self.seen.append(seen)
        return result


def plant(planted: Planted, url: str) -> None:
    """Write the stack's file, the secrets in it as `pulumi config set --secret` has them."""
    canaries, project = planted.canaries, planted.project
    commands: list[dict[str, Any]] = [
        # What a command writes is an output, and as secret as the command.
        {"name": f"c{number}", "create": f'test -n "{WORD}"; echo "{WORD}"', "when": when}
        for number, when in enumerate(("beforeNodes", "first", "last"))
        if when != "first"
    ]
    cluster = {
        "nodeGroups": [node_group("a", 2)],
        "clusterAddons": [
            {
                "name": "sample",
                "repoName": "tests",
                "repoURL": url,
                "namespace": "apps",
                "chart": "tests/sample",
                "version": "1.0.0",
            }
        ],
        "tenants": [{"name": f"team{number}"} for number in range(TENANTS)],
        "hostCommands": commands,
    }
    project.write_stack(cluster, stack="canaries")
    assert project.pulumi("config").code == 0, "the stack is known now"
    addon, secret = "kumulus:cluster.clusterAddons[0]", {}
    for number in range(90):
        secret[f"{addon}.valuesObject.k{number}"] = canaries.new("values")
    secret[f"{addon}.valuesObject.greeting"] = canaries.new("greeting")
    secret[f"{addon}.valuesObject.deep.word"] = canaries.new("deep")
    secret[f"{addon}.repositoryOpts.username"] = canaries.new("registry")
    secret[f"{addon}.repositoryOpts.password"] = canaries.new("registry")
    for index in range(len(commands)):
        for number in range(24):
            secret[f"kumulus:cluster.hostCommands[{index}].environment.WORD{number}"] = canaries.new("environment")
    arguments = [text for place, value in secret.items() for text in ("--secret", f"{place}={value}")]
    done = project.pulumi("config", "set-all", "--path", *arguments)
    assert done.code == 0, done.text


@pytest.fixture(scope="module")
def planted(module_project: Project, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Planted]:
    project = module_project
    project.install_plugins()
    stand_in_command.install(project.pulumi_home)
    root = tmp_path_factory.mktemp("canaries")
    # As on everybody's machine: what is private there is so by itself.
    for folder in (root, *root.parents[:2], project.directory.parent):
        folder.chmod(0o755)
    temporary, home = root / "tmp", root / "user"
    temporary.mkdir()
    home.mkdir()
    project.environment |= {"TMPDIR": str(temporary), "HOME": str(home)}
    # The tools are where they were.
    project.environment["XDG_CACHE_HOME"] = os.environ.get("XDG_CACHE_HOME", str(Path.home() / ".cache"))
    served = root / "charts"
    served.mkdir()
    made = Planted(project, Canaries(), temporary)
    with charts.repository(served, {"1.0.0": {}}) as url:
        plant(made, url)
        yield made


def test_nothing_is_said_of_them_in_previews_updates_and_debug_logs(planted: Planted) -> None:
    for command in (("preview", "--diff"), ("up", "--yes", "--skip-preview", *VERBOSE), ("preview", "--json")):
        result = planted.pulumi(*command)
        assert result.code == 0, errors(result)
        assert planted.canaries.found_in(result.text.encode()) == set(), command
    # They arrived: a release's ConfigMap has two of them, by design of that chart.
    words = planted.project.api().get("/api/v1/namespaces/apps/configmaps/sample-words")["data"]
    assert planted.canaries.found_in(json.dumps(words).encode()) == {words["greeting"], words["deep"]}
    shown = planted.project.pulumi("stack", "output", "tenants", "--json", "--show-secrets")
    for name, each in json.loads(shown.stdout).items():
        [user] = yaml.safe_load(each["kubeconfig"])["users"]
        planted.canaries.also(f"token of {name}", user["user"]["token"])
    # Pulumi's SDK tells outputs in its debug log as they are, as docs/security.md says.
    debug = [result for result in planted.said if "debug: register resource outputs prepared" in result.text]
    for result in [*planted.said, planted.pulumi("refresh", "--yes"), planted.pulumi("stack", "output")]:
        tokens = {kind for kind in planted.canaries.found_in(result.text.encode()) if kind.startswith("token of ")}
        assert planted.canaries.found_in(result.text.encode()) == tokens
        assert bool(tokens) == (result in debug)


def errors(result: Result) -> str:
    """What went wrong, without the debug log."""
    return "\n".join(line[:500] for line in result.text.splitlines() if "rror" in line and '"level"' not in line)


def test_a_cluster_by_a_secret_kubeconfig_keeps_it_too(planted: Planted, tmp_path: Path) -> None:
    project = planted.project
    kubeconfig = yaml.safe_load(project.kubeconfig().read_text())
    for kind, file in (("certificate-authority", "cluster"), ("client-certificate", "user"), ("client-key", "user")):
        for entry in kubeconfig["clusters" if file == "cluster" else "users"]:
            if path := entry[file].pop(kind, None):
                content = (project.cluster() / path).read_bytes()
                entry[file][f"{kind}-data"] = base64.b64encode(content).decode()
    for number in range(200 - len(planted.canaries.planted)):
        token = planted.canaries.new("kubeconfig")
        kubeconfig["users"].append({"name": f"other{number}", "user": {"token": token}})
    assert len(planted.canaries.planted) == 200
    project.write_stack(
        {"runtime": "existing", "kwokCharts": {"install": False}, "nodeGroups": [node_group("b", 1)]}, stack="guest"
    )
    place = ("config", "set", "--secret", "--path", "kumulus:cluster.existing.kubeconfig")
    assert project.pulumi(*place, yaml.safe_dump(kubeconfig)).code == 0
    result = planted.pulumi("up", "--yes", "--skip-preview", *VERBOSE)
    assert result.code == 0, errors(result)
    assert planted.canaries.found_in(result.text.encode()) == set()


def test_an_error_tells_the_place_of_a_secret_and_not_what_it_says(planted: Planted) -> None:
    project = planted.project
    project.stack = "canaries"
    wrong = planted.canaries.new("mistake")
    before = project.stack_file().read_text()
    place = ("config", "set", "--secret", "--path", "kumulus:cluster.nodeGroups[0].nodeTemplate.capacity.cpu")
    assert project.pulumi(*place, wrong).code == 0
    result = planted.pulumi("preview", *VERBOSE)
    project.stack_file().write_text(before)
    assert result.code != 0
    assert "its value is secret and not shown" in result.text
    assert planted.canaries.found_in(result.text.encode()) == set()


def test_no_command_line_showed_one(planted: Planted) -> None:
    assert all(each.looks > 3 for each in planted.seen)
    assert set().union(*(each.commands for each in planted.seen)) == set()


def test_another_user_cannot_look_into_the_environment_of_the_programs(planted: Planted) -> None:
    """There Pulumi has the configuration of a Python program, and a host command what it was given."""
    own = {**os.environ, "WORD": planted.canaries.new("environ")}
    # It is the same program until it is ended: /proc shows no environment while one program replaces another.
    child = subprocess.Popen(["cat"], env=own, stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    try:
        assert child.stdin is not None
        assert child.stdout is not None
        child.stdin.write(b"\n")
        child.stdin.flush()
        child.stdout.readline()
        assert planted.canaries.found_in(Path(f"/proc/{child.pid}/environ").read_bytes())
        assert not stranger.can_read(Path(f"/proc/{child.pid}/environ"))
    finally:
        child.kill()
        child.communicate()


def test_no_file_that_others_may_read_has_one(planted: Planted) -> None:
    assert {path for each in planted.seen for path in each.files} == set()
    for folder in (planted.temporary.parent, planted.project.directory.parent):
        assert birds.readable(planted.canaries, folder) == {}


def test_state_and_stack_files_have_none_in_plain(planted: Planted) -> None:
    project = planted.project
    for folder in (project.directory, project.pulumi_home, project.directory.parent / "state", planted.temporary):
        assert birds.in_files(planted.canaries, folder) == {}, folder
    # Where they are: with the clusters, in folders that are their owner's alone.
    there = birds.in_files(planted.canaries, project.home)
    assert {path.relative_to(project.home).parts[:2] for path in there} == {
        ("clusters", "canaries"),
        ("clusters", "guest"),
    }
    assert all(birds.is_private(project.cluster(name)) for name in ("canaries", "guest"))
    # Not in what they log.
    assert not [path for path in there if path.suffix == ".log"]
