"""kwokctl's saved configuration, when kwok-controller is to read stages as objects, or from its file again."""

import copy
from pathlib import Path
from typing import Any

import pytest

from kumulus.extras.journal import outages
from kumulus.nodes.errors import ProviderError
from kumulus.runtimes.kwok import configuration, objects
from kumulus.runtimes.kwok.layout import Layout
from kumulus.runtimes.kwok.moving import moved
from tests.support.apiserver import ok, serving

SETTINGS: dict[str, Any] = {
    "kind": "KwokctlConfiguration",
    "options": {"runtime": "binary", "kwokControllerPort": 1},
    "components": [
        {"name": "etcd", "args": ["--enable-crds=not-mine"]},
        {"name": "kwok-controller", "args": ["--config=kwok.yaml", "--enable-crds=Metric"]},
    ],
}


def test_kinds_are_given_to_the_controller_alone_and_defined_once() -> None:
    before = copy.deepcopy(SETTINGS)
    settings = objects.with_kinds(SETTINGS, ["Stage", "Metric"], ["Stage"])
    assert settings["components"] == [
        {"name": "etcd", "args": ["--enable-crds=not-mine"]},
        {"name": "kwok-controller", "args": ["--config=kwok.yaml", "--enable-crds=Stage,Metric"]},
    ]
    assert settings["options"] == {**SETTINGS["options"], "enableCRDs": ["Stage"]}
    assert objects.to_define(settings) == ["Stage"]
    assert not objects.to_define(objects.defined(settings))
    assert before == SETTINGS
    plain = objects.with_kinds(settings, [], [])
    assert plain["options"] == SETTINGS["options"]
    assert plain["components"][1]["args"] == ["--config=kwok.yaml"]


@pytest.mark.parametrize(
    "options", [{}, {"stageObjects": True}, {"observability": {}}, {"podUsage": "pods", "stageObjects": True}]
)
@pytest.mark.parametrize("defined", [False, True])
def test_a_control_plane_that_is_started_again_reads_as_objects_what_it_read_before(
    tmp_path: Path, options: dict[str, Any], defined: bool
) -> None:
    kinds = configuration.custom_resources(options)
    settings = objects.with_kinds(SETTINGS, kinds, kinds)
    layout = Layout.of(str(tmp_path), "dev")
    layout.directory.mkdir(parents=True)
    layout.write_documents([objects.defined(settings) if defined else settings])
    assert configuration.custom_resources(outages._options(layout)) == kinds


async def test_a_definition_that_is_never_accepted_is_waited_for_no_longer_than_any(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(objects, "_SERVED_S", 0.1)
    async with serving() as server, server.client() as client:
        server.answers = [ok({"status": {"conditions": []}, "items": []})]
        with pytest.raises(ProviderError, match=r"did not serve KWOK's stages within 0\.1 s"):
            await objects.apply_base(client, [])


def test_the_stages_are_either_in_the_file_or_objects() -> None:
    def in_file(options: dict[str, object]) -> set[str]:
        return {document["kind"] for document in configuration.controller_documents(options)}

    always = {"KwokConfiguration", "ClusterLogs", "ClusterAttach", "ClusterExec", "ClusterPortForward"}
    assert in_file({}) == {*always, "Stage"}
    assert in_file({"stageObjects": True}) == always
    assert configuration.fingerprint({}) == configuration.fingerprint({"stageObjects": False})
    assert configuration.fingerprint({}) != configuration.fingerprint({"stageObjects": True})


def with_ports(etcd: int, controller: int) -> dict[str, Any]:
    """Settings with these ports, and with the numbers of the first ones as something else."""
    at = f"https://127.0.0.1:{etcd}"
    ports = [{"name": "https", "port": 20003}, {"name": "http", "port": controller, "hostPort": controller}]
    server = {
        "name": "kube-apiserver",
        "args": [f"--etcd-servers={at}", f"--kubelet-port={controller}", "--max-requests=20002"],
        "ports": ports,
        "envs": [{"name": "A", "value": f"{at},https://127.0.0.1:200010"}],
    }
    return {
        "options": {"etcdPort": etcd, "kwokControllerPort": controller, "nodeLeaseParallelism": 20001},
        "components": [{"name": "etcd", "args": [f"--urls={at}", "--quota-backend-bytes=20001"]}, server],
    }


def test_a_port_is_another_wherever_it_is_one_and_other_numbers_stay() -> None:
    assert moved(with_ports(20001, 20002), {20001: 30001, 20002: 30002}) == with_ports(30001, 30002)
