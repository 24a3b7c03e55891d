"""Change the Kubernetes version of an existing control plane: its programs are replaced, its data stay.

Kubernetes is upgraded by one minor version at a time, the API server first, and is not downgraded to an earlier one
(https://kubernetes.io/releases/version-skew-policy/); between patches of a minor version, both directions work.
"""

from __future__ import annotations

from kumulus import toolchain
from kumulus.host import processes
from kumulus.nodes.errors import ProviderError
from kumulus.nodes.reporter import Reporter
from kumulus.runtimes.kwok import components
from kumulus.runtimes.kwok.layout import Layout

# In the order in which they are ended: the API server after its clients.
_PROGRAMS = {
    "kube-scheduler": "kubeSchedulerBinary",
    "kube-controller-manager": "kubeControllerManagerBinary",
    "kube-apiserver": "kubeApiserverBinary",
}


def in_place(old: str, new: str) -> bool:
    """Whether a cluster can go from the one version to the other and keep what is in it.

    Args:
        old: such as ``v1.34.1``.
        new: likewise.
    """
    try:
        (was_major, was), (is_major, is_) = _minor(old), _minor(new)
    except ValueError:
        return False
    return was_major == is_major and is_ - was in (0, 1)


def exchange(layout: Layout, version: str, report: Reporter) -> bool:
    """End the programs of another version than the wanted one, and replace them.

    They are ended first and the version is written last, so that an upgrade that is killed is done again in full.

    Args:
        layout: the cluster.
        version: the one wanted, such as ``v1.35.4``.
        report: takes lines of progress.

    Returns:
        whether it was another version.

    Raises:
        ProviderError: the programs of that version are missing.
        OSError: the configuration cannot be written.
    """
    settings = layout.settings()
    options = settings.get("options") or {}
    before = str(options.get("kubeVersion") or "")
    if not version or not settings or _same(before, version):
        return False
    if not in_place(before, version):
        raise ProviderError(
            f"cluster {layout.name} has Kubernetes {before}, which cannot become {version} in place; Kubernetes goes "
            "by one minor version at a time, and not back"
        )
    try:
        found = {name: toolchain.find(name, version) for name in _PROGRAMS}
    except toolchain.ToolchainError as error:
        raise ProviderError(str(error)) from None
    report.status(f"Kubernetes {before} becomes {version}")
    alive = processes.running(layout.directory)
    for name in _PROGRAMS:
        processes.end(alive.get(name, []))
    for name, executable in found.items():
        components.link(layout, name, executable)
    listed = [
        {**each, "version": version.removeprefix("v")} if each.get("name") in _PROGRAMS else each
        for each in settings.get("components") or []
    ]
    binaries = {option: str(found[name]) for name, option in _PROGRAMS.items()}
    changed = {**settings, "options": {**options, **binaries, "kubeVersion": version}, "components": listed}
    layout.write_settings(changed)
    return True


def _same(one: str, other: str) -> bool:
    return one.removeprefix("v") == other.removeprefix("v")


def _minor(version: str) -> tuple[int, int]:
    """The major and the minor version of a text such as ``v1.34.1``; ValueError for any other text."""
    major, minor, _ = (int(part) for part in version.removeprefix("v").split("."))
    return major, minor
