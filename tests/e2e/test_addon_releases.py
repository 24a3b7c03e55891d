"""Helm releases through what can happen to them: CRDs, secrets, mistakes, failures, and updates that are killed.

The tests share one stack and go through its life in their order.
"""

import shutil
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

import psutil
import pytest
import yaml

from tests.e2e import registry
from tests.support import charts, processes
from tests.support.api import Object
from tests.support.project import Project

pytestmark = pytest.mark.e2e

CRDS, RELEASE = "kumulus:index:ChartCrds", "kubernetes:helm.sh/v3:Release"
CRD = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions/widgets.kumulus.test"
WIDGETS = "/apis/kumulus.test/v1/namespaces/default/widgets"
THEIRS = "/apis/kumulus.test/v1/namespaces/in-private/widgets"
SECRET = "hunter2 and more of it"


@dataclass
class Stack:
    """A stack of add-ons whose charts are in its project's `charts`, or in a repository."""

    project: Project
    """Its project."""
    url: str
    """The repository's."""
    addons: dict[str, dict[str, Any]] = field(default_factory=dict)
    """By name, as in the stack file."""

    def write(self) -> None:
        self.project.write_stack({"clusterAddons": list(self.addons.values())}, stack="releases")

    def chart(self, name: str, *files: dict[str, str]) -> None:
        """Write a chart of the project's, in place of the one before, with further files."""
        folder = self.project.directory / "charts" / name
        shutil.rmtree(folder, ignore_errors=True)
        charts.write_chart(folder, "0.1.0", {key: text for more in files for key, text in more.items()})

    def add(self, name: str, **more: Any) -> dict[str, Any]:
        self.addons[name] = {"name": name, "namespace": f"in-{name}", "chart": f"./charts/{name}", **more}
        return self.addons[name]

    def revisions(self, name: str) -> list[Object]:
        """The metadata of Helm's Secrets, the first revision first."""
        found = self.project.api().metadata("/api/v1/secrets", labelSelector=f"owner=helm,name={name}")
        return sorted(found, key=lambda each: int(each["labels"]["version"]))

    def statuses(self, name: str) -> list[str]:
        return [each["labels"]["status"] for each in self.revisions(name)]

    def until(self, holds: Callable[[], bool], timeout: float = 90) -> None:
        end = time.monotonic() + timeout
        while not holds():
            assert time.monotonic() < end
            time.sleep(0.1)


@pytest.fixture(scope="module")
def stack(module_project: Project, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Stack]:
    module_project.install_plugins()
    versions = {"0.1.0": charts.crd("size"), "0.2.0": charts.crd("size", "colour")}
    with (
        charts.repository(tmp_path_factory.mktemp("repository"), versions) as url,
        registry.registry(tmp_path_factory.mktemp("registry"), {"0.1.0": {}}) as private,
    ):
        made = Stack(module_project, url)
        for name in ("first", "second", "third"):
            made.chart(name, charts.hook(4), charts.schema())
            made.add(name)
        made.addons["third"]["dependsOn"] = ["first"]
        made.add("widgets", chart="sample", repoURL=url, version="0.1.0")
        module_project.environment |= private.login(tmp_path_factory.mktemp("login"))
        made.add("private", chart=private.chart, version="0.1.0")
        yield made


def test_add_ons_are_installed_side_by_side_unless_they_depend_on_each_other(stack: Stack) -> None:
    stack.write()
    stack.project.up()
    begun = {name: _begun(stack.revisions(name)[0]) for name in ("first", "second", "third")}
    ended = {name: int(stack.revisions(name)[0]["labels"]["modifiedAt"]) for name in begun}
    # Each waits for a Job of 4 s.
    assert max(begun["first"], begun["second"]) < min(ended["first"], ended["second"])
    assert begun["third"] >= ended["first"]
    # From a registry that lets in who knows the password.
    assert stack.statuses("private") == ["deployed"]


