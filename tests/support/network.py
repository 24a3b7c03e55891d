"""Restores the machine's network: a Docker engine leaves its bridge, its rules, and forwarding enabled."""

import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

_BRIDGE = "docker0"
_FORWARDING = Path("/proc/sys/net/ipv4/ip_forward")
_TABLES = ("filter", "nat", "mangle", "raw")


@contextmanager
def kept() -> Iterator[None]:
    """Restore the network at the end of the block."""
    had_bridge = Path("/sys/class/net", _BRIDGE).exists()
    forwarding = _FORWARDING.read_text()
    rules = {program: _rules(program) for program in ("iptables", "ip6tables")}
    try:
        yield
    finally:
        if not had_bridge:
            _run("ip", "link", "delete", _BRIDGE)
        for program, before in rules.items():
            if before is not None:
                _restore(program, before)
        _FORWARDING.write_text(forwarding)


def _rules(program: str) -> str | None:
    try:
        return _run(f"{program}-save").stdout
    except FileNotFoundError:
        return None


def _restore(program: str, before: str) -> None:
    # A table that had no rules may be missing from the saved rules; restoring these would not empty it.
    for table in _TABLES:
        if f"*{table}\n" not in before:
            _run(program, "--table", table, "--flush")
            _run(program, "--table", table, "--delete-chain")
    if "*filter\n" not in before:
        _run(program, "--policy", "FORWARD", "ACCEPT")
    _run(f"{program}-restore", given=before)


def _run(*command: str, given: str = "") -> subprocess.CompletedProcess[str]:
    return subprocess.run(command, input=given, capture_output=True, text=True, errors="replace", check=False)
