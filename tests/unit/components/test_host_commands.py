"""Host commands and images under Pulumi's mocks: what is declared, in which order, and what is kept secret."""

import sys
from pathlib import Path
from typing import Any

import pulumi
import pytest

from kumulus import EmulatedCluster
from kumulus.components.engine import require_kubernetes_plugin
from kumulus.components.host_commands import digest_of_archive, digest_of_image, image_load
from kumulus.components.kwok_cluster import KwokCluster
from kumulus.host import installation
from kumulus.stackfile.load import load
from kumulus.stackfile.secrets import Secrets
from kumulus.toolchain.plugins import COMMAND_VERSION
from tests.support.program import CLUSTER, COMMAND, KUBECONFIG, Program, Registered, refused, run
from tests.support.project import ROOT

POOL, RELEASE = "kumulus:index:NodePool", "kubernetes:helm.sh/v3:Release"
GROUPS = [
    {
        "name": "a100",
        "placement": [{"availabilityZone": "use1", "replicas": 1}],
        "nodeTemplate": {"capacity": {"cpu": "8", "memory": "32Gi", "pods": "110"}},
    }
]
ADDON = {"name": "queue", "chart": "oci://example.com/queue"}


def declared(*commands: dict[str, Any], secrets: Secrets | None = None, **cluster: Any) -> Program:
    spec = {"nodeGroups": GROUPS, "clusterAddons": [ADDON], "hostCommands": list(commands), **cluster}
    loaded = load({"cluster": spec}, "dev", ROOT, secrets=secrets)
    return run(lambda: EmulatedCluster("dev", loaded=loaded, base=ROOT))


def command(program: Program, name: str) -> Registered:
    return program.of_type(COMMAND)[name]


