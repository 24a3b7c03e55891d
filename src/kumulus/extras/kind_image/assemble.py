"""A root filesystem and the images it brings along, put together as an image in Docker.

containerd's store is filled by the very containerd of the node, in a container without network or privileges.
"""

import hashlib
import subprocess
import time
from pathlib import Path

from kumulus.extras.kind_image import docker
from kumulus.toolchain.errors import ToolchainError
from kumulus.toolchain.progress import ToolLine

_ENTRYPOINT = '["/usr/local/bin/entrypoint", "/sbin/init"]'
_CTR = ("ctr", "--namespace=k8s.io")
_START_SECONDS = 60


def make(name: str, labels: dict[str, str], root: Path, images: Path, step: ToolLine, log: Path) -> None:
    """Make the image.

    Args:
        name: its name, with a tag; an image of that name is replaced.
    """
    # Others may make one at the same time, from a cache of their own, with the same Docker. A killed run's are removed.
    mine = hashlib.sha256(str(root).encode()).hexdigest()[:8]
    container, base = f"kumulus-node-image-{mine}", f"kumulus/node-base:unfinished-{mine}"
    packed = root.with_name("root.tar")
    docker.remove("container", container)
    try:
        _pack(root, packed)
        docker.run(["import", "-", base], step, log, stdin=packed)
        packed.unlink()
        # It ends by the signal that systemd takes for a shutdown; a commit keeps that, and cannot set it.
        start = ["run", "--detach", "--name", container, "--stop-signal=SIGRTMIN+3", "--network=none"]
        start += ["--security-opt=seccomp=unconfined", "--entrypoint=containerd", base]
        docker.run(start, step, log)
        _await_containerd(container, step)
        fill = [*_CTR, "images", "import", "--all-platforms", "--no-unpack", "--digests", "-"]
        docker.run(["exec", "--interactive", container, *fill], step, log, stdin=images)
        docker.run(["kill", "--signal=TERM", container], step, log)
        docker.run(["wait", container], step, log)
        settings = [f"ENTRYPOINT {_ENTRYPOINT}", "CMD []", "ENV container=docker"]
        settings += [f"LABEL {key}={value}" for key, value in labels.items()]
        changes = [part for setting in settings for part in ("--change", setting)]
        docker.run(["commit", *changes, container, name], step, log)
    finally:
        packed.unlink(missing_ok=True)
        docker.remove("container", container)
        docker.remove("image", base)


def _pack(root: Path, packed: Path) -> None:
    command = ["tar", "--create", "--numeric-owner", "--file", str(packed), "--directory", str(root), "."]
    answer = subprocess.run(command, capture_output=True, text=True, errors="replace", check=False)
    if answer.returncode != 0:
        raise ToolchainError(f"the root filesystem of a node could not be packed:\n  {answer.stderr.strip()}")


def _await_containerd(container: str, step: ToolLine) -> None:
    give_up = time.monotonic() + _START_SECONDS
    command = ["docker", "exec", container, "ctr", "version"]
    while subprocess.run(command, capture_output=True, stdin=subprocess.DEVNULL, check=False).returncode != 0:
        if time.monotonic() > give_up:
            log = subprocess.run(["docker", "logs", "--tail=5", container], capture_output=True, text=True, check=False)
            raise ToolchainError(f"the node's containerd did not start in {_START_SECONDS} s:\n  {log.stderr.strip()}")
        step.tick()
        time.sleep(0.2)
