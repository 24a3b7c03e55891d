"""What a full disk or a loss of power has done to a cluster's files, and the copies that repair it.

kwokctl writes ``kwok.yaml``, the kubeconfig and the certificates in place and without a sync. Without the first no
component can be started, without the second none can be reached. So each has a copy, made whenever a cluster has come
up as wanted, when we write the file ourselves, and when a cluster without a copy is looked at. A new cluster is synced
to the disk before it counts as created. Keys have no copy: damaged ones are named, and only a new cluster helps.
"""

from __future__ import annotations

import os
from pathlib import Path

import yaml

from kumulus.runtimes.kwok.layout import Layout
from kumulus.surroundings import files

DAMAGED = "damaged"
"""The state of a file that cannot be read, and is brought back by a repair."""

# What every control plane has: with fewer, the file ends too early.
_NEEDED = {"etcd", "kube-apiserver", "kube-controller-manager", "kube-scheduler", "kwok-controller"}
_BEGIN, _END = "-----BEGIN ", "-----END "


def there(layout: Layout) -> bool:
    """Whether there is a cluster, be it damaged: a file may be gone whose copy is not."""
    files_and_copies = ((layout.kwok_file, layout.kept_file), (layout.kubeconfig, layout.kept_kubeconfig))
    return all(file.exists() or copy.exists() for file, copy in files_and_copies)


def loss(layout: Layout, lost: list[str]) -> str:
    """What it means that files are lost, in words."""
    is_or_are = "is damaged and has" if len(lost) == 1 else "are damaged and have"
    what = ", ".join(str(layout.directory / name) for name in lost)
    return (
        f"{what} {is_or_are} no copy, so that cluster {layout.name} cannot be started; "
        "`pulumi up --refresh` replaces it, without the objects in it"
    )


def damaged(layout: Layout) -> bool:
    """Whether ``kwok.yaml`` is not all that it was: it is gone, does not parse, lacks components, or ends too early."""
    if not set(layout.components()) >= _NEEDED:
        return True
    # Cut off between two documents, or before a component's last flags, it is still YAML.
    return _cut_off(layout, layout.kwok_file, layout.kept_file)


def kubeconfig_damaged(layout: Layout) -> bool:
    """Whether the kubeconfig is not all that it was."""
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
    """Files that are damaged and cannot be brought back, by their paths below the cluster's directory."""
    found = [layout.kwok_file.name] if damaged(layout) and not can_be_restored(layout) else []
    if kubeconfig_damaged(layout) and not kubeconfig_can_be_restored(layout):
        found.append(layout.kubeconfig.name)
    keys = sorted(file for file in (layout.directory / "pki").glob("*") if file.suffix in (".crt", ".key"))
    return found + [f"pki/{file.name}" for file in keys if not _is_whole(layout.text(file))]


def keep(layout: Layout) -> None:
    """Copy the files that are as they should be; a full disk is no error.

    Raises:
        OSError: one cannot be written.
    """
    for file, copy, spoiled in (
        (layout.kwok_file, layout.kept_file, damaged),
        (layout.kubeconfig, layout.kept_kubeconfig, kubeconfig_damaged),
    ):
        if not spoiled(layout) and (text := layout.text(file)) != layout.text(copy):
            files.write(copy, text, mode=0o600)


def restore(layout: Layout) -> list[Path]:
    """Bring back what is damaged and has a copy; returns those files.

    Raises:
        OSError: one cannot be written.
    """
    found = []
    if damaged(layout) and can_be_restored(layout):
        found.append((layout.kwok_file, layout.kept_file))
    if kubeconfig_damaged(layout) and kubeconfig_can_be_restored(layout):
        found.append((layout.kubeconfig, layout.kept_kubeconfig))
    for file, copy in found:
        files.write(file, layout.text(copy), mode=0o600)
    return [file for file, _ in found]


def sync(layout: Layout) -> None:
    """Have everything on the disk that a cluster cannot be started without; etcd sees to its own data.

    Raises:
        OSError: it could not be written there.
    """
    for file in [layout.kwok_file, layout.kubeconfig, *(layout.directory / "pki").glob("*")]:
        opened = os.open(file, os.O_RDONLY)
        try:
            os.fsync(opened)
        finally:
            os.close(opened)
    for folder in (layout.directory / "pki", layout.directory, layout.directory.parent, layout.home):
        if folder.is_dir():
            files.sync_directory(folder)


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
    """Whether a file of certificates or keys has every end that it has a beginning of."""
    return 0 < pem.count(_BEGIN) == pem.count(_END) and pem.rstrip().endswith("-----")
