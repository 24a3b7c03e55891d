"""Find a cluster's files that a full disk or a power failure has damaged, and repair them from copies.

kwokctl writes ``kwok.yaml``, the kubeconfig and the certificates in place and without a sync. Without the first, no
component can be started; without the second, none can be reached. So each of these two has a copy, made whenever a
cluster has come up as wanted, when we write the file ourselves, and when a cluster without a copy is looked at. A new
cluster is synced to the disk before it counts as created. Keys have no copy: damaged ones are reported, and only a new
cluster helps. A cluster is observed by its copies where there is no other way.
"""

from collections.abc import Mapping, Sequence
from pathlib import Path

import yaml

from kumulus.host import files, processes
from kumulus.runtimes.base import MISSING, Observed
from kumulus.runtimes.kwok import addition, hung
from kumulus.runtimes.kwok.layout import Layout

DAMAGED = "damaged"
"""The state of a file that cannot be read, but that a repair restores."""

# What every control plane has: with fewer, the file ends too early.
_NEEDED = {"etcd", "kube-apiserver", "kube-controller-manager", "kube-scheduler", "kwok-controller"}
_BEGIN, _END = "-----BEGIN ", "-----END "


def there(layout: Layout) -> bool:
    """Whether there is a cluster, even a damaged one: a file may be gone if its copy is not."""
    files_and_copies = ((layout.kwok_file, layout.kept_file), (layout.kubeconfig, layout.kept_kubeconfig))
    return all(file.exists() or copy.exists() for file, copy in files_and_copies)


def loss(layout: Layout, lost: list[str]) -> str:
    """The message that files are lost, and what that means."""
    is_or_are = "is damaged and has" if len(lost) == 1 else "are damaged and have"
    what = ", ".join(str(layout.directory / name) for name in lost)
    return (
        f"{what} {is_or_are} no copy, so that cluster {layout.name} cannot be started; "
        "`pulumi up --refresh` replaces it, without the objects in it"
    )


def damaged(layout: Layout) -> bool:
    """Whether ``kwok.yaml`` is damaged: it is gone, does not parse, lacks components, or ends too early."""
    if not set(layout.components()) >= _NEEDED:
        return True
    # Cut off between two documents, or before a component's last flags, it is still valid YAML.
    return _cut_off(layout, layout.kwok_file, layout.kept_file)


def kubeconfig_damaged(layout: Layout) -> bool:
    """Whether the kubeconfig is damaged: it lacks an entry, or ends too early."""
    return not _leads_somewhere(layout.text(layout.kubeconfig)) or _cut_off(
        layout, layout.kubeconfig, layout.kept_kubeconfig
    )


def can_be_restored(layout: Layout) -> bool:
    """Whether there is a copy of ``kwok.yaml`` that a control plane can be started with."""
    return set(layout.of_copy().components()) >= _NEEDED


def kubeconfig_can_be_restored(layout: Layout) -> bool:
    """Whether there is a copy of the kubeconfig that leads to the API server."""
    return _leads_somewhere(layout.text(layout.kept_kubeconfig))


def lost(layout: Layout) -> list[str]:
    """Files that are damaged and cannot be restored, by their paths below the cluster's directory."""
    found = [layout.kwok_file.name] if damaged(layout) and not can_be_restored(layout) else []
    if kubeconfig_damaged(layout) and not kubeconfig_can_be_restored(layout):
        found.append(layout.kubeconfig.name)
    keys = sorted(file for file in (layout.directory / "pki").glob("*") if file.suffix in (".crt", ".key"))
    return found + [f"pki/{file.name}" for file in keys if not _is_whole(layout.text(file))]


def keep(layout: Layout) -> None:
    """Copy the files that are not damaged.

    Raises:
        OSError: a copy cannot be written, as on a full disk.
    """
    for file, copy, spoiled in (
        (layout.kwok_file, layout.kept_file, damaged),
        (layout.kubeconfig, layout.kept_kubeconfig, kubeconfig_damaged),
    ):
        if not spoiled(layout) and (text := layout.text(file)) != layout.text(copy):
            files.write(copy, text, mode=0o600)


def restore(layout: Layout) -> list[Path]:
    """Restore the damaged files that have a copy; returns those files."""
    found = []
    if damaged(layout) and can_be_restored(layout):
        found.append((layout.kwok_file, layout.kept_file))
    if kubeconfig_damaged(layout) and kubeconfig_can_be_restored(layout):
        found.append((layout.kubeconfig, layout.kept_kubeconfig))
    for file, copy in found:
        files.write(file, layout.text(copy), mode=0o600)
    return [file for file, _ in found]


def sync(layout: Layout) -> None:
    """Sync to the disk everything without which a cluster cannot be started; etcd syncs its own data."""
    pki = layout.directory / "pki"
    folders = (pki, layout.directory, layout.directory.parent, layout.home)
    for path in (layout.kwok_file, layout.kubeconfig, *pki.glob("*"), *folders):
        files.sync(path)


def _cut_off(layout: Layout, file: Path, copy: Path) -> bool:
    text, whole = layout.text(file), layout.text(copy)
    return len(text) < len(whole) and whole.startswith(text)


def _leads_somewhere(kubeconfig: str) -> bool:
    try:
        document = yaml.safe_load(kubeconfig)
    except (ValueError, yaml.YAMLError, RecursionError):
        return False
    needed = ("clusters", "users", "contexts", "current-context")
    return isinstance(document, dict) and all(document.get(key) for key in needed)


def _is_whole(pem: str) -> bool:
    """Whether each certificate or key in a file has its end line."""
    return 0 < pem.count(_BEGIN) == pem.count(_END) and pem.rstrip().endswith("-----")


def observed(layout: Layout, identity: str, running: Mapping[str, Sequence[int]] | None = None) -> Observed:
    """A control plane as it is.

    Args:
        identity: the one that it is known to have.
        running: its processes; looked for when None.
    """
    running = processes.running(layout.directory) if running is None else running
    alive = running.keys() - hung.useless(layout, running).keys()
    broken = damaged(layout)
    copy = layout.of_copy() if broken else layout
    states = {name: "running" if name in alive else "stopped" for name in copy.components()}
    spoiled = {layout.kwok_file.name: broken, layout.kubeconfig.name: kubeconfig_damaged(layout)}
    states |= {name: DAMAGED for name, is_spoiled in spoiled.items() if is_spoiled}
    states |= dict.fromkeys(lost(layout), MISSING)
    layout = copy
    port = layout.ports().get("kube-apiserver")
    return Observed(
        identity=identity,
        kubeconfig=str(layout.kubeconfig),
        server=f"https://127.0.0.1:{port}",
        directory=str(layout.directory),
        components=states,
        configuration=layout.note().get("configuration", ""),
        endpoints={name: at for each in addition.every() for name, at in each.endpoints(layout).items()},
    )
