"""Find a cluster's files that a full disk or a power failure has damaged, and repair them from copies.

kwokctl writes ``kwok.yaml``, the kubeconfig and the certificates in place and without a sync. Without the first, no
component can be started; without the second, none can be reached. So these two have copies, made whenever a cluster has
come up as wanted or is looked at, and a new cluster is synced to the disk before it counts as created. Keys have no
copy: only a new cluster helps.
"""

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

import yaml

from kumulus.host import files, processes
from kumulus.runtimes.base import MISSING, Observed
from kumulus.runtimes.kwok import addition, hung
from kumulus.runtimes.kwok.layout import Layout

DAMAGED = "damaged"
"""The state of a file that cannot be read, but that a repair restores."""

# The components that every control plane has.
_NEEDED = {"etcd", "kube-apiserver", "kube-controller-manager", "kube-scheduler", "kwok-controller"}
# Of a certificate or a key.
_BEGIN, _END = "-----BEGIN ", "-----END "


def there(layout: Layout) -> bool:
    """Whether there is a cluster, even a damaged one: a file may be gone if its copy is not."""
    return all(each.file.exists() or each.copy.exists() for each in _files(layout))


def loss(layout: Layout, lost: list[str]) -> str:
    """The message that files are lost, and what that means."""
    is_or_are = "is damaged and has" if len(lost) == 1 else "are damaged and have"
    what = ", ".join(str(layout.directory / name) for name in lost)
    return (
        f"{what} {is_or_are} no copy, so that cluster {layout.name} cannot be started; "
        "`pulumi up --refresh` replaces it, without the objects in it"
    )


class _Kept(NamedTuple):
    """A file that has a copy."""

    file: Path
    copy: Path
    damaged: bool
    """Whether it is gone, is not what it should be, or ends too early."""
    restorable: bool
    """Whether the copy is what the file should be."""


def _files(layout: Layout) -> Iterator[_Kept]:
    copies = layout.of_copy()
    for file, copy, works in (
        (layout.kwok_file, copies.kwok_file, _has_all_components),
        (layout.kubeconfig, copies.kubeconfig, _is_kubeconfig),
    ):
        text, whole = layout.text(file), layout.text(copy)
        # Cut off between two documents, or before a component's last flags, it is still valid YAML.
        cut_off = len(text) < len(whole) and whole.startswith(text)
        yield _Kept(file, copy, cut_off or not works(layout), works(copies))


def lost(layout: Layout) -> list[str]:
    """Files that are damaged and cannot be restored, by their paths below the cluster's directory."""
    found = [each.file.name for each in _files(layout) if each.damaged and not each.restorable]
    keys = sorted(file for file in (layout.directory / "pki").glob("*") if file.suffix in (".crt", ".key"))
    return found + [f"pki/{file.name}" for file in keys if not _is_whole(layout.text(file))]


def keep(layout: Layout) -> None:
    """Copy the files that are not damaged; raises OSError where that cannot be, as on a full disk."""
    for each in _files(layout):
        if not each.damaged and (text := layout.text(each.file)) != layout.text(each.copy):
            files.write(each.copy, text, mode=0o600)


def restore(layout: Layout) -> list[Path]:
    """Restore the damaged files that have a copy; returns those files."""
    found = [each for each in _files(layout) if each.damaged and each.restorable]
    for each in found:
        files.write(each.file, layout.text(each.copy), mode=0o600)
    return [each.file for each in found]


def sync(layout: Layout) -> None:
    """Sync to the disk everything without which a cluster cannot be started; etcd syncs its own data."""
    pki = layout.directory / "pki"
    folders = (pki, layout.directory, layout.directory.parent, layout.home)
    for path in (layout.kwok_file, layout.kubeconfig, *pki.glob("*"), *folders):
        files.sync(path)


def _has_all_components(layout: Layout) -> bool:
    return set(layout.components()) >= _NEEDED


def _is_kubeconfig(layout: Layout) -> bool:
    try:
        document = yaml.safe_load(layout.text(layout.kubeconfig))
    except (ValueError, yaml.YAMLError, RecursionError):
        return False
    needed = ("clusters", "users", "contexts", "current-context")
    return isinstance(document, dict) and all(document.get(key) for key in needed)


def _is_whole(pem: str) -> bool:
    """Whether each certificate or key in a file has its end line."""
    return 0 < pem.count(_BEGIN) == pem.count(_END) and pem.rstrip().endswith("-----")


def observed(layout: Layout, identity: str, running: Mapping[str, Sequence[int]] | None = None) -> Observed:
    """A control plane as it is; ``running`` has the pids of its components, which are looked for if it is None."""
    running = processes.running(layout.directory) if running is None else running
    alive = running.keys() - hung.useless(layout, running).keys()
    damaged = {each.file: DAMAGED for each in _files(layout) if each.damaged}
    readable = layout.of_copy() if layout.kwok_file in damaged else layout
    states = {name: "running" if name in alive else "stopped" for name in readable.components()}
    states |= {file.name: state for file, state in damaged.items()}
    states |= dict.fromkeys(lost(layout), MISSING)
    return Observed(
        identity=identity,
        kubeconfig=str(layout.kubeconfig),
        server=f"https://127.0.0.1:{readable.ports().get('kube-apiserver')}",
        directory=str(layout.directory),
        components=states,
        configuration=layout.note().get("configuration", ""),
        endpoints={name: at for each in addition.every() for name, at in each.endpoints(readable).items()},
    )
