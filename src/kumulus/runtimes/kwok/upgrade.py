"""Change the Kubernetes version of an existing control plane: its programs are replaced, its data stay.

Kubernetes is upgraded by one minor version at a time, the API server first, and is not downgraded to an earlier one
(https://kubernetes.io/releases/version-skew-policy/); between patches of a minor version, both directions work.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from kumulus import toolchain
from kumulus.host import processes
from kumulus.kube import ApiError, KubeconfigError, Unreachable
from kumulus.kube.errors import tolerating
from kumulus.nodes.errors import ProviderError
from kumulus.nodes.reporter import Reporter
from kumulus.runtimes.kwok import api, components, gates
from kumulus.runtimes.kwok.access import API_SERVER
from kumulus.runtimes.kwok.layout import Layout

if TYPE_CHECKING:
    from kumulus.kube import Client

# In the order in which they are ended: the API server after its clients.
_PROGRAMS = {
    "kube-scheduler": "kubeSchedulerBinary",
    "kube-controller-manager": "kubeControllerManagerBinary",
    "kube-apiserver": "kubeApiserverBinary",
}
# For an API server to say which objects it has.
_PATIENCE_S = 5.0


def in_place(old: str, new: str) -> bool:
    """Whether a cluster can go from a version such as ``v1.34.1`` to another one and keep what is in it."""
    try:
        (old_major, old_minor), (new_major, new_minor) = _minor(old), _minor(new)
    except ValueError:
        return False
    return old_major == new_major and new_minor - old_minor in (0, 1)


async def require_readable(layout: Layout, version: str, report: Reporter) -> None:
    """Refuse an upgrade that would leave objects that nobody can read; warn where that cannot be found out."""
    settings = layout.settings()
    before = str((settings.get("options") or {}).get("kubeVersion") or "")
    if not version or _same(before, version) or not in_place(before, version):
        return
    for ended in sorted(set(gates.ended(version)) - set(gates.ended(before))):
        await _require_none(layout, version, ended, report)


async def _require_none(layout: Layout, version: str, ended: str, report: Reporter) -> None:
    """Refuse objects of an API version that has ended in the Kubernetes version."""
    try:
        async with api.client(layout, patience=_PATIENCE_S) as client:
            found = await _objects(client, ended)
    except (ApiError, Unreachable, KubeconfigError) as error:
        if components.flag(layout.settings(), API_SERVER, "runtime-config"):
            report.warn(
                f"whether cluster {layout.name} has objects of {ended}, which Kubernetes {version} cannot read, is not "
                f"known: {error}"
            )
        return
    if found:
        counts = ", ".join(f"{name}: {count}" for name, count in found.items())
        group, _, served = ended.partition("/")
        kinds = ",".join(f"{name}.{served}.{group}" for name in found)
        raise ProviderError(
            f"cluster {layout.name} has objects of {ended} ({counts}), which Kubernetes {version} cannot read; "
            f"remove them first: kubectl delete {kinds} --all --all-namespaces"
        )


async def _objects(client: Client, version: str) -> dict[str, int]:
    """How many objects of an API version there are, by resource; the server need not have it."""
    listed: dict[str, Any] = {}
    with tolerating(404):
        listed = await client.get(f"/apis/{version}")
    names = [each["name"] for each in listed.get("resources", ()) if "/" not in each["name"]]
    counts = {name: len((await client.get(f"/apis/{version}/{name}"))["items"]) for name in names}
    return {name: count for name, count in counts.items() if count}


def exchange(layout: Layout, version: str, report: Reporter) -> bool:
    """End the programs of another version than the wanted one, and replace them; returns whether there were any.

    They are ended first and the version is written last, so that an upgrade that is killed is done again in full.
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
    found = {name: toolchain.find(name, version) for name in _PROGRAMS}
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
