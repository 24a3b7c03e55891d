"""What releases left behind, restored so that a test can continue with it."""

import json
import re
import tarfile
from dataclasses import dataclass
from pathlib import Path

from kumulus import toolchain
from kumulus.host import machine, ports
from kumulus.runtimes.kwok.layout import Layout
from tests.support.project import ROOT, Project

RELEASES = ROOT / "tests" / "data" / "releases"
PACKED = "recording.tar.xz"
# Programs that a cluster's folder links to or names.
_PROGRAMS = ("etcd", "kube-apiserver", "kube-controller-manager", "kube-scheduler", "kubectl", "kwok")


@dataclass(frozen=True)
class Recording:
    """The state when a release was recorded.

    Attributes:
        root: the directory that the stack and its cluster were in.
        tools: the directory of the control plane's programs.
        machine: the id of its machine.
        identity: the UID of the cluster's namespace kube-system.
        nodes, pods: UIDs by name; the pods are those of the namespace default.
    """

    root: str
    tools: str
    stack: str
    identity: str
    machine: str
    nodes: dict[str, str]
    pods: dict[str, str]


def recorded() -> list[Path]:
    """The releases with a recording."""
    return sorted(file.parent for file in RELEASES.glob(f"*/{PACKED}"))


def restore(release: Path, project: Project, claims: ports.Claims) -> Recording:
    """Put a recorded stack and cluster into a project, as if that version had made them there; nothing runs.

    What depends on the machine is replaced: its id, the root folder, the folder of the tools, and ports, which may be
    in use here. All else is as it was written.

    Args:
        release: one of :func:`recorded`.
        project: where to put it; still empty.
        claims: keeps the cluster's ports free until it runs.
    """
    recording = Recording(**json.loads((release / "recording.json").read_text()))
    root = project.directory.parent
    with tarfile.open(release / PACKED) as packed:
        packed.extractall(root, filter="tar")
    layout = Layout(project.cluster(recording.stack))
    moved = {recording.root: str(root), recording.machine: machine.this().id}
    moved |= {f"{recording.tools}/{name}": str(toolchain.find(name)) for name in _PROGRAMS}
    moved |= {str(port): str(claims.take()) for port in set(layout.ports().values())}
    # All in one pass: a new port here may equal one of the recorded ports.
    pattern = re.compile("|".join(rf"(?<![0-9]){re.escape(old)}(?![0-9a-z-])" for old in moved))
    texts = [file for folder in (root / "home", root / "project") for file in folder.rglob("*")]
    for file in [*texts, root / "state.json"]:
        # Objects in etcd do not mention any folder.
        if "etcd" not in file.parent.parts:
            _move(file, pattern, moved)
    project.stack = recording.stack
    imported = project.pulumi("stack", "import", "--file", str(root / "state.json"))
    assert imported.code == 0, imported.text
    return recording


def _move(file: Path, pattern: re.Pattern[str], moved: dict[str, str]) -> None:
    def place(found: re.Match[str]) -> str:
        return moved[found[0]]

    if file.is_symlink():
        target = str(file.readlink())
        file.unlink()
        file.symlink_to(pattern.sub(place, target))
    elif file.is_file():
        file.write_text(pattern.sub(place, file.read_text()))
