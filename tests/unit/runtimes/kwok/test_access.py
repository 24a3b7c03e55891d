"""The flags by which components answer the cluster's certificate alone: as kwokctl takes them, and has saved them."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from kumulus import toolchain
from kumulus.host import processes
from kumulus.runtimes.base import Wanted
from kumulus.runtimes.kwok import access, configuration, etcd, kubelets, logs, securing
from kumulus.runtimes.kwok.layout import Layout

PKI = Path("/home/clusters/dev/pki")
# As kwokctl v0.8.0 saved them, and earlier versions of Kumulus left them.
SAVED: dict[str, Any] = {
    "kind": "KwokctlConfiguration",
    "options": {"etcdPort": 21001, "etcdPeerPort": 21002, "kwokControllerPort": 21003},
    "components": [
        {
            "name": "etcd",
            "args": [
                "--name=node0",
                "--data-dir=/home/clusters/dev/etcd",
                "--initial-advertise-peer-urls=http://127.0.0.1:21002",
                "--listen-peer-urls=http://127.0.0.1:21002",
                "--advertise-client-urls=http://127.0.0.1:21001",
                "--listen-client-urls=http://127.0.0.1:21001",
                "--initial-cluster=node0=http://127.0.0.1:21002",
                "--unsafe-no-fsync=true",
            ],
        },
        {"name": "kube-apiserver", "args": ["--etcd-prefix=/registry", "--etcd-servers=http://127.0.0.1:21001"]},
        {
            "name": "kube-scheduler",
            "args": ["--leader-elect=false", "--authorization-always-allow-paths=/healthz,/readyz,/livez,/metrics"],
        },
    ],
}


def arguments(settings: dict[str, Any], component: str) -> list[str]:
    return next(each["args"] for each in settings["components"] if each["name"] == component)


def test_what_was_saved_is_secured_and_nothing_else_of_it_changed() -> None:
    found = securing.secured(SAVED, PKI)
    assert not etcd.is_secured(SAVED)
    assert etcd.is_secured(found)
    # Who asks is ended before who is asked.
    assert securing.outdated(SAVED, PKI) == ["kube-scheduler", "kube-apiserver", "etcd"]
    assert securing.outdated(found, PKI) == []
    mine, api = arguments(found, "etcd"), arguments(found, "kube-apiserver")
    assert not [each for each in (*mine, *api) if "http://" in each]
    assert {"--name=node0", "--data-dir=/home/clusters/dev/etcd", "--unsafe-no-fsync=true"} < set(mine)
    assert {"--etcd-prefix=/registry", "--etcd-servers=https://127.0.0.1:21001"} < set(api)
    assert {"--kubelet-preferred-address-types=InternalDNS", "--kubelet-port=21003"} < set(api)
    for given in (mine, api):
        names = [each.partition("=")[0] for each in given]
        assert len(names) == len(set(names))
    assert arguments(found, "kube-scheduler") == [
        "--leader-elect=false",
        f"--client-ca-file={PKI}/ca.crt",
        "--authorization-always-allow-paths=/healthz,/livez,/readyz",
    ]
    assert securing.secured(found, PKI) == found
    assert "--unsafe-no-fsync=true" in arguments(SAVED, "etcd")


@pytest.mark.parametrize("port", ["client", "peer"])
def test_both_ports_ask_for_certificates_of_the_clusters_authority(port: str) -> None:
    flags = etcd.flags(PKI, 1, 2)["etcd"]
    prefix = "" if port == "client" else "peer-"
    assert flags[f"{prefix}client-cert-auth"] == "true"
    assert flags[f"{prefix}trusted-ca-file"] == f"{PKI}/ca.crt"
    assert all(value.startswith("https://127.0.0.1:") for key, value in flags.items() if key.startswith("listen-"))
    assert flags["enable-grpc-gateway"] == "false"
    assert "*" not in (flags["cors"], flags["host-whitelist"])


def test_a_run_that_is_killed_while_it_secures_a_cluster_leaves_that_to_the_next(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    layout = Layout.of(str(tmp_path), "dev")
    layout.directory.mkdir(parents=True)
    layout.write_documents([SAVED])
    ended: list[int] = []

    def killed(pids: list[int]) -> None:
        if ended:
            raise KeyboardInterrupt
        ended.extend(pids)

    monkeypatch.setattr(processes, "running", lambda _: {"kube-scheduler": [1], "kube-apiserver": [2], "etcd": [3]})
    monkeypatch.setattr(processes, "end", killed)
    with pytest.raises(KeyboardInterrupt):
        securing.secure(layout)
    assert ended == [1]
    found = securing.outdated(layout.settings(), layout.directory / "pki")
    assert found == ["kube-scheduler", "kube-apiserver", "etcd"]


def test_kwokctl_is_given_the_flags_it_sets_itself_as_overrides(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(toolchain, "find", lambda *_: Path("/bin/tool"))
    wanted = Wanted("dev", "me", "/home", "v1.35.4", {"etcdFsync": False})
    head = configuration.documents(wanted, dict.fromkeys(configuration.port_keys({}), 7))[0]
    given = {
        (patch["name"], each["key"]): each for patch in head["componentsPatches"] for each in patch.get("extraArgs", [])
    }
    saved = {
        (each["name"], argument.removeprefix("--").partition("=")[0])
        for each in SAVED["components"]
        for argument in each["args"]
    }
    saved.add(("kube-controller-manager", access.ALWAYS_ALLOWED))
    every = (etcd.flags(PKI, 7, 7), access.flags(PKI), kubelets.flags(7), logs.FLAGS)
    for component, flags in (pair for each in every for pair in each.items()):
        for key, value in flags.items():
            assert given[component, key]["value"] == value
            assert given[component, key].get("override", False) is ((component, key) in saved)
