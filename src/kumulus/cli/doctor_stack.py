"""What a stack would need of this machine: its tools and how they would be had, ports, Docker, memory."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path
from typing import TYPE_CHECKING

from kumulus.cli import needs, project, stack_file
from kumulus.cli.doctor import Finding, short
from kumulus.host.installation import pulumi_home
from kumulus.toolchain import pins, plugins, releases, supply
from kumulus.toolchain.locate import locate
from kumulus.toolchain.pins import Tool
from kumulus.toolchain.venv import enter_venv

if TYPE_CHECKING:
    from kumulus.stackfile.load import LoadedCluster

_DOCKER_S = 15


def examine(which: str | Path) -> list[Finding]:
    """Look at everything that a stack needs."""
    enter_venv()
    described = stack_file.described_by(which) if isinstance(which, Path) else stack_file.described(which)
    clusters = list(described.clusters.values()) if described else []
    wanted = needs.of_all(clusters) if clusters else needs.everything()
    findings = tools(wanted)
    if local := [each for each in clusters if each.spec.runtime_descriptor.local]:
        findings += [*(found for each in local for found in _ports(each)), _memory(local), *_inotify(local)]
    if any(each.spec.runtime_descriptor.container_engine for each in clusters):
        findings.append(_docker())
    return findings


def how(tools: list[Tool]) -> str:
    """How missing tools would be obtained here: `download, about 180 MB; build, about 8 min`."""
    mode = releases.mode()
    files = {tool.release.url: tool.release.megabytes for tool in tools if tool.release and mode != "build"}
    building = [tool for tool in tools if tool.buildable and (mode == "build" or tool.release is None)]
    steps = [f"download, about {sum(files.values()):,} MB"] if files else []
    if building and mode != "download":
        steps.append(f"build{supply.duration(building)}")
    if unpinned := " ".join(f"--with {tool.name}" for tool in tools if tool.unpinned):
        steps.append(f"download, once its digest is accepted: tools {unpinned} --accept-digest")
    return "; ".join(steps) or f"unavailable with KUMULUS_TOOLS={mode}"


def tools(wanted: needs.Needs) -> list[Finding]:
    """For each tool that is needed: whether it is there, or how it would be obtained."""
    known = pins.load()
    findings = []
    due: list[Tool] = []
    # The first tool of each file, as several may come in one.
    first_of: dict[str, str] = {}
    chosen: list[Tool] = []
    for version in wanted.versions:
        chosen += [tool for tool in supply.chosen(wanted.tools, version, known) if tool not in chosen]
    for tool in chosen:
        location = locate(known, tool)
        if location.path is not None:
            findings.append(
                Finding(tool.name, "ok", location.version, f"{location.source}: {short(location.path)}", "")
            )
        elif tool.name == plugins.COMMAND and plugins.has_command_plugin(pulumi_home()):
            findings.append(Finding(tool.name, "ok", "-", short(pulumi_home() / "plugins"), tool.purpose))
        else:
            steps = how([tool])
            first = first_of.setdefault(tool.release.url, tool.name) if tool.release else tool.name
            if first != tool.name and "download" in steps:
                steps = f"download, with {first}"
            findings.append(Finding(tool.name, "due", tool.version, steps, tool.purpose, location.note))
            due.append(tool)
    if len(due) > 1:
        findings.append(Finding("in all", "note", "-", how(due), ""))
    return findings


def _ports(loaded: LoadedCluster) -> list[Finding]:
    from kumulus.host import ports

    wanted = loaded.spec.kwok.apiServerPort
    if wanted is None:
        return []
    name, purpose = f"port {wanted}", "kwok.apiServerPort"
    own = _is_there(loaded)
    if own or not ports.in_use(wanted):
        return [Finding(name, "ok", "-", "this stack's own" if own else "free", purpose)]
    remedy = "end what listens there, or choose another kwok.apiServerPort"
    return [Finding(name, "missing", "-", "something else listens there", purpose, "", remedy)]


def _is_there(loaded: LoadedCluster) -> bool:
    return (project.clusters_directory() / loaded.cluster_name).is_dir()


def _memory(clusters: list[LoadedCluster]) -> Finding:
    import psutil

    from kumulus.host.machine import memory_bytes
    from kumulus.model import scale

    machine = scale.MachineSize(cores=psutil.cpu_count() or 1, memory_mb=memory_bytes() / 1e6)
    fleets = [(sum(pool.replicas for pool in each.pools), each.spec.kwok.heartbeatFactor) for each in clusters]
    found = scale.together([scale.cost(count, machine, factor) for count, factor in fleets])
    problems = scale.limits(found, machine)
    needed = f"of {machine.memory_mb / 1000:.1f} GB, for {found.nodes:,} nodes"
    version, state = f"{found.total_memory_mb / 1000:.1f} GB", "low" if problems else "ok"
    return Finding("memory", state, version, needed, "by the model of `plan`", "; ".join(problems))


def _inotify(clusters: list[LoadedCluster]) -> list[Finding]:
    """Whether the user's programs may watch as many files as the clusters that are not there yet will.

    Without an instance, Kubernetes' components look at their files now and then instead; Kueue ends.
    """
    from kumulus.host import inotify
    from kumulus.model import scale

    most = inotify.limit()
    if most is None:
        return []
    queued = ["federation" in each.joined for each in clusters if not _is_there(each)]
    needed, used = sum(scale.inotify_instances(kueue=kueue) for kueue in queued), inotify.used()
    place, purpose = f"of {most} for this user, {used} in use", "instances that watch files"
    if used + needed <= most:
        return [Finding("inotify", "ok", str(needed), place, purpose)]
    remedy = inotify.remedy(used + needed)
    if any(queued):
        return [Finding("inotify", "missing", str(needed), place, purpose, "Kueue ends if there is none left", remedy)]
    return [Finding("inotify", "low", str(needed), place, purpose, f"more than are left; {remedy}")]


def _docker() -> Finding:
    purpose, remedy = "runs the nodes of the runtime kind", "start Docker, or let this user use it"
    program = shutil.which("docker")
    if program is None:
        return Finding("docker", "missing", "-", "not on PATH", purpose, "", "install Docker")
    asked = [program, "version", "--format", "{{.Server.Version}}"]
    try:
        answer = subprocess.run(asked, capture_output=True, text=True, timeout=_DOCKER_S, check=False)
    except (OSError, subprocess.TimeoutExpired):
        line = ""
    else:
        if answer.returncode == 0:
            return Finding("docker", "ok", answer.stdout.strip(), short(Path(program)), purpose)
        line = (answer.stderr.strip().splitlines() or ["no answer"])[-1]
    return Finding("docker", "missing", "-", "does not answer", purpose, line, remedy)