def test_crds_are_made_and_upgraded_and_their_objects_stay(stack: Stack) -> None:
    api = stack.project.api()
    assert _fields(api.get(CRD)) == {"size"}
    api.request("POST", WIDGETS, {"apiVersion": "kumulus.test/v1", "kind": "Widget", "metadata": {"name": "w"}})
    stack.addons["widgets"]["version"] = "0.2.0"
    stack.write()
    changed = {step.name: step.changed for step in stack.project.foresee().steps if step.type == CRDS}
    assert changed["widgets-crds"]['crds["widgets.kumulus.test"]'] == "update"
    assert _fields(api.get(CRD)) == {"size"}
    stack.project.up()
    assert _fields(api.get(CRD)) == {"size", "colour"}
    api.get(f"{WIDGETS}/w")
    stack.project.preview("--expect-no-changes")


def test_secrets_reach_the_chart_and_are_nowhere_in_clear(stack: Stack) -> None:
    path = "kumulus:cluster.clusterAddons[1].valuesObject.greeting"
    stack.addons["second"]["valuesObject"] = {"replicas": 2}
    stack.write()
    told = stack.project.pulumi("config", "set", "--secret", "--path", path, SECRET)
    assert told.code == 0, told.text
    config = yaml.safe_load(stack.project.stack_file().read_text())["config"]["kumulus:cluster"]
    stack.addons["second"] = config["clusterAddons"][1]
    assert list(stack.addons["second"]["valuesObject"]["greeting"]) == ["secure"]
    said = [stack.project.preview("--diff").text, stack.project.up("--diff").text]
    words = stack.project.api().get("/api/v1/namespaces/in-second/configmaps/second-words")["data"]
    assert words["greeting"] == SECRET
    said += [stack.project.backend_file().read_text(), stack.project.preview("--diff", "--refresh").text]
    assert not any("hunter2" in text for text in said)
    # The chart's schema wants small letters and blanks: the mistake is told, the value is not, however it is quoted.
    for value in ("Hunter2!", 'it\'s "Hunter2"\nand\\Hunter2'):
        told = stack.project.pulumi("config", "set", "--secret", "--path", path, value)
        assert told.code == 0, told.text
        wrong = stack.project.pulumi("preview", "--diff")
        assert wrong.code != 0
        assert "the chart's schema rejects them" in wrong.text
        assert "unter2" not in wrong.text
    stack.write()


def test_a_chart_that_cannot_be_had_is_told_and_changes_nothing(stack: Stack) -> None:
    widgets = dict(stack.addons["widgets"])
    for change, words in (
        ({"version": "9.9.9"}, "write a chart and a version that the repository has"),
        ({"repoURL": "http://127.0.0.1:1"}, "check repoURL and the network"),
        ({"chart": "oci://127.0.0.1:1/charts/sample"}, "check repoURL and the network"),
    ):
        stack.addons["widgets"] = {**widgets, **change}
        if "oci" in str(change):
            del stack.addons["widgets"]["repoURL"]
        stack.write()
        told = stack.project.pulumi("preview")
        assert told.code != 0
        assert words in told.text, told.text
        assert "Traceback" not in told.text
    stack.addons["widgets"] = widgets
    stack.addons["first"]["valuesObject"] = {"replicas": "three"}
    stack.write()
    told = stack.project.pulumi("up", "--yes", "--skip-preview")
    assert told.code != 0
    assert "the chart's schema rejects them" in told.text
    del stack.addons["first"]["valuesObject"]
    stack.write()
    stack.project.preview("--expect-no-changes")


def test_a_failed_install_is_told_and_repaired_by_the_next_update(stack: Stack) -> None:
    stack.chart("late", charts.hook(600))
    stack.add("late", timeout=3)
    stack.write()
    failed = stack.project.pulumi("up", "--yes", "--skip-preview")
    assert failed.code != 0
    assert "in-late/late" in failed.text
    assert stack.statuses("late") == ["failed"]
    stack.chart("late", charts.hook(0))
    stack.addons["late"]["timeout"] = 60
    stack.write()
    stack.project.up()
    assert stack.statuses("late")[-1] == "deployed"
    stack.project.preview("--expect-no-changes")


