"""Record what this version of Kumulus leaves behind, so that later versions can be tested with it.

    python -m tests.support.record_release            # this checkout
    python -m tests.support.record_release /elsewhere # another, with a .venv of its own

Brings the stack of tests/data/recorded-stack.yaml up with the checkout's own program and plugin, stops the control
plane cleanly, and writes a directory below tests/data/releases, which tests/e2e/test_upgrade.py finds by itself.
Takes a minute; do it for each release, from a checkout without changes. tests/data/README.md says what
is in it.
"""

import json
import runpy
import shutil
import subprocess
import sys
import tarfile
import tempfile
from pathlib import Path

import psutil
import yaml

from kumulus import toolchain
from kumulus.host import machine
from kumulus.toolchain import plugins
from tests.support import charts, processes
from tests.support.pods import JOBS, PODS, TOLERATE_ALL, pod
from tests.support.project import ROOT, Project
from tests.support.releases import PACKED, RELEASES, Recording

STACK = "recorded"
_STACK_FILE = ROOT / "tests" / "data" / "recorded-stack.yaml"
# Files that are history only or are recreated: etcd's next log file (64 MB, empty) and the programs' logs.
_LEFT_OUT = (".log", ".tmp", ".pid")
# Ordered so that each can still write to the next while it stops.
_ORDER = ("kwok-controller", "kube-scheduler", "kube-controller-manager", "kube-apiserver", "etcd")
_JOB = {
    "metadata": {"name": "train"},
    "spec": {
        "template": {
            "spec": {
                "restartPolicy": "Never",
                "tolerations": TOLERATE_ALL,
                "containers": [{"name": "main", "image": "none"}],
            }
        }
    },
}


def record(checkout: Path) -> Path:
    """Record the version in a checkout; returns the directory that was written.

    Args:
        checkout: its folder, with a `.venv`.

    Raises:
        AssertionError: pulumi failed; the message has its output.
    """
    commit = _git(checkout, "rev-parse", "--short", "HEAD")
    version = runpy.run_path(str(checkout / "src" / "kumulus" / "host" / "version.py"))["VERSION"]
    with tempfile.TemporaryDirectory(prefix="kumulus-recording-") as folder:
        project = Project(Path(folder), checkout, checkout / ".venv")
        try:
            recording = _bring_up(project)
            _stop(project)
        finally:
            project.close()
        written = RELEASES / f"{version}-{commit}"
        shutil.rmtree(written, ignore_errors=True)
        written.mkdir(parents=True)
        (written / "recording.json").write_text(json.dumps(recording.__dict__, indent=2, sort_keys=True) + "\n")
        _pack(Path(folder), written / PACKED)
    return written


def _bring_up(project: Project) -> Recording:
    plugins.install(project.pulumi_home)
    charts.write_chart(project.directory / "charts" / "words", "0.1.0")
    project.write_config(yaml.safe_load(_STACK_FILE.read_text())["config"], stack=STACK)
    project.up()
    api = project.api()
    api.create(JOBS, _JOB)
    api.create(PODS, pod("service"))
    api.until(PODS, lambda pods: sorted(each["status"]["phase"] for each in pods.values()) == ["Running", "Succeeded"])
    # Faults and pods are recorded in their final state.
    project.up("--refresh")
    exported = project.pulumi("stack", "export", "--show-secrets")
    assert exported.code == 0, exported.text
    (project.directory.parent / "state.json").write_text(exported.stdout)
    return Recording(
        root=str(project.directory.parent),
        tools=str(toolchain.find("etcd").resolve().parent),
        stack=STACK,
        machine=machine.this().id,
        identity=project.identity(),
        nodes=project.node_uids(),
        pods={each["name"]: each["uid"] for each in api.metadata(PODS)},
    )


def _stop(project: Project) -> None:
    """Stop the control plane so that etcd has written everything."""
    running = project.processes()
    for component in _ORDER:
        for pid in running.get(f"{STACK}/{component}", []):
            process = psutil.Process(pid)
            process.terminate()
            process.wait(60)
    processes.await_that(lambda: not project.processes(), 30, "the control plane has ended")


def _pack(root: Path, archive: Path) -> None:
    with tarfile.open(archive, "w:xz", preset=9) as packed:
        for name in ("state.json", "home", f"project/stacks/Pulumi.{STACK}.yaml", "project/charts"):
            packed.add(root / name, name, filter=_kept)


def _kept(found: tarfile.TarInfo) -> tarfile.TarInfo | None:
    if found.isfile() and found.name.endswith(_LEFT_OUT):
        return None
    # The archive does not reveal who recorded it, and two archives differ only where their contents do.
    found.uid = found.gid = found.mtime = 0
    found.uname = found.gname = ""
    return found


def _git(checkout: Path, *arguments: str) -> str:
    command = ["git", "-C", str(checkout), *arguments]
    return subprocess.run(command, capture_output=True, text=True, check=True).stdout.strip()


if __name__ == "__main__":
    made = record(Path(sys.argv[1]).resolve() if len(sys.argv) > 1 else ROOT)
    print(f"{made.relative_to(ROOT)}: {sum(file.stat().st_size for file in made.iterdir()) / 1024:,.0f} KiB")