@pytest.fixture
def without_plugins(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Where the engine looks for plugins, and fetches none."""
    monkeypatch.setenv("PULUMI_DISABLE_AUTOMATIC_PLUGIN_ACQUISITION", "true")
    monkeypatch.setenv("PULUMI_HOME", str(tmp_path))
    monkeypatch.setenv("PATH", "/nonexistent")
    return tmp_path / "plugins"


def test_a_plugin_that_is_not_there_is_told_before_anything_is_declared(without_plugins: Path) -> None:
    loaded = load({"cluster": {"hostCommands": [{"name": "a", "create": "c"}]}}, "dev", ROOT)

    def program() -> None:
        EmulatedCluster("dev", loaded=loaded, base=ROOT)

    assert refused(program).splitlines() == [
        f"hostCommands and loadImages are run by Pulumi's plugin command, which is not in {without_plugins}",
        f"  To get it: pulumi plugin install resource command {COMMAND_VERSION}",
        f"  From a machine that can fetch it: pulumi plugin install resource command {COMMAND_VERSION} --file ARCHIVE",
    ]
    (without_plugins / "resource-command-v9.9.9").mkdir(parents=True)
    interrupted = without_plugins / "resource-command-v9.9.9.partial"
    interrupted.touch()
    assert "is not in" in refused(program)
    interrupted.unlink()
    assert run(program).of_type(COMMAND)


def test_where_the_plugin_for_charts_is_missing_the_way_to_get_it_is_said(
    without_plugins: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with pytest.raises(
        pulumi.RunError, match=r"tools --with pulumi-resource-kubernetes  \(where .* eleven CPU minutes\)$"
    ):
        require_kubernetes_plugin()
    (without_plugins / "resource-kubernetes-v9.9.9").mkdir(parents=True)
    require_kubernetes_plugin()
    monkeypatch.setenv("PULUMI_HOME", "/nonexistent")
    monkeypatch.setenv("PULUMI_DISABLE_AUTOMATIC_PLUGIN_ACQUISITION", "false")
    require_kubernetes_plugin()


def test_a_command_is_declared_as_it_is_written() -> None:
    made = command(
        declared(
            {"name": "a", "create": "c", "update": "u", "delete": "d", "triggers": [1], "environment": {"T": "x"}}
        ),
        "a",
    )
    assert made.inputs == {
        "create": "c",
        "update": "u",
        "delete": "d",
        # Another cluster means that it runs again.
        "triggers": [1, "uid-1"],
        "environment": {"KUBECONFIG": KUBECONFIG, "KUMULUS_CLUSTER": "dev", "T": "x"},
    }
    assert made.delete_before_replace
    assert made.replace_on_changes == ["triggers[*]"]
    # Its `delete` undoes what it did on this machine, which does not go with the cluster.
    assert made.deleted_with == ""


def test_commands_run_when_they_are_to() -> None:
    program = declared(
        *({"name": when.lower(), "create": "c", "when": when} for when in ("beforeAddons", "beforeNodes", "last"))
    )
    first, second, last = (command(program, name) for name in ("beforeaddons", "beforenodes", "last"))
    control_plane = f"{CLUSTER}::dev-control-plane"
    release, pool = program.only(RELEASE), program.of_type(POOL)["a100-use1"]
    assert all(control_plane in each.depends_on for each in (first, second, last))
    assert f"{COMMAND}::beforeaddons" in release.depends_on
    assert f"{RELEASE}::queue-release" in second.depends_on
    assert f"{COMMAND}::beforenodes" in pool.depends_on
    assert f"{COMMAND}::beforenodes" not in program.of_type(POOL)["system"].depends_on
    assert f"{POOL}::a100-use1" in last.depends_on
    assert f"{RELEASE}::queue-release" in last.depends_on


def test_the_last_commands_come_after_everything_else() -> None:
    selected = {"name": "t", "selector": {"labels": {"app": "t"}}}
    cluster = {
        "tenants": [{"name": "research"}],
        "podLifecycles": [{**selected, "run": "10m"}],
        "hostCommands": [{"name": "end", "create": "c", "when": "last"}],
    }
    loaded = load({"cluster": cluster}, "dev", ROOT)
    program = run(lambda: EmulatedCluster("dev", loaded=loaded, base=ROOT))
    before = command(program, "end").depends_on
    for component in ("Tenant::research", "PodLifecycles::dev-lifecycles"):
        parts = {f"{each.type}::{each.name}" for each in program.resources if each.parent.endswith(component)}
        assert parts
        assert parts <= before


def test_what_is_secret_in_a_command_is_marked_and_its_output_too() -> None:
    secrets = Secrets((("hostCommands", 0, "environment", "TOKEN"),))
    made = command(
        declared({"name": "a", "create": "c", "environment": {"TOKEN": "hunter2", "X": "y"}}, secrets=secrets), "a"
    )
    assert "hunter2" not in str({**made.inputs, "environment": ""})
    assert made.secret_inputs == {"environment"}
    assert made.secret_outputs == {"stdout", "stderr"}
    plain = command(declared({"name": "a", "create": "c", "environment": {"X": "y"}}), "a")
    assert (plain.secret_inputs, plain.secret_outputs) == (set(), set())


# --- images ----------------------------------------------------------------------------------------------------------


def loading(image: str, base: Path) -> Registered:
    def program() -> None:
        image_load(image, "loadImages[0]", cluster=KwokCluster("dev"), base=base)

    return run(program).only(COMMAND)


@pytest.fixture
def engine(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A stand-in for docker: it knows what the file beside it says."""
    script = tmp_path / "bin" / "docker"
    script.parent.mkdir()
    script.write_text('#!/bin/sh\ncat "${0%/*}/id" 2>/dev/null || { echo "Error: No such image: $5" >&2; exit 1; }\n')
    script.chmod(0o755)
    monkeypatch.setenv("PATH", f"{script.parent}:/usr/bin:/bin")
    monkeypatch.delenv("KIND_EXPERIMENTAL_PROVIDER", raising=False)
    return script.parent / "id"


def test_an_image_is_loaded_without_a_shell_and_anew_when_it_is_another(engine: Path, tmp_path: Path) -> None:
    engine.write_text("sha256:1\n")
    made = loading("my-app:dev", tmp_path)
    assert made.name == "load-my-app-dev"
    assert made.inputs == {
        "interpreter": [str(ROOT / "kumulus"), "kind", "load", "docker-image", "--name", "dev"],
        "create": "my-app:dev",
        "triggers": ["sha256:1", "uid-1"],
    }
    assert made.deleted_with == "kumulus:index:Lifetime::dev-lifetime"
    engine.write_text("sha256:2\n")
    assert loading("my-app:dev", tmp_path).inputs["triggers"] == ["sha256:2", "uid-1"]


def test_an_installed_kumulus_loads_images_by_the_command_beside_its_python(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(installation, "checkout", lambda: None)
    (tmp_path / "app.tar").write_text("one")
    [command, *_] = loading("./app.tar", tmp_path).inputs["interpreter"]
    assert command == str(Path(sys.executable).parent / "kumulus")


def test_an_archive_is_loaded_anew_when_its_content_is_another(tmp_path: Path) -> None:
    (tmp_path / "app.tar").write_text("one")
    made = loading("./app.tar", tmp_path)
    assert made.inputs["interpreter"][2:4] == ["load", "image-archive"]
    assert made.inputs["create"] == str(tmp_path / "app.tar")
    (tmp_path / "app.tar").write_text("two")
    assert loading("./app.tar", tmp_path).inputs["triggers"] != made.inputs["triggers"]


async def test_an_archive_that_no_command_has_written_is_told_as_one_that_is_missing(tmp_path: Path) -> None:
    words = r"loadImages\[0\]: the archive .*app\.tar. is not there; write the path of what `docker save` has written"
    with pytest.raises(pulumi.RunError, match=words):
        await digest_of_archive("app.tar", "loadImages[0]", tmp_path)


@pytest.mark.usefixtures("engine")
async def test_an_image_that_is_not_there_is_told_with_what_to_do() -> None:
    with pytest.raises(pulumi.RunError, match=r"loadImages\[0\]: docker has no image my-app:dev; run docker pull"):
        await digest_of_image("my-app:dev", "loadImages[0]")


async def test_a_machine_without_docker_is_told_so(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(pulumi.RunError, match=r"loadImages\[0\]: docker is not on PATH"):
        await digest_of_image("my-app:dev", "loadImages[0]")
