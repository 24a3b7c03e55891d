"""The node image as a whole: made once, kept as an archive for this user, loaded into Docker when it is not there."""

import hashlib
import re
import shutil
import subprocess
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from kumulus.extras.kind_image import containers, debian, docker
from kumulus.extras.kind_image.containers import ContainerImage
from kumulus.toolchain import cache, pins, progress, supply
from kumulus.toolchain.errors import ToolchainError
from kumulus.toolchain.progress import ToolLine, say

_HERE = Path(__file__).resolve().parent
_LABEL = "kumulus.io/made-from"
# Files here that have no part in the image.
_NO_PART = ("command.py", "extra.py")
# Our own images, by their program; the manifest of the pod network in files/ names its too.
_OURS = {"cnisync": "kumulus/cnisync:node", "hello": "kumulus/hello:node"}
_CONTROL_PLANE = ("kube-apiserver", "kube-controller-manager", "kube-scheduler")
_TOOLS = (*_CONTROL_PLANE, "kubectl", "etcd", "kwok", "kwok-charts", "kind-node")


@dataclass(frozen=True)
class BuiltImage:
    """A node image that is there."""

    name: str
    """Its name in Docker, for a stack's kind image."""
    archive: Path
    """The file it is kept in, for `docker load` on another machine."""


def version() -> str:
    """The Kubernetes version of its nodes: the pinned one, without a leading `v`."""
    return pins.load().default_kubernetes


def name() -> str:
    """The image's name in Docker."""
    return f"kumulus/node:v{version()}"


def folder() -> Path:
    """Where the archive is kept."""
    return cache.root() / "kind-image"


def archive() -> Path:
    """The archive of an image made from what there is now, whether it exists or not."""
    return folder() / f"node-{made_from()}.tar.gz"


def made_from() -> str:
    """A hash of everything of ours that decides what the image is; Debian's packages are those of the day."""
    known = pins.load()
    tools = [tool for each in _TOOLS for tool in known.named(each)]
    digest = hashlib.sha256(" ".join(tool.stamp() for tool in tools).encode())
    files = (file for file in _HERE.rglob("*") if file.is_file() and "__pycache__" not in file.parts)
    for file in sorted(file for file in files if file.name not in _NO_PART):
        digest.update(f"\0{file.relative_to(_HERE)}\0{file.stat().st_mode & 0o111}\0".encode())
        digest.update(file.read_bytes())
    return digest.hexdigest()[:16]


def ensure(mirror: str | None = None, anew: bool = False) -> BuiltImage:
    """Make sure that Docker has the image: as it is, from the archive, or made now.

    Args:
        mirror: URL of a mirror of Debian; debootstrap's own choice without it.
        anew: make it again even if it exists, with the packages that Debian has now.
    """
    docker.require()
    wanted = BuiltImage(name(), archive())
    with cache.exclusive(folder() / "lock", "making the node image", say):
        if not anew and docker.label(wanted.name, _LABEL) == made_from():
            return wanted
        if anew or not wanted.archive.exists():
            _make(wanted, mirror)
        else:
            step = ToolLine(f"{wanted.name} from {wanted.archive}")
            docker.run(["load", "--quiet", "--input", str(wanted.archive)], step, folder() / "log")
            step.end(f"loaded in {step.seconds} s")
    return wanted


def _make(wanted: BuiltImage, mirror: str | None) -> None:
    debian.require()
    programs = supply.built(_TOOLS)
    names = _image_names(programs["kubeadm"])
    log, work = folder() / "log", folder() / "work"
    log.write_bytes(b"")
    # What a killed run left; its mounts ended with it.
    shutil.rmtree(work, ignore_errors=True)
    work.mkdir()
    root, images = work / "root", work / "images.tar"
    try:
        step = ToolLine(f"[1/4] root filesystem of Debian {debian.SUITE}")
        debian.make(root, debian.NodeContents(version(), programs, names["pause"]), mirror, step, log)
        _end(step)
        brought = _containers(names, programs, root)
        step = ToolLine(f"[2/4] {len(brought)} images that it brings along")
        containers.write(images, brought, work)
        _end(step)
        step = ToolLine(f"[3/4] {wanted.name}")
        docker.make_image(wanted.name, {_LABEL: made_from()}, root, images, step, log)
        _end(step)
        step = ToolLine(f"[4/4] {wanted.archive}")
        _save(wanted, work, step, log)
        _end(step)
    finally:
        shutil.rmtree(work, ignore_errors=True)


def _end(step: ToolLine) -> None:
    step.end(f"{step.seconds} s")


def _image_names(kubeadm: Path) -> dict[str, str]:
    """The images that kubeadm will ask for, by their last name: it has them with registry and tag."""
    command: Sequence[str | Path] = [kubeadm, "config", "images", "list", "--kubernetes-version"]
    command = [*command, f"v{version()}"]
    answer = subprocess.run(command, capture_output=True, text=True, stdin=subprocess.DEVNULL, check=False)
    names = {line.rsplit("/", 1)[-1].split(":")[0]: line for line in answer.stdout.split()}
    if answer.returncode != 0 or not {"pause", "etcd", "coredns", "kube-proxy", *_CONTROL_PLANE} <= set(names):
        raise ToolchainError(f"kubeadm does not say which images it wants:\n  {answer.stderr.strip()}")
    return names


def _containers(names: Mapping[str, str], programs: Mapping[str, Path], root: Path) -> list[ContainerImage]:
    files, links = debian.of_proxy(root, programs["kube-proxy"])
    alone = [each for each in names if each != "kube-proxy"]
    return [
        *(containers.program(names[each], programs[each]) for each in alone),
        ContainerImage(names["kube-proxy"], files, links),
        *(containers.program(ours, programs[each]) for each, ours in _OURS.items()),
        containers.program(_kwok_image(), programs["kwok"]),
    ]


def _kwok_image() -> str:
    """KWOK's image, which its chart names without a tag."""
    known = pins.load()
    charts = known.tool("kwok-charts")
    values = (cache.kept(cache.home_of(known, charts), charts) / "kwok" / "values.yaml").read_text()
    repository = re.search(r"^\s+repository:\s*(\S+)$", values, re.MULTILINE)
    if repository is None:
        raise ToolchainError("KWOK's chart does not name an image")
    return f"{repository[1]}:v{known.tool('kwok').version}"


def _save(wanted: BuiltImage, work: Path, step: ToolLine, log: Path) -> None:
    plain, packed = work / "image.tar", work / "image.tar.gz"
    docker.run(["save", "--output", str(plain), wanted.name], step, log)
    try:
        # The fastest level: most of the content is programs, and the best would save only another tenth.
        progress.run(["gzip", "-1", "--stdout", str(plain)], step, log, stdout=packed)
    except progress.Failed as failure:
        raise ToolchainError(f"the node image could not be packed:\n{failure.tail}") from failure
    for earlier in folder().glob("node-*.tar.gz"):
        earlier.unlink()
    packed.replace(wanted.archive)
