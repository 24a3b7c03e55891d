"""Container images made of a program and its files, as one archive that containerd and Docker take.

They are written as `docker save` would, without Docker: there they would stand under the names of the originals.
"""

import hashlib
import io
import json
import platform
import tarfile
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

_PATH = "/usr/local/bin:/usr/bin:/usr/sbin"
# For programs that expect them; by mode.
_DIRECTORIES = {"tmp": 0o1777, "etc": 0o755, "run": 0o755, "var/lib": 0o755}
_ARCHITECTURES = {"x86_64": "amd64", "aarch64": "arm64", "arm64": "arm64"}


@dataclass(frozen=True)
class ContainerImage:
    """One image."""

    name: str
    """Its full name, with a tag."""
    files: Mapping[str, Path]
    """Files of this machine, by their path in the image without a leading slash."""
    links: Mapping[str, str] = field(default_factory=dict)
    """What symbolic links point to, by their path."""
    entrypoint: Sequence[str] = ()
    """What is run in it by itself."""


def program(name: str, executable: Path) -> ContainerImage:
    """The image of a program that needs nothing else."""
    path = f"usr/local/bin/{executable.name}"
    return ContainerImage(name, {path: executable}, entrypoint=(f"/{path}",))


def architecture() -> str:
    """This machine's, as images name it."""
    machine = platform.machine()
    return _ARCHITECTURES.get(machine, machine)


def write(archive: Path, containers: Iterable[ContainerImage], scratch: Path) -> None:
    """Write an archive of images; ``scratch`` is a directory for a file as large as the largest of them."""
    manifest = []
    layer = scratch / "layer.tar"
    with tarfile.open(archive, "w") as packed:
        for container in containers:
            _write_layer(layer, container)
            with layer.open("rb") as content:
                digest = hashlib.file_digest(content, "sha256").hexdigest()
            configuration = json.dumps(_configuration(container, digest)).encode()
            name = f"{hashlib.sha256(configuration).hexdigest()}.json"
            _add(packed, name, configuration)
            packed.add(layer, f"{digest}.tar")
            manifest.append({"Config": name, "RepoTags": [container.name], "Layers": [f"{digest}.tar"]})
        _add(packed, "manifest.json", json.dumps(manifest).encode())
    layer.unlink(missing_ok=True)


def _write_layer(target: Path, container: ContainerImage) -> None:
    with tarfile.open(target, "w") as layer:
        for path, mode in _DIRECTORIES.items():
            layer.addfile(_entry(path, tarfile.DIRTYPE, mode))
        for path, file in sorted(container.files.items()):
            entry = _entry(path, tarfile.REGTYPE, 0o755)
            entry.size = file.stat().st_size
            with file.open("rb") as content:
                layer.addfile(entry, content)
        for path, points_to in sorted(container.links.items()):
            entry = _entry(path, tarfile.SYMTYPE, 0o777)
            entry.linkname = points_to
            layer.addfile(entry)


def _entry(path: str, kind: bytes, mode: int) -> tarfile.TarInfo:
    # Without times and users: the same files make the same image.
    entry = tarfile.TarInfo(path)
    entry.type, entry.mode = kind, mode
    return entry


def _configuration(container: ContainerImage, digest: str) -> dict[str, object]:
    return {
        "architecture": architecture(),
        "os": "linux",
        "config": {"Env": [f"PATH={_PATH}"], "Entrypoint": list(container.entrypoint)},
        "rootfs": {"type": "layers", "diff_ids": [f"sha256:{digest}"]},
        "history": [{"created_by": "kumulus"}],
    }


def _add(packed: tarfile.TarFile, name: str, content: bytes) -> None:
    entry = tarfile.TarInfo(name)
    entry.size = len(content)
    packed.addfile(entry, io.BytesIO(content))
