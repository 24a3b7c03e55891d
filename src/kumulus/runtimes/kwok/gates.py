"""The feature gates and API versions that a cluster is started with; its Kubernetes version has to know the gates."""

import asyncio
import re
import subprocess
from collections.abc import Mapping
from typing import Any

from kumulus import toolchain
from kumulus.nodes.errors import ProviderError
from kumulus.runtimes.base import WantedControlPlane
from kumulus.runtimes.kwok import components
from kumulus.runtimes.kwok.access import API_SERVER
from kumulus.runtimes.kwok.layout import Layout
from kumulus.toolchain.versions import is_version, numbers

# What `workloads: native` stands for, in this order: groups of pods, in topology domains, of Jobs, of groups, by
# priority, and with claims of their own.
# Checked against Kubernetes 1.35 to 1.37.
_NATIVE_GATES = (
    "GenericWorkload",
    "TopologyAwareWorkloadScheduling",
    "WorkloadWithJob",
    "CompositePodGroup",
    "PodGroupPreemptionPolicy",
    "DRAWorkloadResourceClaims",
)
_NATIVE_VERSIONS = ("scheduling.k8s.io/v1beta1", "scheduling.k8s.io/v1alpha3")
ENDED = {"scheduling.k8s.io/v1alpha1": (1, 36), "scheduling.k8s.io/v1alpha2": (1, 37)}
"""API versions that an API server has no more since a Kubernetes version: those in which objects are stored.

Of no other group has one ended between the versions on offer (CHANGELOG-1.36.md and CHANGELOG-1.37.md of
k8s.io/kubernetes). Checked against Kubernetes 1.35 to 1.37.
"""
# Since which Kubernetes version there is what an option needs. For `processes`, that is MutatingAdmissionPolicies, of
# which one puts pods on the node `local`; for `workloads`, the gates and API versions above.
_SINCE = {"processes": (1, 36), "workloads": (1, 37)}
# In the line with which a program of Kubernetes ends (component-base/cli).
_FAILED = re.compile(r'"command failed" err="((?:[^"\\]|\\.)*)"')
# For an API server to look at its flags.
_LOOK_S = 30.0


def feature_gates(options: Mapping[str, Any]) -> str:
    """The feature gates of a cluster with these options, as an argument: `A=true,B=false`; those declared prevail."""
    return _pairs(_NATIVE_GATES, options, "featureGates")


def runtime_config(options: Mapping[str, Any]) -> str:
    """Likewise, the API groups and versions that its API server serves."""
    return _pairs(_NATIVE_VERSIONS, options, "runtimeConfig")


def _pairs(native: tuple[str, ...], options: Mapping[str, Any], key: str) -> str:
    """The switches that an option declares, and those of `workloads: native` where that is asked for."""
    implied = native if options.get("workloads") == "native" else ()
    switches = {**dict.fromkeys(implied, "true"), **_mapping(options, key)}
    return ",".join(f"{name}={str(value).lower()}" for name, value in sorted(switches.items()))


async def require_known(layout: Layout, wanted: WantedControlPlane) -> None:
    """Refuse gates and API versions that the wanted Kubernetes does not know: its API server would not start."""
    if not is_version(wanted.kubernetes_version):
        return
    refused = f"Kubernetes {wanted.kubernetes_version} does not start with the options of cluster {wanted.name}"
    served = {api for api, on in _mapping(wanted.options, "runtimeConfig").items() if str(on).lower() == "true"}
    if gone := sorted(served & set(ended(wanted.kubernetes_version))):
        raise ProviderError(f"{refused}: it has no {gone[0]}; change runtimeConfig or kubernetesVersion")
    for option, since in _SINCE.items():
        if wanted.options.get(option) and numbers(wanted.kubernetes_version)[:2] < since:
            least = ".".join(map(str, since))
            raise ProviderError(
                f"{refused}: kwok.{option} is for Kubernetes {least} and later; change kubernetesVersion"
            )
    gates, settings = feature_gates(wanted.options), layout.settings()
    version_there = str((settings.get("options") or {}).get("kubeVersion") or "").removeprefix("v")
    gates_there = ",".join(sorted((components.flag(settings, API_SERVER, "feature-gates") or "").split(",")))
    starts_with_them = (version_there, gates_there) == (wanted.kubernetes_version.removeprefix("v"), gates)
    if not gates or starts_with_them:
        return
    if unknown := await asyncio.to_thread(_unknown, wanted.kubernetes_version, gates):
        raise ProviderError(f"{refused}: {unknown}; change featureGates, workloads or kubernetesVersion")


def ended(version: str) -> list[str]:
    """The API versions of :data:`ENDED` that a Kubernetes version such as ``v1.37.2`` has no more."""
    return [api for api, since in ENDED.items() if numbers(version)[:2] >= since]


def _mapping(options: Mapping[str, Any], key: str) -> Mapping[str, Any]:
    # A preview looks at a cluster's options before they are checked.
    return found if isinstance(found := options.get(key), Mapping) else {}


def _unknown(version: str, gates: str) -> str:
    """What the API server of a version says against gates; empty if nothing, or if it is not there to be asked."""
    try:
        program = toolchain.find(API_SERVER, version)
    except toolchain.ToolchainError:
        return ""
    try:
        # It looks at its gates before it prints its version and ends.
        asked = subprocess.run(
            [program, f"--feature-gates={gates}", "--version"],
            capture_output=True,
            text=True,
            errors="replace",
            timeout=_LOOK_S,
            stdin=subprocess.DEVNULL,
            check=False,
        )
    except (OSError, subprocess.TimeoutExpired):
        return ""
    said = _FAILED.search(asked.stderr)
    return (said[1] if said else f"exit code {asked.returncode}") if asked.returncode else ""
