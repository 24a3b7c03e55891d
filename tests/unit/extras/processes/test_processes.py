"""What a container's process is to be, by its pod; and what a stack's processes mean for a control plane."""

import asyncio
import socket
from pathlib import Path
from typing import Any

import pytest

from kumulus.extras.processes import containers, egress
from kumulus.extras.processes.addition import ADDITION
from kumulus.extras.processes.containers import Missing
from kumulus.host.ports import Claims
from kumulus.model.errors import SpecError
from kumulus.nodes.errors import ProviderError
from kumulus.runtimes.kwok.layout import Layout
from kumulus.runtimes.kwok.section import KwokOptions
from kumulus.runtimes.section import option_problems
from kumulus.stackfile.model import ClusterSpec

IMAGE = "example.com:5000/team/tool"
PROGRAMS = {IMAGE: "/bin/sh"}
METADATA = {"name": "p", "namespace": "n", "uid": "u", "labels": {"app": "web"}}


def pod(**spec: Any) -> dict[str, Any]:
    return {"metadata": METADATA, "spec": {"containers": [{"name": "c", "image": IMAGE}], **spec}}


@pytest.mark.parametrize("image", [IMAGE, f"{IMAGE}:v1", f"{IMAGE}@sha256:0", f"{IMAGE}:v1@sha256:0"])
def test_an_image_is_known_by_its_name_without_tag_and_digest(image: str) -> None:
    assert containers.repository(image) == IMAGE


@pytest.mark.parametrize(
    ("spec", "said"),
    [
        ({"containers": [{"name": "c", "image": f"{IMAGE}s"}]}, "do not name the image example.com:5000/team/tools"),
        ({"initContainers": [{"name": "i", "image": "other"}]}, "do not name the image other"),
        ({"initContainers": [{"name": "i", "image": IMAGE, "restartPolicy": "Always"}]}, "init containers that go on"),
        ({"hostPID": True}, "leave hostNetwork and the like out"),
        ({"volumes": [{"name": "v", "persistentVolumeClaim": {}}]}, "volume v: persistentVolumeClaim is no volume"),
        (
            {"containers": [{"name": "c", "image": IMAGE, "livenessProbe": {"grpc": {}}}]},
            "livenessProbe of container c",
        ),
    ],
)
def test_what_a_process_cannot_have_is_refused_by_name(spec: dict[str, Any], said: str) -> None:
    containers.require(pod(), PROGRAMS)
    with pytest.raises(Missing, match=said):
        containers.require(pod(**spec), PROGRAMS)


def test_arguments_have_the_values_of_variables_and_the_first_word_is_where_the_program_is() -> None:
    container = {"name": "c", "command": ["/manager", "$(A)"], "args": ["$(B)", "$$(A)", "$(NONE)"]}
    assert containers.command(container, {"A": "1", "B": "2"}) == ["/manager", "1", "2", "$(A)", "$(NONE)"]
    assert containers.command({"name": "c", "command": ["sh"]}, {}) == ["/programs/c"]


def test_a_relative_mount_path_is_below_the_root_and_none_is_outside_of_it() -> None:
    paths = {"etc/conf": "/etc/conf", "../../../x": "/x", "/a/../../b/": "/b", "/srv": "/srv"}
    container = {"name": "c", "volumeMounts": [{"name": "v", "mountPath": path} for path in paths]}
    found = containers.mounts(container, "/bin/sh", "/programs/../../c", "/volumes")
    assert [there for _, there, _ in found] == ["/c", *paths.values()]


def test_variables_come_from_fields_of_the_pod_and_from_what_it_refers_to() -> None:
    kept = {("configMap", "m"): {"k": "v"}, ("secret", "s"): {"x": "y"}}
    container = {
        "envFrom": [{"configMapRef": {"name": "m"}, "prefix": "P_"}],
        "env": [
            {"name": "LABEL", "valueFrom": {"fieldRef": {"fieldPath": "metadata.labels['app']"}}},
            {"name": "SECRET", "valueFrom": {"secretKeyRef": {"name": "s", "key": "x"}}},
            {"name": "NONE", "valueFrom": {"secretKeyRef": {"name": "s", "key": "none", "optional": True}}},
            {"name": "BOTH", "value": "$(P_k)-$(SECRET)"},
        ],
    }
    found = containers.environment(
        pod(), container, "10.1.0.2", 6443, lambda kind, reference: kept[kind, reference["name"]]
    )
    assert {key: found[key] for key in ("P_k", "LABEL", "SECRET", "BOTH", "KUBERNETES_SERVICE_PORT")} == {
        "P_k": "v",
        "LABEL": "web",
        "SECRET": "y",
        "BOTH": "v-y",
        "KUBERNETES_SERVICE_PORT": "6443",
    }
    assert "NONE" not in found
    unknown = {"env": [{"name": "CPU", "valueFrom": {"resourceFieldRef": {}}}]}
    with pytest.raises(Missing, match="resourceFieldRef is not known here"):
        containers.environment(pod(), unknown, "", 0, lambda *_: {})


