"""The `docker` command: whether its engine answers, and an image put together of a root filesystem and other images.

containerd's store is filled by the very containerd of the node, in a container without network or privileges.
"""

import hashlib
import shutil
import subprocess
import time
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path

from kumulus.toolchain import progress
from kumulus.toolchain.errors import ToolchainError
from kumulus.toolchain.progress import ToolLine

_SECONDS: float = 30
# A busy Docker takes a while to remove gigabytes.
_REMOVAL_S: float = 300


def require() -> None:
    """Make sure that Docker can be used.

    Raises:
        ToolchainError: there is no `docker`, or its engine does not answer; with what to do.
    """
    if shutil.which("docker") is None:
        raise ToolchainError("there is no docker on PATH\n  On Debian and Ubuntu: apt install docker.io")
    if trouble := _trouble():
        raise _unanswered(trouble)


def label(image: str, name: str) -> str | None:
    """A label of an image; None when there is no such image, or it has none of that name."""
    try:
        answer = _ask("image", "inspect", "--format", f'{{{{index .Config.Labels "{name}"}}}}', image)
    except subprocess.TimeoutExpired:
        raise _unanswered(f"nothing within {_SECONDS:g} s") from None
    return answer.stdout.strip() or None if answer.returncode == 0 else None


def run(arguments: Sequence[str], step: ToolLine, log: Path, *, stdin: Path | None = None) -> None:
    """Run `docker` to its end."""
    try:
        if stdin is None:
            progress.run(["docker", *arguments], step, log)
        else:
            with stdin.open("rb") as file:
                progress.run(["docker", *arguments], step, log, stdin=file)
    except progress.Failed as failure:
        raise ToolchainError(f"docker {arguments[0]} failed:\n{failure.tail}\n  The whole log: {log}") from failure


def remove(kind: str, name: str) -> None:
    """Remove a "container" or an "image", if there is one of that name; one that stays is removed by the next run."""
    volumes = ["--volumes"] if kind == "container" else []
    with suppress(subprocess.TimeoutExpired):
        _ask(kind, "rm", "--force", *volumes, name, seconds=_REMOVAL_S)


def _unanswered(trouble: str) -> ToolchainError:
    return ToolchainError(
        f"Docker's engine does not answer: {trouble}"
        "\n  Start it (systemctl start docker), or set DOCKER_HOST to where it listens;"
        " for its socket a user needs the group docker."
    )


def _trouble() -> str:
    try:
        answer = _ask("version", "--format", "{{.Server.Version}}")
    except subprocess.TimeoutExpired:
        return f"nothing within {_SECONDS:g} s"
    return "" if answer.returncode == 0 else (answer.stderr.strip().splitlines() or ["it says nothing"])[-1]


def _ask(*arguments: str, seconds: float | None = None) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        ["docker", *arguments],
        capture_output=True,
        text=True,
        errors="replace",
        stdin=subprocess.DEVNULL,
        timeout=_SECONDS if seconds is None else seconds,
        check=False,
    )


_ENTRYPOINT = '["/usr/local/bin/entrypoint", "/sbin/init"]'
_CTR = ("ctr", "--namespace=k8s.io")
_START_S = 60


def make_image(name: str, labels: dict[str, str], root: Path, images: Path, step: ToolLine, log: Path) -> None:
    """Make the image."""
    # Others may make one at the same time, from a cache of their own, with the same Docker. A killed run's are removed.
    mine = hashlib.sha256(str(root).encode()).hexdigest()[:8]
    container, base = f"kumulus-node-image-{mine}", f"kumulus/node-base:unfinished-{mine}"
    packed = root.with_name("root.tar")
    remove("container", container)
    try:
        _pack(root, packed)
        run(["import", "-", base], step, log, stdin=packed)
        packed.unlink()
        # It ends by the signal that systemd takes for a shutdown; a commit keeps that, and cannot set it.
        start = ["run", "--detach", "--name", container, "--stop-signal=SIGRTMIN+3", "--network=none"]
        start += ["--security-opt=seccomp=unconfined", "--entrypoint=containerd", base]
        run(start, step, log)
        _await_containerd(container, step)
        fill = [*_CTR, "images", "import", "--all-platforms", "--no-unpack", "--digests", "-"]
        run(["exec", "--interactive", container, *fill], step, log, stdin=images)
        run(["kill", "--signal=TERM", container], step, log)
        run(["wait", container], step, log)
        settings = [f"ENTRYPOINT {_ENTRYPOINT}", "CMD []", "ENV container=docker"]
        settings += [f"LABEL {key}={value}" for key, value in labels.items()]
        changes = [part for setting in settings for part in ("--change", setting)]
        run(["commit", *changes, container, name], step, log)
    finally:
        packed.unlink(missing_ok=True)
        remove("container", container)
        remove("image", base)


def _pack(root: Path, packed: Path) -> None:
    command = ["tar", "--create", "--numeric-owner", "--file", str(packed), "--directory", str(root), "."]
    answer = subprocess.run(command, capture_output=True, text=True, errors="replace", check=False)
    if answer.returncode != 0:
        raise ToolchainError(f"the root filesystem of a node could not be packed:\n  {answer.stderr.strip()}")


def _await_containerd(container: str, step: ToolLine) -> None:
    give_up = time.monotonic() + _START_S
    command = ["docker", "exec", container, "ctr", "version"]
    while subprocess.run(command, capture_output=True, stdin=subprocess.DEVNULL, check=False).returncode != 0:
        if time.monotonic() > give_up:
            log = subprocess.run(["docker", "logs", "--tail=5", container], capture_output=True, text=True, check=False)
            raise ToolchainError(f"the node's containerd did not start in {_START_S} s:\n  {log.stderr.strip()}")
        step.tick()
        time.sleep(0.2)
