"""What is said before pulumi changes a stack: its file, its name, who else works on it, what is up beside it."""

import json
import os
from pathlib import Path
from typing import Any

import pytest
import yaml

from kumulus.cli import beforehand, stack_file
from kumulus.cli.beforehand import require_no_tenants, tenants_refusal
from kumulus.cli.errors import UserError
from tests.unit.cli.test_backend import TAKEN, lock

SALT = "encryptionsalt: v1:a=:v1:b=:c==\n"
OURS = "from kumulus import program\n\nprogram.run()\n"


@pytest.fixture
def fleet(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A project with a backend of files, which the test is in."""
    (tmp_path / "stacks").mkdir()
    (tmp_path / "state").mkdir()
    settings = {"name": "fleet", "runtime": "python", "stackConfigDir": "stacks", "backend": {"url": "file://./state"}}
    (tmp_path / "Pulumi.yaml").write_text(yaml.safe_dump(settings))
    for variable in ("PULUMI_BACKEND_URL", "KUMULUS_HOME", "PULUMI_STACK"):
        monkeypatch.delenv(variable, raising=False)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("PWD", str(tmp_path))
    return tmp_path


def write(fleet: Path, text: str, stack: str = "dev") -> Path:
    file = fleet / "stacks" / f"Pulumi.{stack}.yaml"
    file.write_text(text)
    return file


def up(fleet: Path, stack: str) -> Path:
    """Have the backend know a stack with a cluster."""
    cluster = fleet / ".kumulus" / "clusters" / stack
    cluster.mkdir(parents=True)
    resources = [{"type": "kumulus:index:Cluster", "outputs": {"directory": str(cluster)}}]
    folder = fleet / "state" / ".pulumi" / "stacks" / "fleet"
    folder.mkdir(parents=True, exist_ok=True)
    (folder / f"{stack}.json").write_text(json.dumps({"checkpoint": {"latest": {"resources": resources}}}))
    return cluster


def refused(check: Any, *arguments: Any) -> str:
    with pytest.raises(UserError) as caught:
        check(*arguments)
    return str(caught.value)


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("config:\n\tkumulus:cluster: {}\n", "line 2, column 1: there is a tab; indent with spaces"),
        ("config:\n  kumulus:cluster:\n    name: a\n  faults:\n - {}\n", "line 5"),
        ("config: [}\n", "line 1, column 10"),
    ],
)
def test_a_file_that_is_no_yaml_is_told_with_its_name_and_the_line(fleet: Path, text: str, said: str) -> None:
    write(fleet, text)
    told = refused(beforehand.check_stack, "dev")
    assert told.startswith("1 problem in stacks/Pulumi.dev.yaml\n")
    assert said in told


@pytest.mark.parametrize("name", ["Ärger", "a b", "a/b", "x" * 101])
def test_a_name_that_pulumi_does_not_take_is_shown_as_it_is_written(fleet: Path, name: str) -> None:
    told = refused(beforehand.check_stack, name)
    assert told.startswith(f"{name!r} cannot be a stack's name")
    assert told.endswith(f"\n  Rename stacks/Pulumi.{name}.yaml")


def test_two_at_once_are_refused_without_the_advice_to_take_the_lock_away(fleet: Path) -> None:
    lock(fleet / "state")
    said = refused(beforehand.check_unlocked, "dev")
    assert said.startswith(f"dev is being worked on by pid {os.getpid()} (kim, since {TAKEN[11:19]})\n")
    beforehand.check_unlocked("prod")


def test_a_state_that_pulumi_was_killed_at_is_told_with_what_to_remove(fleet: Path) -> None:
    write(fleet, "config: {}\n")
    up(fleet, "old")
    cut = fleet / "state" / ".pulumi" / "stacks" / "fleet" / "old.json.attrs"
    cut.touch()
    said, file = refused(beforehand.check_stack, "dev"), "state/.pulumi/stacks/fleet/old.json.attrs"
    assert said.startswith(f"pulumi was killed while it wrote {file}, and reads no stack")
    assert said.endswith(f": rm {file}")
    cut.unlink()
    beforehand.check_stack("dev")


def test_a_stack_file_that_was_renamed_is_noticed_and_both_are_named(
    fleet: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    write(fleet, "config: {}\n", "prod")
    write(fleet, "config: {}\n", "other")
    up(fleet, "old")
    up(fleet, "other")
    beforehand.note_other_names("prod")
    assert capsys.readouterr().err == (
        "note: old has a cluster in .kumulus/clusters/old, and no stacks/Pulumi.old.yaml any more; prod gets another\n"
        "  Where stacks/Pulumi.prod.yaml is the same file, renamed: name it stacks/Pulumi.old.yaml again, "
        "or take old down\n"
    )


def test_a_file_with_only_a_salt_goes_where_there_was_none(fleet: Path) -> None:
    beforehand.without_salt_only(fleet / "stacks" / "Pulumi.dev.yaml", there_before=False)
    file = write(fleet, SALT)
    beforehand.without_salt_only(file, there_before=True)
    assert file.exists()
    beforehand.without_salt_only(file, there_before=False)
    assert not file.exists()
    file = write(fleet, f"config: {{}}\n{SALT}")
    beforehand.without_salt_only(file, there_before=False)
    assert file.exists()


def test_outputs_of_many_groups_are_left_to_be_asked_for(fleet: Path, capsys: pytest.CaptureFixture[str]) -> None:
    def groups(count: int) -> str:
        node = {"capacity": {"cpu": "4", "memory": "1Gi", "pods": "9"}}
        rest = {"placement": [{"availabilityZone": "a", "replicas": 1}], "nodeTemplate": node}
        cluster = {"nodeGroups": [{"name": f"g{n}", **rest} for n in range(count)]}
        return yaml.safe_dump({"config": {"kumulus:cluster": cluster}})

    write(fleet, groups(20))
    assert beforehand.quieting_options("dev", []) == []
    write(fleet, groups(21))
    assert beforehand.quieting_options("dev", ["--refresh"]) == ["--suppress-outputs"]
    assert capsys.readouterr().out == ("dev has 21 node groups: to see its outputs, pulumi stack output -s dev\n")
    assert beforehand.quieting_options("dev", ["--suppress-outputs=false"]) == []


def test_only_a_cluster_with_tenants_is_asked_before_it_goes(fleet: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[str] = []
    monkeypatch.setattr(beforehand, "require_no_tenants", lambda stack, kubeconfig: asked.append(stack))
    (up(fleet, "dev") / "kubeconfig.yaml").touch()
    write(fleet, "config: {'kumulus:cluster': {nodeGroups: []}}\n")
    beforehand.check_tenants("dev", False)
    assert asked == []
    file = write(fleet, "config: {'kumulus:cluster': {tenants: [{name: research}]}}\n")
    beforehand.check_tenants("dev", True)
    assert asked == []
    beforehand.check_tenants("dev", False)
    # Nobody knows what a stack without a file has.
    file.unlink()
    beforehand.check_tenants("dev", False)
    assert asked == ["dev", "dev"]


@pytest.mark.parametrize("config", ["{}", "{'kumulus:cluster': {secure: v1:x}}"])
def test_a_cluster_whose_tenants_no_file_names_is_asked_before_it_goes(
    fleet: Path, monkeypatch: pytest.MonkeyPatch, config: str
) -> None:
    asked: list[str] = []
    monkeypatch.setattr(beforehand, "require_no_tenants", lambda stack, kubeconfig: asked.append(stack))
    (up(fleet, "dev") / "kubeconfig.yaml").touch()
    # A program of the user's own may declare a Tenant.
    (fleet / "__main__.py").write_text("import kumulus\n")
    write(fleet, f"config: {config}\n")
    beforehand.check_tenants("dev", False)
    assert asked == ["dev"]


def test_a_cluster_that_is_not_below_config_is_told_so(fleet: Path) -> None:
    write(fleet, "kumulus:cluster: {nodeGroups: []}\n")
    said = "kumulus:cluster is not below config:, where Pulumi reads it\n  Indent it below config:"
    assert refused(beforehand.checked_needs, "dev") == f"stacks/Pulumi.dev.yaml: {said}"


def test_a_file_that_is_no_text_is_called_so(fleet: Path) -> None:
    write(fleet, "").write_bytes(b"\xff\xfe")
    assert refused(stack_file.load, "dev") == "stacks/Pulumi.dev.yaml is not a text in UTF-8\n  Save it as one"


@pytest.mark.parametrize("text", ["", SALT, "config: {cluster: {nodeGroups: []}}\n", "nodeGroups: []\n"])
def test_a_file_that_declares_no_cluster_is_refused_before_any_tool_is_fetched(fleet: Path, text: str) -> None:
    (fleet / "__main__.py").write_text(OURS)
    write(fleet, text)
    told = refused(beforehand.checked_needs, "dev")
    assert told.startswith("1 problem in stacks/Pulumi.dev.yaml\n  cluster: is missing; write kumulus:cluster")


@pytest.mark.parametrize(
    ("program", "config"), [("import kumulus\n", "{}"), (OURS, "{'kumulus:cluster': {secure: v1:abc}}")]
)
def test_the_file_of_a_users_own_program_or_of_a_secret_cluster_need_not_show_one(
    fleet: Path, program: str, config: str
) -> None:
    (fleet / "__main__.py").write_text(program)
    write(fleet, f"config: {config}\n")
    assert "pulumi" in beforehand.checked_needs("dev").tools


@pytest.mark.parametrize(
    ("existing", "said"),
    [
        ("{kubeconfig: nowhere}", "existing.kubeconfig: kubeconfig"),
        ("{kubeconfig: config, context: other}", "existing.context: "),
        ("{kubeconfig: {secure: v1:abc}}", ""),
        ("{kubeconfig: config}", ""),
    ],
)
def test_a_kubeconfig_that_is_not_there_is_refused_before_any_tool_is_fetched(
    fleet: Path, monkeypatch: pytest.MonkeyPatch, existing: str, said: str
) -> None:
    monkeypatch.setenv("KUBECONFIG", str(fleet / "none"))
    (fleet / "config").write_text(
        "contexts: [{name: a, context: {cluster: c}}]\nclusters: [{name: c, cluster: {server: 'https://x.example'}}]\n"
        "current-context: a\n"
    )
    write(fleet, f"config: {{'kumulus:cluster': {{runtime: existing, existing: {existing}}}}}\n")
    if not said:
        assert "helm" in beforehand.checked_needs("dev").tools
        return
    told = refused(beforehand.checked_needs, "dev")
    assert told.startswith(f"1 problem in stacks/Pulumi.dev.yaml\n  {said}")


@pytest.mark.parametrize("runtime", ["nodejs", "{name: go}", "yaml", "dotnet"])
def test_a_language_that_nothing_here_runs_is_told_with_what_gets_it(
    fleet: Path, monkeypatch: pytest.MonkeyPatch, runtime: str
) -> None:
    home, folder = fleet / "home", fleet / "bin"
    folder.mkdir()
    for name, value in {"PATH": folder, "PULUMI_HOME": home, "XDG_CACHE_HOME": fleet / "cache"}.items():
        monkeypatch.setenv(name, str(value))
    (fleet / "Pulumi.yaml").write_text(f"name: x\nruntime: {runtime}\nstackConfigDir: stacks\n")
    write(fleet, "config: {}\n")
    checks = beforehand.checked_needs, beforehand.check_stack
    # A pulumi that is downloaded brings the hosts; so before that nothing is known.
    monkeypatch.setenv("KUMULUS_TOOLS", "auto")
    beforehand.checked_needs("dev")
    monkeypatch.setenv("KUMULUS_TOOLS", "build")
    for check in () if runtime == "dotnet" else checks:
        said = refused(check, "dev")
        assert said.endswith("kumulus tools --with languages")
        host = folder / said.partition("its host ")[2].split()[0]
        assert host.name in ("pulumi-language-nodejs", "pulumi-language-go", "pulumi-language-yaml")
        host.touch(0o755)
        check("dev")
        host.unlink()
    (home / "plugins" / f"language-{runtime.strip('{}').split()[-1]}-v1.0.0").mkdir(parents=True)
    for check in checks:
        check("dev")


def test_what_the_teams_have_is_named_with_both_ways_on() -> None:
    said = tenants_refusal("platform", {"research": [f"Job j{n}" for n in range(5)], "search": ["Service web"]})
    assert said.splitlines() == [
        "platform is shared, and other stacks have something in it: their own destroy needs this cluster",
        "  research: Job j0, Job j1, Job j2 and 2 more",
        "  search: Service web",
        "  First, in each team's project: pulumi destroy",
        "  To take platform down all the same: add --with-tenants; the teams then write",
        "  PULUMI_K8S_DELETE_UNREACHABLE=true pulumi destroy",
    ]


def test_a_cluster_that_cannot_be_asked_keeps_nobody_from_taking_it_down(tmp_path: Path) -> None:
    require_no_tenants("platform", tmp_path / "nowhere.yaml")