def test_a_stacks_programs_are_relative_to_its_project_and_tools_are_named() -> None:
    spec = ClusterSpec.checked({"kwok": {"processes": {"a/b": "./bin/x", "c": "kueue"}}})
    assert spec.kwok.options(Path("/project"))["processes"] == {"a/b": "/project/bin/x", "c": "kueue"}
    with pytest.raises(SpecError):
        ClusterSpec.checked({"kwok": {"processes": {"a/b:v1": "x"}}})
    assert option_problems(KwokOptions, {"processes": {"a b": "x"}})


def test_the_api_server_gets_the_way_to_the_pods_and_loses_it_again(tmp_path: Path) -> None:
    layout = Layout(tmp_path / "home" / "clusters" / "c")
    (layout.directory / "bin").mkdir(parents=True)
    before = {"components": [{"name": "kube-apiserver", "args": ["--a=b"]}, {"name": "etcd"}]}
    asked = {"processes": {IMAGE: "/bin/sh"}}
    with Claims() as claims:
        made = ADDITION.configured(before, layout, asked, claims)
        assert [each["name"] for each in made["components"]] == ["kube-apiserver", "etcd", "local-node"]
        file = layout.directory / "local" / "egress.json"
        assert made["components"][0]["args"] == ["--a=b", f"--egress-selector-config-file={file}"]
        assert ADDITION.configured(made, layout, asked, claims) == made
        assert ADDITION.configured(made, layout, {}, claims) == before
    assert set(ADDITION.fingerprints(asked)) == {"kube-apiserver", "kube-controller-manager", "local-node"}
    assert ADDITION.fingerprints({}) == {}


def test_a_preview_says_which_images_run_here_and_that_the_api_server_is_restarted() -> None:
    runs = f"processes: pods of {IMAGE} run on this machine, as you, in namespaces of their own"
    asked, other = {"processes": {IMAGE: "x"}}, {"processes": {IMAGE: "y"}}
    assert ADDITION.announced(asked) == [runs]
    assert ADDITION.described({}, asked) == [runs, "processes: the API server is restarted"]
    assert ADDITION.described(asked, other) == [runs]
    assert ADDITION.described(asked, asked) == []
    assert "those that follow them are emulated" in ADDITION.described(asked, {})[0]


@pytest.mark.parametrize(
    ("program", "said"),
    [("/nowhere/x", "/nowhere/x is not an executable file"), ("no-such-tool", "kwok.processes: .*no-such-tool")],
)
def test_a_program_that_is_not_there_is_named(tmp_path: Path, program: str, said: str) -> None:
    layout = Layout(tmp_path / "c")
    layout.directory.mkdir()
    with pytest.raises(ProviderError, match=said):
        ADDITION.write(layout, {"processes": {IMAGE: program}})


async def test_a_log_that_is_followed_has_each_line_once_also_after_it_was_emptied(tmp_path: Path) -> None:
    log = tmp_path / "main.log"
    log.write_bytes(b"sent already, and more\n")
    ours, theirs = socket.socketpair()
    reader, other = await asyncio.open_connection(sock=ours)
    _, writer = await asyncio.open_connection(sock=theirs)
    following = asyncio.create_task(egress.followed(log, len(b"sent already, "), writer))
    assert await asyncio.wait_for(reader.readline(), 10) == b"and more\n"
    log.write_bytes(b"")
    with log.open("ab") as appended:
        appended.write(b"then\n")
    assert await asyncio.wait_for(reader.readline(), 10) == b"then\n"
    log.unlink()
    await asyncio.wait_for(following, 10)
    for each in (writer, other):
        each.close()
    assert await reader.read() == b""
