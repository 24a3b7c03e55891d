"""What releases left is taken over: every one that was recorded, brought up by this version.

Record each version that is released (`python -m tests.support.record_release`); tests/data/README.md says what that is.
"""

import json
from pathlib import Path
from typing import Any

import pytest

from kumulus.host import ports
from kumulus.host.version import FORM, VERSION
from kumulus.runtimes.kwok.layout import Layout
from tests.support import releases
from tests.support.pods import JOBS, PODS, is_ready, is_running
from tests.support.project import NODES, Project, node_group

pytestmark = pytest.mark.e2e


def test_releases_are_recorded() -> None:
    assert releases.recorded(), "nothing would be tried below"


@pytest.mark.parametrize("release", releases.recorded(), ids=lambda release: release.name)
def test_a_stack_of_a_release_is_brought_up_without_replacing_anything(release: Path, project: Project) -> None:
    project.install_plugins()
    with ports.Claims() as claims:
        recording = releases.restore(release, project, claims)
        # The machine was restarted since: nothing runs, and a refresh sees that.
        foreseen = project.foresee("--refresh")
        assert {step.op for step in foreseen.steps} == {"update"}, foreseen
        brought_up = project.up("--refresh")
    assert "replaced" not in brought_up.text
    assert "deleted" not in brought_up.text

    assert project.identity() == recording.identity
    assert project.node_uids() == recording.nodes
    api = project.api()
    assert {pod["name"]: pod["uid"] for pod in api.metadata(PODS)} == recording.pods
    api.until(NODES, lambda nodes: all(map(is_ready, nodes.values())))
    api.until(PODS, lambda pods: is_running(pods["service"]))
    assert [job["status"]["succeeded"] for job in api.list(JOBS)] == [1]
    assert Layout(project.cluster(recording.stack)).foreign() == []
    project.preview("--refresh", "--expect-no-changes")
    project.preview("--expect-no-changes")

    project.destroy()
    assert project.processes() == {}
    assert not project.home.exists()


YES = ("--yes", "--skip-preview")
COMMANDS = (("preview",), ("up", *YES), ("refresh", *YES), ("destroy", *YES))


def refused(project: Project, *command: str, of_state: bool = True) -> None:
    """A command is refused with both versions, and changes nothing."""
    nodes, running, recorded = project.node_uids(), project.processes(), resources(project)
    answer = project.pulumi(*command)
    assert answer.code != 0, command
    assert "was written by Kumulus 9.8.7" in answer.text, answer.text
    assert f"that this one, Kumulus {VERSION}, does not know" in answer.text
    assert "nothing was changed" in answer.text
    assert "Traceback" not in answer.text
    assert not of_state or resources(project) == recorded, command
    assert (project.node_uids(), project.processes()) == (nodes, running), command


def resources(project: Project) -> dict[str, Any]:
    return {each["urn"]: each.get("outputs") for each in project.state()["resources"]}


def test_a_later_versions_state_and_a_later_versions_folder_are_refused(project: Project, tmp_path: Path) -> None:
    project.write_stack({"nodeGroups": [node_group("g", 2)]})
    project.up()
    later = {"version": "9.8.7", "form": str(FORM + 1)}

    note = project.cluster() / "kumulus.json"
    ours = note.read_text()
    note.write_text(json.dumps({**json.loads(ours), **later}))
    for command in COMMANDS[:-1]:
        refused(project, *command)
    note.write_text(ours)
    project.preview("--expect-no-changes")

    before = project.pulumi("stack", "export").stdout
    exported = json.loads(before)
    for each in exported["deployment"]["resources"]:
        if each["type"] == "pulumi:providers:kumulus":
            assert json.loads(each["inputs"]["writtenBy"]) == {"version": VERSION, "form": str(FORM)}
            each["inputs"]["writtenBy"] = each["outputs"]["writtenBy"] = json.dumps(later)
    file = tmp_path / "later.json"
    file.write_text(json.dumps(exported))
    imported = project.pulumi("stack", "import", "--file", str(file))
    assert imported.code == 0, imported.text
    for command in COMMANDS[:-1]:
        refused(project, *command)
    # The engine takes what goes with a cluster out of the state before it asks anybody (docs/reliability.md, limits).
    refused(project, *COMMANDS[-1], of_state=False)
    file.write_text(before)
    project.pulumi("stack", "import", "--file", str(file))
    project.preview("--expect-no-changes")
