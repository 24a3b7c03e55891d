"""A platform stack's cluster, shared with a team's own stack of another project by a StackReference."""

import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from kumulus.cli.beforehand import require_no_tenants
from kumulus.cli.errors import UserError
from tests.support.project import ROOT, Project

pytestmark = pytest.mark.e2e

TEAM = ROOT / "examples" / "team-on-platform"
JOBS, PODS = "/apis/batch/v1/namespaces/{}/jobs", "/api/v1/namespaces/{}/pods"


@pytest.fixture
def platform(tmp_path: Path) -> Iterator[Project]:
    made = Project(tmp_path / "platform")
    made.copy_stack("platform")
    yield made
    made.close()


@pytest.fixture
def team(tmp_path: Path) -> Iterator[Project]:
    made = Project(tmp_path / "team", TEAM)
    yield made
    made.close()


def test_a_teams_stack_uses_the_platforms_cluster_with_what_it_was_given(platform: Project, team: Project) -> None:
    state = platform.directory.parent / "shared"
    state.mkdir()
    # For its Job, which is no object of ours.
    team.install_plugins()
    for project in (platform, team):
        project.environment["PULUMI_BACKEND_URL"] = f"file://{state}"

    team.write_stack(stack="search")
    missing = team.pulumi("config", "set", "tenant", "search")
    assert missing.code == 0, missing.text
    early = team.pulumi("preview")
    assert early.code != 0
    assert "organization/kumulus/platform" in early.text, "which stack is not there"

    platform.up()
    team.up()
    api = platform.api()
    [job] = [job["metadata"]["name"] for job in api.list(JOBS.format("search"))]
    api.until(
        PODS.format("search"),
        lambda pods: [pod["status"].get("phase") for pod in pods.values()] == ["Running"],
        timeout=60,
    )
    assert json.loads(team.pulumi("stack", "output", "--json").stdout) == {"job": job}
    team.preview("--expect-no-changes")
    tokens = [line for line in _kubeconfig(platform).splitlines() if "token:" in line]
    assert tokens
    for file in state.rglob("*.json*"):
        assert tokens[0].split()[1] not in file.read_text(errors="replace"), file

    # Past the quota, the Job is made and its pods are not.
    team.pulumi("config", "set", "gpus", "32")
    team.up()
    assert len(api.list(PODS.format("search"))) <= 2
    [again] = [job["metadata"]["name"] for job in api.list(JOBS.format("search"))]
    with pytest.raises(UserError, match=f"  search: Job {again}\n  First, in each team's project: pulumi destroy"):
        require_no_tenants("platform", platform.kubeconfig())
    team.destroy()
    # Its own pods go first, which the example does not wait for.
    api.until(JOBS.format("search"), lambda jobs: not jobs, timeout=60)
    require_no_tenants("platform", platform.kubeconfig())

    # The way out for a team whose platform went all the same.
    team.up()
    platform.destroy()
    assert platform.processes() == {}
    assert team.pulumi("destroy", "--yes", "--skip-preview").code != 0
    left = team.pulumi("destroy", "--yes", "--skip-preview", PULUMI_K8S_DELETE_UNREACHABLE="true")
    assert left.code == 0, left.text


def _kubeconfig(platform: Project) -> str:
    result = platform.pulumi("stack", "output", "tenants", "--show-secrets", "--json")
    assert result.code == 0, result.text
    return result.stdout.replace("\\n", "\n")
