"""A program in a sandbox that forbids netlink sockets, as gVisor and systemd's RestrictAddressFamilies do."""

import platform

# The number of the system call socket(2), and the architecture's in linux/audit.h, by machine.
_SOCKET = {"x86_64": 41, "aarch64": 198}

WITHOUT_NETLINK = f"""
import ctypes, socket, struct
# A seccomp filter (linux/seccomp.h): socket() of the family AF_NETLINK fails with EAFNOSUPPORT, all else is allowed.
steps = [(0x20, 0, 0, 0), (0x15, 0, 3, {_SOCKET.get(platform.machine(), -1)}), (0x20, 0, 0, 16),
         (0x15, 0, 1, socket.AF_NETLINK), (0x06, 0, 0, 0x00050000 | 97), (0x06, 0, 0, 0x7FFF0000)]
code = ctypes.create_string_buffer(b"".join(struct.pack("=HBBI", *step) for step in steps))
program = ctypes.create_string_buffer(struct.pack("@HP", len(steps), ctypes.addressof(code)))
libc = ctypes.CDLL(None, use_errno=True)
assert libc.prctl(38, 1, 0, 0, 0) == 0 and libc.prctl(22, 2, program, 0, 0) == 0, ctypes.get_errno()
try:
    socket.socket(socket.AF_NETLINK)
    raise AssertionError("the sandbox does not work")
except OSError:
    pass
"""
"""Python that begins a program in the sandbox."""