def test_what_an_orphaned_plugin_installed_is_taken_over_by_the_next_update(stack: Stack) -> None:
    """Only the engine was killed: its plugin goes on, and nobody records what it has installed."""
    stack.chart("orphan", charts.hook(4))
    stack.add("orphan")
    stack.write()
    _kill_while_installing(stack, "orphan", with_plugins=False)
    stack.until(lambda: not processes.helpers(stack.project.home) or stack.statuses("orphan") == ["deployed"])
    stack.project.up()
    assert stack.statuses("orphan")[-1] == "deployed"
    stack.project.preview("--expect-no-changes")


def test_what_a_killed_update_left_is_repaired_or_removed_by_the_next(stack: Stack) -> None:
    """Killed with its plugins, as when the machine goes down.

    And add-ons that are removed take their CRDs along, unless there are objects of them, and their namespaces,
    unless there is something of others' in them.
    """
    for name in ("killed", "gone"):
        stack.chart(name, charts.hook(600))
        stack.add(name)
    stack.write()
    _kill_while_installing(stack, "killed", "gone")
    assert stack.statuses("killed") == stack.statuses("gone") == ["pending-install"]
    stack.chart("killed", charts.hook(0))
    del stack.addons["gone"]
    del stack.addons["widgets"]
    # Somebody has put an object of their own into an add-on's namespace.
    widget = {"apiVersion": "kumulus.test/v1", "kind": "Widget", "metadata": {"name": "theirs"}}
    stack.project.api().request("POST", THEIRS, widget)
    del stack.addons["private"]
    stack.write()
    foreseen = "".join(stack.project.foresee().messages.values())
    assert "release in-killed/killed: revision 1 was left pending-install" in foreseen
    assert stack.statuses("killed") == ["pending-install"]
    told = stack.project.up().text
    assert stack.statuses("killed")[-1] == "deployed"
    assert "release in-gone/gone, left by an update that did not end, was uninstalled" in told
    assert stack.statuses("gone") == []
    # Helm leaves namespaces behind.
    left = {each["name"] for each in stack.project.api().metadata("/api/v1/namespaces") if not _going(each)}
    assert left >= {"in-first", "in-private"}
    assert "the namespace in-private is kept: widgets.kumulus.test theirs is in it" in told
    assert stack.project.api().get(f"{THEIRS}/theirs")
    assert not left & {"in-gone", "in-widgets"}
    assert "the CRD widgets.kumulus.test is kept: there are objects of it" in told
    assert stack.project.api().get(f"{WIDGETS}/w")
    stack.project.preview("--expect-no-changes")


def _kill_while_installing(stack: Stack, *names: str, with_plugins: bool = True) -> None:
    running = stack.project.start("up", "--yes", "--skip-preview")
    stack.until(
        lambda: running.process.poll() is not None or all(stack.statuses(name) == ["pending-install"] for name in names)
    )
    assert running.process.poll() is None, running.result().text
    engine = psutil.Process(running.process.pid)
    plugins = [each.pid for each in engine.children(recursive=True)]
    processes.kill([engine.pid, *(plugins if with_plugins else [])])
    running.result()
    # The lock of a killed update stays, as Pulumi's documentation says.
    stack.project.pulumi("cancel", "--yes")


def _begun(metadata: Object) -> float:
    return datetime.fromisoformat(metadata["creationTimestamp"]).timestamp()


def _going(metadata: Object) -> bool:
    return "deletionTimestamp" in metadata


def _fields(crd: Object) -> set[str]:
    schema = crd["spec"]["versions"][0]["schema"]["openAPIV3Schema"]
    return set(schema["properties"]["spec"]["properties"])
