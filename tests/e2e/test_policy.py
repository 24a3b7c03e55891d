"""The policy pack, run by the real engine: what it says in a preview, and what it keeps from being made."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import psutil
import pytest

from kumulus.extras.policy import command as policy
from kumulus.toolchain import venv
from tests.support.project import NODES, ROOT, Project, Result

pytestmark = pytest.mark.e2e

PACK = ROOT / "src" / "kumulus" / "extras" / "policy"
CHART = {"name": "local", "namespace": "tools", "chart": "./chart"}


@pytest.fixture(scope="module", autouse=True)
def _its_own_environment() -> None:
    venv.ensure_policies(PACK)


@pytest.fixture(scope="module")
def limited(module_project: Project) -> Project:
    module_project.install_plugins()
    module_project.copy_stack("quickstart")
    return module_project


@pytest.fixture(autouse=True)
def _nothing_of_a_pack_stays_behind() -> Iterator[None]:
    yield
    packs = [each for each in psutil.process_iter() if _runs_pack(each)]
    _, alive = psutil.wait_procs(packs, timeout=30)
    assert not alive


def _runs_pack(process: psutil.Process) -> bool:
    try:
        return "pulumi.policy" in process.cmdline() and str(PACK) in process.cmdline()
    except psutil.Error:
        return False


def under(project: Project, config: dict[str, Any] | None, *command: str) -> Result:
    """Run a command with the pack, and a configuration of it."""
    arguments = ["--policy-pack", str(PACK)]
    if config is not None:
        file = project.directory / "limits.json"
        file.write_text(json.dumps(config))
        arguments += ["--policy-pack-config", str(file)]
    result = project.pulumi(*command, *arguments)
    assert "Traceback" not in result.text
    return result


def test_a_stack_within_its_limits_passes(limited: Project) -> None:
    result = under(
        limited, {"node-limit": {"most": 30}, "gpu-limit": {"most": 0, "stacks": {"quick*": 240}}}, "preview"
    )
    assert result.code == 0, result.text
    assert "kumulus-limits" in result.text
    assert "would have" not in result.text
    assert under(limited, None, "preview").code == 0, "the pack has limits of its own, which are larger"


def test_what_is_past_a_limit_is_named_with_its_pool_and_its_remedy(limited: Project) -> None:
    config = {"node-limit": {"most": 29}, "gpu-limit": {"most": 8_000, "stacks": {"quickstart": 232}}}
    result = under(limited, config, "preview")
    assert result.code != 0
    assert "node-limit" in result.text
    assert "quickstart would have 30 nodes with the " in result.text
    assert "and may have 29: lower replicas in its nodeGroups, or have the limit raised" in result.text
    assert "quickstart would have 240 GPUs with the " in result.text


def test_a_limit_can_be_a_warning(limited: Project) -> None:
    result = under(limited, {"node-limit": {"most": 10, "enforcementLevel": "advisory"}}, "preview")
    assert result.code == 0, result.text
    assert "and may have 10" in result.text


def test_a_configuration_that_cannot_be_right_is_refused(limited: Project) -> None:
    result = under(limited, {"node-limit": {"most": "many"}}, "preview")
    assert result.code != 0
    assert "most" in result.text
    assert "integer" in result.text


def test_charts_from_elsewhere_are_refused(limited: Project) -> None:
    chart = limited.directory / "chart"
    (chart / "templates").mkdir(parents=True)
    (chart / "Chart.yaml").write_text("apiVersion: v2\nname: local\nversion: 0.1.0\n")
    limited.write_stack({"clusterAddons": [CHART]})
    result = under(
        limited, {"addon-repositories": {"allowed": ["https://charts.example.com"], "local": False}}, "preview"
    )
    assert result.code != 0
    assert "addon-repositories" in result.text
    assert f"its chart is the local path {chart}, and allowed are https://charts.example.com" in result.text
    assert under(limited, {"addon-repositories": {"allowed": []}}, "preview").code == 0


def test_an_update_ends_before_there_are_nodes_past_the_limit(limited: Project) -> None:
    limited.copy_stack("quickstart")
    result = under(limited, {"node-limit": {"most": 12}}, "up", "--yes", "--skip-preview")
    assert result.code != 0
    assert "and may have 12" in result.text
    assert len(limited.api().metadata(NODES)) <= 12
    assert under(limited, {"node-limit": {"most": 30}}, "up", "--yes", "--skip-preview").code == 0
    assert len(limited.api().metadata(NODES)) == 30
    limited.destroy()
    assert limited.processes() == {}


def test_a_copy_of_the_pack_works_by_itself(limited: Project, tmp_path: Path) -> None:
    pack = tmp_path / "team-policy"
    policy.write(pack)
    (pack / ".venv").symlink_to(PACK / ".venv")
    limits = {"node-limit": {"most": 29}}
    (pack / "limits.json").write_text(json.dumps(limits))
    policy.write(pack)
    assert json.loads((pack / "limits.json").read_text()) == limits
    arguments = ["--policy-pack", str(pack), "--policy-pack-config", str(pack / "limits.json")]
    result = limited.pulumi("preview", *arguments)
    assert result.code != 0
    assert "and may have 29" in result.text, result.text
