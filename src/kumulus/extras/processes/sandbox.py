"""``python -I -S sandbox.py FD ADDRESS PORT NAME``: the first process of a pod, in namespaces of its own.

It makes them, starts the pod's containers as it is asked, and tells what they ended with; when it ends, the kernel ends
every process of the pod. It needs no privileges where the kernel allows user namespaces (man 7 user_namespaces). What a
container sees of this machine: `/usr` and what belongs to it, read-only, its own program, and its volumes. Its network
has an interface `lo` alone. This process makes sockets there for the kubelet outside: a socket stays in the namespace
in which it was made, whoever has it.

Only the standard library is needed here, so that it starts in milliseconds.
"""

import contextlib
import ctypes
import fcntl
import json
import os
import select
import signal
import socket
import struct
import sys
from pathlib import Path
from typing import Any

USER = 65532
"""The user's id that a pod's programs see: distroless images' `nonroot`. Outside, it is the user who runs Kumulus."""
_LIBC = ctypes.CDLL(None, use_errno=True)
_NEW_MOUNTS, _NEW_UTS, _NEW_IPC, _NEW_USER, _NEW_PIDS, _NEW_NET = (
    *(0x00020000, 0x04000000, 0x08000000),
    *(0x10000000, 0x20000000, 0x40000000),
)
_READ_ONLY, _NO_SUID, _NO_DEVICES, _REMOUNT, _BIND, _RECURSIVE, _PRIVATE, _RELATIVE_TIMES = (
    *(1, 2, 4, 32, 4096),
    *(16384, 1 << 18, 1 << 21),
)
_KEPT = 1 | 2 | 4 | 8 | 1024 | 2048
"""Flags of a mount that a remount in a user namespace must not clear; statvfs has them by the same numbers."""
_STATVFS_RELATIVE_TIMES = 4096
_DIES_WITH_PARENT, _NO_NEW_PRIVILEGES, _NOT_DUMPABLE = (
    tuple(map(ctypes.c_ulong, each)) for each in ((1, signal.SIGKILL, 0, 0, 0), (38, 1, 0, 0, 0), (4, 0, 0, 0, 0))
)
_SYSTEM = ("usr", "bin", "sbin", "lib", "lib32", "lib64")
_DEVICES = ("null", "zero", "full", "random", "urandom")
_ETC = {
    "passwd": f"nonroot:x:{USER}:{USER}:nonroot:/tmp:/sbin/nologin\n",
    "group": f"nonroot:x:{USER}:\n",
    "hosts": "127.0.0.1 localhost\n",
}
_CERTIFICATES = ("/etc/ssl", "/etc/pki", "/etc/ca-certificates")


def main(control: socket.socket, address: str, port: int, name: str) -> int:
    """Make the namespaces, and serve in them until the other end of the connection is closed; returns an exit code."""
    _call("prctl", *_DIES_WITH_PARENT)
    user, group = os.getuid(), os.getgid()
    _call("unshare", _NEW_USER | _NEW_NET | _NEW_MOUNTS | _NEW_UTS | _NEW_IPC | _NEW_PIDS)
    for file, text in (("setgroups", "deny"), ("uid_map", f"{USER} {user} 1"), ("gid_map", f"{USER} {group} 1")):
        Path("/proc/self", file).write_text(text)
    if pid := os.fork():
        return os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])
    # The first process of the new process table: with it, the kernel ends all others.
    _call("prctl", *_DIES_WITH_PARENT)
    _call("prctl", *_NOT_DUMPABLE)
    os.setsid()
    _mount(None, "/", None, _RECURSIVE | _PRIVATE)
    socket.sethostname(name[:63])
    _network(address)
    with socket.create_server(("127.0.0.1", port), backlog=128) as listening:
        socket.send_fds(control, [b'{"listening": true}'], [listening.fileno()])
    _serve(control)
    return 0


