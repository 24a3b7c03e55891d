"""Secrets with an empty passphrase: reported once where the state is one's own, refused where others have it."""

import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from kumulus import toolchain
from tests.support import postgres
from tests.support.project import Project, node_group

pytestmark = pytest.mark.e2e
TOLD = "the passphrase is empty"
CLUSTER: dict[str, Any] = {"nodeGroups": [node_group("cpu", 1)]}
WITH_TENANTS = {**CLUSTER, "tenants": [{"name": "research"}]}


@pytest.fixture(scope="module")
def database() -> Iterator[str]:
    with postgres.running() as url:
        yield url


def change_passphrase(project: Project, new: str, **variables: str) -> None:
    """Go over to another passphrase by the command that the message names, answering what it asks."""
    change = ["stack", "change-secrets-provider", "passphrase", "-s", project.stack]
    done = subprocess.run(
        [toolchain.find("pulumi"), *change],
        cwd=project.directory,
        env={**project.environment, **variables},
        input=f"{new}\n{new}\n",
        capture_output=True,
        text=True,
        check=False,
        timeout=120,
    )
    assert done.returncode == 0, done.stdout + done.stderr


def test_on_this_machine_it_is_said_once_and_not_with_a_passphrase(project: Project, tmp_path: Path) -> None:
    up = ("up", "--yes", "--skip-preview")
    project.write_stack(CLUSTER, stack="own")
    first = project.pulumi(*up)
    assert (first.code, TOLD in first.text) == (0, False), first.text

    project.write_stack(WITH_TENANTS)
    assert TOLD not in project.pulumi("preview").text
    told = project.pulumi(*up)
    assert told.code == 0, told.text
    assert told.text.partition("Diagnostics:")[2].count(TOLD) == 1
    assert "own has tenants, whose tokens are secrets, and the passphrase is empty" in told.text
    assert "pulumi stack change-secrets-provider passphrase -s own" in told.text
    again = project.pulumi(*up)
    assert (again.code, TOLD in again.text) == (0, False), again.text

    change_passphrase(project, "of my own")
    file = tmp_path / "passphrase"
    file.write_text("of my own\n")
    del project.environment["PULUMI_CONFIG_PASSPHRASE"]
    project.environment["PULUMI_CONFIG_PASSPHRASE_FILE"] = str(file)
    after = project.pulumi(*up)
    assert (after.code, TOLD in after.text) == (0, False), after.text


def test_a_shared_backend_is_refused_in_the_preview_until_there_is_a_passphrase(
    project: Project, database: str
) -> None:
    shared: dict[str, Any] = {"PULUMI_BACKEND_URL": database}
    project.write_stack(WITH_TENANTS, stack="shared")
    for command in (("preview",), ("up", "--yes", "--skip-preview")):
        refused = project.pulumi(*command, **shared)
        assert refused.code != 0
        assert "shared has tenants, whose tokens are secrets, its state is in postgres://" in refused.text
        assert "only-for-this-test" not in refused.text, "the database's password"
        assert "Traceback" not in refused.text
    assert project.processes() == {}, "nothing was made"

    change_passphrase(project, "of our own", **shared)
    seen = project.pulumi("preview", **shared, PULUMI_CONFIG_PASSPHRASE="of our own")
    assert seen.code == 0, seen.text
    # Without secrets nothing is asked of anybody.
    project.write_stack(CLUSTER, stack="plain")
    assert project.pulumi("preview", **shared).code == 0
