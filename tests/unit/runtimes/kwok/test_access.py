"""The flags by which components answer the cluster's certificate alone, as kwokctl takes them."""

import json
from pathlib import Path

import pytest

from kumulus import toolchain
from kumulus.kube import ApiError
from kumulus.runtimes import apiserver
from kumulus.runtimes.base import WantedControlPlane
from kumulus.runtimes.kwok import access, configuration, logs
from tests.support.apiserver import Server, ok, serving, status, text

PKI = Path("/home/clusters/dev/pki")
# The flags that kwokctl v0.8.0 sets itself.
SAVED = {
    *(
        ("etcd", f"{what}-urls")
        for what in ("advertise-client", "listen-client", "listen-peer", "initial-advertise-peer")
    ),
    ("etcd", "initial-cluster"),
    ("kube-apiserver", "etcd-servers"),
    *((name, access.ALWAYS_ALLOWED) for name in access.CONTROLLERS),
}
FORBIDDEN = status(403, "Forbidden", 'User "kubernetes-admin" cannot get path "/readyz"')
MISSING = status(404, "NotFound", 'namespaces "kube-system" not found')
NAMESPACE = ok({"metadata": {"name": "kube-system", "uid": "u-1"}})
READY = text(200, "ok")


@pytest.mark.parametrize("prefix", ["", "peer-"])
def test_both_ports_ask_for_certificates_of_the_clusters_authority(prefix: str) -> None:
    flags = access.etcd_flags(PKI, 1, 2)["etcd"]
    assert flags[f"{prefix}client-cert-auth"] == "true"
    assert flags[f"{prefix}trusted-ca-file"] == f"{PKI}/ca.crt"
    assert all(value.startswith("https://127.0.0.1:") for key, value in flags.items() if key.startswith("listen-"))
    assert flags["enable-grpc-gateway"] == "false"
    assert "*" not in (flags["cors"], flags["host-whitelist"])


def test_kwokctl_is_given_the_flags_it_sets_itself_as_overrides(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(toolchain, "find", lambda *_: Path("/bin/tool"))
    wanted = WantedControlPlane("dev", "me", "/home", "v1.35.4", {"etcdFsync": False})
    head = configuration.documents(wanted, dict.fromkeys(configuration.port_keys({}), 7))[0]
    given = {
        (patch["name"], each["key"]): each for patch in head["componentsPatches"] for each in patch.get("extraArgs", [])
    }
    every = (access.etcd_flags(PKI, 7, 7), access.controller_flags(PKI), configuration.kubelet_flags(7), logs.FLAGS)
    for component, flags in (pair for each in every for pair in each.items()):
        for key, value in flags.items():
            assert given[component, key]["value"] == value
            assert given[component, key].get("override", False) is ((component, key) in SAVED)


def kubeconfig(server: Server, folder: Path) -> Path:
    named = {
        "clusters": [{"name": "c", "cluster": {"server": server.address}}],
        "users": [{"name": "u", "user": {"token": "t"}}],
        "contexts": [{"name": "x", "context": {"cluster": "c", "user": "u"}}],
        "current-context": "x",
    }
    file = folder / "kubeconfig.yaml"
    file.write_text(json.dumps(named))
    return file


async def test_roles_not_read_yet_and_a_namespace_not_made_yet_are_waited_for(tmp_path: Path) -> None:
    async with serving() as server:
        server.answers = [FORBIDDEN, READY, FORBIDDEN, READY, MISSING, READY, NAMESPACE]
        assert await apiserver.identity(kubeconfig(server, tmp_path), patience=20.0) == "u-1"


async def test_a_user_without_rights_is_told_once_patience_ends(tmp_path: Path) -> None:
    async with serving() as server:
        server.answers = [FORBIDDEN]
        with pytest.raises(ApiError, match="cannot get path"):
            await apiserver.identity(kubeconfig(server, tmp_path), patience=0.3)
        assert len(server.seen) > 1
