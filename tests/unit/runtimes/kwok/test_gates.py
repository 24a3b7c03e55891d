"""Feature gates: what `workloads: native` stands for, and gates that a Kubernetes version does not know."""

import contextlib
from pathlib import Path
from typing import Any

import pytest

from kumulus import toolchain
from kumulus.nodes.errors import ProviderError
from kumulus.runtimes.base import WantedControlPlane
from kumulus.runtimes.kwok import gates
from kumulus.runtimes.kwok.layout import Layout, dump

NATIVE = (
    "CompositePodGroup=true,DRAWorkloadResourceClaims=true,GenericWorkload=true,PodGroupPreemptionPolicy=true,"
    "TopologyAwareWorkloadScheduling=true,WorkloadWithJob=true"
)


def test_native_workloads_stand_for_their_gates_and_versions_and_what_is_declared_prevails() -> None:
    assert gates.feature_gates({}) == gates.runtime_config({}) == ""
    native: dict[str, Any] = {"workloads": "native"}
    assert gates.feature_gates(native) == NATIVE
    assert gates.runtime_config(native) == "scheduling.k8s.io/v1alpha3=true,scheduling.k8s.io/v1beta1=true"
    declared = native | {"featureGates": {"CompositePodGroup": False, "A": "true"}, "runtimeConfig": {"api/all": True}}
    assert (
        gates.feature_gates(declared) == f"A=true,{NATIVE.replace('CompositePodGroup=true', 'CompositePodGroup=false')}"
    )
    assert gates.runtime_config(declared).startswith("api/all=true,scheduling.k8s.io/v1alpha3=true")


@pytest.fixture
def asked(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The file with the arguments of each call of an API server that knows no gate `Old`."""
    program, calls = tmp_path / "kube-apiserver", tmp_path / "calls"
    program.write_text(
        f"""#!/bin/sh
        echo "$@" >> {calls}
        case "$1" in *Old=*) ;; *) exit 0;; esac
        echo 'E1127 1 run.go:72] "command failed" err="unrecognized feature gate: Old"' >&2
        exit 1
        """
    )
    program.chmod(0o755)
    monkeypatch.setattr(toolchain, "find", lambda name, version: program)
    calls.touch()
    return calls


def cluster(home: Path, version: str, gates: str) -> Layout:
    found = Layout.of(str(home), "dev")
    found.directory.mkdir(parents=True)
    components = [{"name": "kube-apiserver", "args": [f"--feature-gates={gates}"]}]
    settings = {"kind": "KwokctlConfiguration", "options": {"kubeVersion": version}, "components": components}
    found.kwok_file.write_text(dump([settings]))
    return found


def calls(asked: Path) -> set[str]:
    return set(asked.read_text().splitlines())


def asking(version: str, **options: Any) -> WantedControlPlane:
    return WantedControlPlane("dev", "me", "/home", version, options)


def wanted(version: str, **switches: bool) -> WantedControlPlane:
    return asking(version, **({"featureGates": switches} if switches else {}))


async def test_gates_that_a_version_does_not_know_are_refused_for_a_new_cluster_and_for_another_version(
    asked: Path, tmp_path: Path
) -> None:
    for layout in (Layout.of(str(tmp_path), "none"), cluster(tmp_path, "v1.36.3", "Old=true")):
        with pytest.raises(ProviderError) as refused:
            await gates.require_known(layout, wanted("v1.37.2", Old=True))
        assert str(refused.value) == (
            "Kubernetes v1.37.2 does not start with the options of cluster dev: unrecognized feature gate: Old; change "
            "featureGates, workloads or kubernetesVersion"
        )
        await gates.require_known(layout, wanted("v1.37.2", New=True))
    assert calls(asked) == {
        "--feature-gates=Old=true --version",
        "--feature-gates=New=true --version",
    }


@pytest.mark.parametrize(
    ("version", "api", "refused"),
    [
        ("v1.36.3", "scheduling.k8s.io/v1alpha1", True),
        ("v1.36.3", "scheduling.k8s.io/v1alpha2", False),
        ("v1.37.2", "scheduling.k8s.io/v1alpha2", True),
        ("v1.37.2", "scheduling.k8s.io/v1alpha3", False),
    ],
)
async def test_an_api_version_that_has_ended_is_refused_and_one_that_is_off_is_not(
    tmp_path: Path, version: str, api: str, refused: bool
) -> None:
    layout = Layout.of(str(tmp_path), "none")
    with pytest.raises(ProviderError, match=f"it has no {api}; change") if refused else contextlib.nullcontext():
        await gates.require_known(layout, asking(version, runtimeConfig={api: "true"}))
    await gates.require_known(layout, asking(version, runtimeConfig={api: "false"}))


async def test_a_cluster_that_runs_with_its_gates_and_one_without_any_are_not_asked_about(
    asked: Path, tmp_path: Path
) -> None:
    layout = cluster(tmp_path, "v1.36.3", "Old=true,B=false")
    await gates.require_known(layout, wanted("v1.36.3", B=False, Old=True))
    await gates.require_known(layout, wanted("v1.37.2"))
    await gates.require_known(layout, wanted("", Old=True))
    assert calls(asked) == set()
    with pytest.raises(ProviderError):
        await gates.require_known(layout, wanted("v1.36.3", Old=True))


async def test_a_program_that_does_not_start_says_nothing_of_gates(asked: Path, tmp_path: Path) -> None:
    (asked.parent / "kube-apiserver").write_bytes(b"no program")
    await gates.require_known(Layout.of(str(tmp_path), "none"), wanted("v1.37.2", Old=True))


async def test_a_version_that_is_not_there_is_not_asked(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def missing(*_: object) -> Path:
        raise toolchain.ToolMissing("kube-apiserver is not there")

    monkeypatch.setattr(toolchain, "find", missing)
    await gates.require_known(Layout.of(str(tmp_path), "none"), wanted("v1.37.2", Old=True))


@pytest.mark.parametrize(
    ("options", "before", "since"),
    [
        ({"processes": {"example.com/tool": "./tool"}}, "v1.35.4", "v1.36.3"),
        ({"workloads": "native"}, "v1.36.3", "v1.37.2"),
    ],
)
async def test_an_option_of_a_later_kubernetes_is_refused_by_its_name(
    asked: Path, tmp_path: Path, options: dict[str, Any], before: str, since: str
) -> None:
    layout, (option,) = Layout(tmp_path / "none"), options
    needed = since.removeprefix("v").rpartition(".")[0]
    said = f"kwok.{option} is for Kubernetes {needed} and later; change kubernetesVersion"
    with pytest.raises(ProviderError, match=said):
        await gates.require_known(layout, asking(before, **options))
    assert calls(asked) == set()
    await gates.require_known(layout, asking(since, **options))