def _network(address: str) -> None:
    """Give the pod its address, by which its programs may listen; ports below 1024 are as any other there."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as asking:
        for interface, where in ((b"lo", "127.0.0.1"), (b"lo:1", address)):
            packed = struct.pack("16sHH4s8x", interface, socket.AF_INET, 0, socket.inet_aton(where))
            fcntl.ioctl(asking, 0x8916, packed)  # SIOCSIFADDR
            fcntl.ioctl(asking, 0x8914, struct.pack("16sH14x", interface, 0x1))  # SIOCSIFFLAGS: IFF_UP
    Path("/proc/sys/net/ipv4/ip_unprivileged_port_start").write_text("0")


def _serve(control: socket.socket) -> None:
    woken, wake = os.pipe()
    for each in (woken, wake):
        os.set_blocking(each, False)
    signal.set_wakeup_fd(wake)
    signal.signal(signal.SIGCHLD, lambda *_: None)
    while True:
        ready, _, _ = select.select([control.fileno(), woken], [], [])
        if woken in ready:
            os.read(woken, 4096)
            for pid, code in _ended():
                control.send(json.dumps({"ended": pid, "code": code}).encode())
        if control.fileno() in ready:
            message = control.recv(1 << 20)
            if not message:
                return
            _do(control, json.loads(message))


def _do(control: socket.socket, asked: dict[str, Any]) -> None:
    if asked["do"] == "socket":
        with socket.socket() as fresh:
            socket.send_fds(control, [b'{"socket": true}'], [fresh.fileno()])
    elif asked["do"] == "signal":
        with contextlib.suppress(ProcessLookupError):
            os.killpg(asked["pid"], asked["signal"])
    elif pid := os.fork():
        control.send(json.dumps({"started": asked["name"], "pid": pid}).encode())
    else:
        _container(asked)


def _ended() -> list[tuple[int, int]]:
    found = []
    with contextlib.suppress(ChildProcessError):
        while (ended := os.waitpid(-1, os.WNOHANG))[0]:
            code = os.waitstatus_to_exitcode(ended[1])
            found.append((ended[0], 128 - code if code < 0 else code))
            with contextlib.suppress(ProcessLookupError):
                # As in a container: with its first process, its others end.
                os.killpg(ended[0], signal.SIGKILL)
    return found


def _container(asked: dict[str, Any]) -> None:
    """Become the program of a container."""
    try:
        signal.set_wakeup_fd(-1)
        signal.signal(signal.SIGCHLD, signal.SIG_DFL)
        os.setsid()
        log = os.open(asked["log"], os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
        os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
        os.dup2(log, 1)
        os.dup2(log, 2)
        _call("unshare", _NEW_MOUNTS)
        _root(asked["root"], asked["mounts"])
        os.chroot(asked["root"])
        os.chdir(asked["directory"])
        _call("prctl", *_NO_NEW_PRIVILEGES)
        # The user is not the namespace's root, so that the program has none of its capabilities.
        os.execve(asked["program"], asked["arguments"], asked["environment"])
    except OSError as error:
        os.write(2, f"cannot be started: {error}\n".encode())
    finally:
        os._exit(128)


def _root(root: str, mounts: list[tuple[str, str, bool]]) -> None:
    """A file system with the system's programs and libraries, and with files of these places, read-only or not."""
    _mount("tmpfs", root, "tmpfs", _NO_SUID | _NO_DEVICES, "mode=0755,size=256m")
    for name in _SYSTEM:
        if os.path.islink(f"/{name}"):
            os.symlink(os.readlink(f"/{name}"), f"{root}/{name}")
        elif os.path.isdir(f"/{name}"):
            _bind(f"/{name}", f"{root}/{name}", read_only=True)
    for name in _DEVICES:
        _bind(f"/dev/{name}", f"{root}/dev/{name}", read_only=False)
    for name in ("proc", "tmp", "etc"):
        os.makedirs(f"{root}/{name}")
    with contextlib.suppress(PermissionError):
        # In a container of Docker's, where part of /proc is hidden, the kernel refuses.
        _mount("proc", f"{root}/proc", "proc", _NO_SUID | _NO_DEVICES)
    for name, text in _ETC.items():
        Path(root, "etc", name).write_text(text)
    for place in filter(os.path.isdir, _CERTIFICATES):
        _bind(place, root + place, read_only=True)
    for source, target, read_only in sorted(mounts, key=lambda each: each[1]):
        _bind(source, root + target, read_only=read_only)


def _bind(source: str, target: str, *, read_only: bool) -> None:
    if os.path.isdir(source):
        os.makedirs(target, exist_ok=True)
    elif not os.path.exists(target):
        os.makedirs(os.path.dirname(target), exist_ok=True)
        Path(target).touch()
    _mount(source, target, None, _BIND | _RECURSIVE)
    if read_only:
        there = os.statvfs(target).f_flag
        kept = there & _KEPT | (_RELATIVE_TIMES if there & _STATVFS_RELATIVE_TIMES else 0)
        _mount(None, target, None, _BIND | _REMOUNT | _READ_ONLY | kept)


def _mount(source: str | None, target: str, kind: str | None, flags: int, options: str | None = None) -> None:
    texts = [each.encode() if each is not None else None for each in (source, target, kind, options)]
    _call("mount", texts[0], texts[1], texts[2], ctypes.c_ulong(flags), texts[3], of=f"mount {target}")


def _call(name: str, *arguments: Any, of: str = "") -> None:
    if getattr(_LIBC, name)(*arguments) == -1:
        number = ctypes.get_errno()
        raise OSError(number, os.strerror(number), of or name)


if __name__ == "__main__":
    sys.exit(main(socket.socket(fileno=int(sys.argv[1])), sys.argv[2], int(sys.argv[3]), sys.argv[4]))
