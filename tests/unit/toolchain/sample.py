"""A small set of pins whose Go module needs no network, to try the real builder on."""

import os
import shutil
import signal
import stat
import subprocess
import sys
import textwrap
import time
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

ROOT = Path(__file__).resolve().parents[3]
ENSURE = """
import pathlib, sys
from kumulus.toolchain import pins, supply
supply.ensure(known=pins.load(pathlib.Path(sys.argv[1])))
"""
MAIN = """package main

var version string

func main() { println("tool", version) }
"""


@dataclass(frozen=True)
class Sample:
    """A pins.toml with tools alpha and beta, an empty cache, and a directory that comes first on PATH."""

    folder: Path
    library: Path | None = None
    """Go's own library, compiled: an interrupted build leaves it for the next one, and so saves each test 5 s."""
    started: list[subprocess.Popen[str]] = field(default_factory=list)
    """The processes of `start`."""

    @property
    def pins(self) -> Path:
        return self.folder / "pins.toml"

    @property
    def cache(self) -> Path:
        return self.folder / "cache" / "kumulus" / "toolchain"

    @property
    def path(self) -> Path:
        return self.folder / "path"

    @property
    def environment(self) -> dict[str, str]:
        home = self.folder / "home"
        home.mkdir(exist_ok=True)
        return {
            **os.environ,
            "HOME": str(home),
            "PATH": f"{self.path}:{os.environ['PATH']}",
            "PYTHONPATH": str(ROOT / "src"),
            "XDG_CACHE_HOME": str(self.folder / "cache"),
            "PULUMI_HOME": str(home / ".pulumi"),
        }

    def write(self, *, alpha: str = "1.2.3", beta: str = "2.0.0", accepts: str = "", gigabytes: float = 0.001) -> None:
        """Write pins.toml and the modules of both tools."""
        flags = '["-X main.version=v{version}"]'
        text = textwrap.dedent(f"""
            disk = {{alpha = {gigabytes}, beta = {gigabytes}}}
            ldflags = {{alpha = {flags}, beta = {flags}}}
            [go]
            minimum = "1.21"
        """)
        for name, version, more in (("alpha", alpha, f'accepts = "{accepts}"' if accepts else ""), ("beta", beta, "")):
            text += textwrap.dedent(f"""
                [[tool]]
                name = "{name}"
                version = "{version}"
                purpose = "one of two"
                cpu = 9
                module = "{name}"
                package = "."
                probe = {{args = ["--version"], pattern = 'tool (v\\S+)'}}
                {more}
            """)
        self.pins.write_text(text)
        for name in ("alpha", "beta"):
            module = self.folder / "modules" / name
            module.mkdir(parents=True, exist_ok=True)
            (module / "go.mod").write_text(f"module sample/{name}\n\ngo 1.21\n")
            (module / "main.go").write_text(MAIN)
        self.path.mkdir(exist_ok=True)

    def program(self, name: str, script: str) -> Path:
        """Put a shell script of this name first on PATH."""
        file = self.path / name
        file.write_text(f"#!/bin/sh\n{script}\n")
        file.chmod(0o755)
        return file

    def gate(self, tool: str) -> None:
        """Make the build of one tool wait for `open_gate`, by a `go` that then hands over to the real one."""
        real = shutil.which("go", path=os.environ["PATH"])
        self.program(
            "go",
            f"""
            echo "$@" >> '{self.folder}/calls'
            case "$*" in *"build -ldflags"*/{tool}*)
              echo $$ > '{self.folder}/waiting'
              while [ ! -e '{self.folder}/gate' ]; do sleep 0.02; done;;
            esac
            exec '{real}' "$@" """,
        )

    def open_gate(self) -> None:
        (self.folder / "gate").touch()

    def waiting_pid(self) -> int:
        """Wait until the gated build has begun; returns the process id of its compiler."""
        file = self.folder / "waiting"
        wait_for(lambda: file.exists() and file.read_text().strip())
        return int(file.read_text())

    def builds(self, tool: str) -> int:
        """How often the gated `go` was asked to build a tool."""
        calls = (self.folder / "calls").read_text().splitlines()
        return sum("build -ldflags" in call and call.endswith(f"/{tool} .") for call in calls)

    def start(self, **environment: str) -> subprocess.Popen[str]:
        """Begin `ensure` in a process (and group) of its own."""
        if self.library is not None and not (self.cache / "scratch").exists():
            shutil.copytree(self.library, self.cache / "scratch" / "caches" / "std", copy_function=os.link)
        process = subprocess.Popen(
            [sys.executable, "-c", ENSURE, str(self.pins)],
            env={**self.environment, **environment},
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            start_new_session=True,
        )
        self.started.append(process)
        return process

    def ensure(self, **environment: str) -> subprocess.CompletedProcess[str]:
        """Run `ensure` to its end."""
        process = self.start(**environment)
        try:
            out, err = process.communicate(timeout=120)
        except subprocess.TimeoutExpired:
            end(process)
            raise
        return subprocess.CompletedProcess(process.args, process.returncode, out, err)

    def close(self) -> None:
        """End what a test that failed has left running."""
        self.open_gate()
        for process in self.started:
            if process.returncode is None:
                end(process)

    def installed(self) -> Mapping[str, Path]:
        """The tools in the cache, by name; of several pins the latest."""
        folders = sorted(self.cache.glob("*/bin"), key=lambda folder: folder.parent.stat().st_ctime)
        files = (file for folder in folders for file in folder.iterdir())
        return {file.name: file for file in files if file.stat().st_mode & stat.S_IXUSR}


def end(process: subprocess.Popen[str]) -> None:
    """Kill a process that has not been waited for, and those of its group."""
    os.killpg(process.pid, signal.SIGKILL)
    process.communicate()


def wait_for(condition: object, seconds: float = 30) -> None:
    """Until the condition, a callable, gives something true."""
    assert callable(condition)
    end = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < end, "waited in vain"
        time.sleep(0.01)
