"""What former versions left is taken over: every release that was recorded, brought up by this version.

Record each version that is released (`python -m tests.support.record_release`); tests/data/README.md says what that is.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from kumulus import toolchain
from kumulus.host import ports
from kumulus.runtimes.kwok import etcd, securing
from kumulus.runtimes.kwok.layout import Layout
from tests.support import releases
from tests.support.pods import JOBS, PODS, is_ready, is_running
from tests.support.project import NODES, Project

pytestmark = pytest.mark.e2e


def test_releases_are_recorded() -> None:
    assert releases.recorded(), "nothing would be tried below"


@pytest.mark.parametrize("release", releases.recorded(), ids=lambda release: release.name)
def test_a_stack_of_a_former_release_is_brought_up_without_replacing_anything(release: Path, project: Project) -> None:
    toolchain.install_plugins(project.pulumi_home)
    with ports.Claims() as claims:
        recording = releases.restore(release, project, claims)
        # The machine was restarted since: nothing runs, and a refresh sees that.
        foreseen = project.foresee("--refresh")
        # The stack is given an identity, and marks what is its own with it.
        assert {(step.op, step.type if step.op != "update" else "") for step in foreseen.steps} == {
            ("update", ""),
            ("create", "kumulus:index:StackIdentity"),
        }, foreseen
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
    # What is restarted is started as this version has it: etcd asks for certificates.
    layout = Layout(project.cluster(recording.stack))
    assert etcd.is_secured(layout.settings())
    assert securing.outdated(layout.settings(), layout.directory / "pki") == []
    assert layout.foreign() == []
    project.preview("--refresh", "--expect-no-changes")
    project.preview("--expect-no-changes")

    project.destroy()
    assert project.processes() == {}
    assert not project.home.exists()
