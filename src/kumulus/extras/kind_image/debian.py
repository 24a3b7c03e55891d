"""The root filesystem of a node: Debian's packages, our files, Kubernetes' programs.

Debian's `debootstrap` makes it, as root. What is mounted for that is mounted in a namespace of its own, which ends with
the command, however that ends.
"""

import os
import re
import shutil
import subprocess
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from kumulus.toolchain import progress
from kumulus.toolchain.errors import ToolchainError
from kumulus.toolchain.progress import ToolLine

SUITE = "bookworm"
FILES = Path(__file__).resolve().parent / "files"

# systemd and containerd as a node's first programs; the rest is what kubelet, kube-proxy and kind call.
_PACKAGES = (
    "systemd systemd-sysv dbus containerd runc containernetworking-plugins iptables nftables iproute2 conntrack ethtool"
    " socat kmod mount procps util-linux hostname netbase ca-certificates curl jq"
)
# What a container has no use for, or what would change the host's kernel.
_MASKED = (
    "systemd-binfmt.service proc-sys-fs-binfmt_misc.automount systemd-modules-load.service systemd-udevd.service"
    " systemd-udev-trigger.service systemd-sysctl.service systemd-tmpfiles-setup.service sys-kernel-config.mount"
    " sys-kernel-debug.mount sys-kernel-tracing.mount sys-fs-fuse-connections.mount systemd-remount-fs.service"
    " systemd-firstboot.service"
)
_DROPPED = (
    "var/lib/apt/lists/*", "var/cache/apt/*.bin", "usr/share/doc/*", "usr/share/locale/*", "usr/share/man/*",
    "usr/share/info/*", "etc/systemd/system/*.wants/*", "lib/systemd/system/sockets.target.wants/*udev*",
    "lib/systemd/system/sockets.target.wants/*initctl*", "lib/systemd/system/multi-user.target.wants/getty.target",
    "lib/systemd/system/multi-user.target.wants/systemd-logind.service",
    "lib/systemd/system/multi-user.target.wants/systemd-update-utmp-runlevel.service",
    "lib/systemd/system/multi-user.target.wants/systemd-ask-password-wall.path",
)  # fmt: skip
_IN_NODE = {"kubeadm": "usr/bin", "kubelet": "usr/bin", "kubectl": "usr/bin", "crictl": "usr/local/bin"}
_PROXY_PROGRAMS = ("xtables-nft-multi", "xtables-legacy-multi", "nft", "conntrack")


def require() -> None:
    """Make sure that a root filesystem can be made on this machine.

    Raises:
        ToolchainError: it cannot; names everything that is missing.
    """
    lacking = []
    if os.geteuid() != 0:
        lacking.append("root, which debootstrap needs: sudo ./kumulus kind-image")
    if shutil.which("debootstrap") is None:
        lacking.append("debootstrap: apt install debootstrap (Debian and Ubuntu)")
    if shutil.which("unshare") is None:
        lacking.append("unshare: apt install util-linux (Debian and Ubuntu)")
    if lacking:
        raise ToolchainError("\n  ".join(["a node image cannot be made here; missing:", *lacking]))


@dataclass(frozen=True)
class NodeContents:
    """What is in a node besides Debian."""

    version: str
    """Of Kubernetes, without a leading `v`."""
    programs: Mapping[str, Path]
    """The executables of Kubernetes and ours, by name."""
    sandbox: str
    """The name of the image that holds a pod's namespaces."""


def make(root: Path, node: NodeContents, mirror: str | None, step: ToolLine, log: Path) -> None:
    """Make the root filesystem.

    Args:
        root: an empty directory for it.
        node: what comes into it.
        mirror: URL of a mirror of Debian; debootstrap's own choice without it.
    """
    include = ",".join(_PACKAGES.split())
    command = ["debootstrap", "--variant=minbase", f"--include={include}", SUITE, str(root)]
    _run([*command, *([mirror] if mirror else [])], step, log)
    _in_root(root, ["apt-get", "clean"], step, log)
    for pattern in _DROPPED:
        for path in root.glob(pattern):
            shutil.rmtree(path) if path.is_dir() and not path.is_symlink() else path.unlink()
    shutil.copytree(FILES, root, dirs_exist_ok=True, symlinks=True)
    settings = root / "etc/containerd/config.toml"
    settings.write_text(settings.read_text().replace("@PAUSE@", node.sandbox))
    # Where kind looks which version to set up.
    (root / "kind/version").write_text(f"v{node.version}")
    for name, folder in _IN_NODE.items():
        shutil.copy(node.programs[name], root / folder / name)
    _in_root(root, ["systemctl", "set-default", "multi-user.target"], step, log)
    _in_root(root, ["systemctl", "enable", "containerd", "kubelet"], step, log)
    _in_root(root, ["systemctl", "mask", *_MASKED.split()], step, log)
    # Copied files have the owner of the checkout.
    for path in FILES.rglob("*"):
        os.chown(root / path.relative_to(FILES), 0, 0, follow_symlinks=False)


def of_proxy(root: Path, program: Path) -> tuple[dict[str, Path], dict[str, str]]:
    """What kube-proxy's image consists of: itself, and the programs it sets rules with, taken from a root filesystem.

    These are files by their path in the image, and what links there point to.
    """
    plugins = sorted((root / "usr/lib").glob("*/xtables/*.so"))
    taken = [*(root / "usr/sbin" / name for name in _PROXY_PROGRAMS), *plugins]
    inside = [f"/{path.relative_to(root)}" for path in taken]
    # The plugins too are asked for what they need: without libm every rule of a Service fails.
    libraries = _libraries(root, inside)
    files = {path.lstrip("/"): (root / path.lstrip("/")).resolve() for path in (*inside, *libraries)}
    names = [f"{family}{suffix}" for family in ("iptables", "ip6tables") for suffix in ("", "-save", "-restore")]
    links = {f"usr/sbin/{name}": "xtables-nft-multi" for name in names}
    return {**files, "usr/local/bin/kube-proxy": program}, links


def _libraries(root: Path, inside: Sequence[str]) -> list[str]:
    command = ["chroot", str(root), "ldd", *inside]
    # It ends with 1 when one of them is a static program.
    answer = subprocess.run(command, capture_output=True, text=True, errors="replace", check=False)
    return sorted(set(re.findall(r"(/\S+\.so\S*) \(0x", answer.stdout)))


def _in_root(root: Path, command: Sequence[str], step: ToolLine, log: Path) -> None:
    _run(["chroot", str(root), *command], step, log)


def _run(command: Sequence[str], step: ToolLine, log: Path) -> None:
    # The kernel ends with the namespace whatever was started in it, and takes its mounts along.
    namespace = ["unshare", "--mount", "--pid", "--fork", "--kill-child"]
    try:
        progress.run([*namespace, *command], step, log)
    except progress.Failed as failure:
        raise ToolchainError(
            f"the root filesystem of a node could not be made: {command[0]} ended with exit code {failure.code}"
            f"\n{failure.tail}\n  The whole log: {log}"
        ) from failure
