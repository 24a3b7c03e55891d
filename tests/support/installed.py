"""Kumulus as a user has it: a wheel in its own virtual environment, and an empty home."""

from __future__ import annotations

import hashlib
import os
import re
import shutil
import subprocess
import sys
import sysconfig
import tomllib
from dataclasses import dataclass
from itertools import chain
from pathlib import Path

import psutil

from kumulus.host.version import EARLIER, VERSION
from kumulus.toolchain import cache, pins

ROOT = Path(__file__).resolve().parents[2]
_SOURCES = ("components", "docs", "src", "README.md", "pyproject.toml")
_KEPT = ("LANG", "LC_ALL", "KUMULUS_TOOLS", "KUMULUS_MIRROR")


def build(folder: Path, later: str = "") -> tuple[Path, Path]:
    """Build the sdist, and from that the wheel, of a copy of the project; returns their paths.

    Args:
        folder: an empty one.
        later: the version to build it as, with the present one as a release before it.
    """
    copy, made = folder / "copy", folder / "dist"
    copy.mkdir()
    ignored = shutil.ignore_patterns("__pycache__", ".venv", "*.egg-info")
    for source in (*(ROOT / name for name in _SOURCES), *ROOT.glob("LICENSE*"), *ROOT.glob("NOTICE*")):
        if source.is_dir():
            shutil.copytree(source, copy / source.name, symlinks=True, ignore=ignored)
        else:
            shutil.copy(source, copy / source.name)
    if later:
        stated = copy / "src" / "kumulus" / "host" / "version.py"
        values = f'VERSION = "{later}"\nEARLIER = {(*EARLIER, VERSION)!r}\n'
        stated.write_text(re.sub(r"(?m)^(VERSION|EARLIER)\b.*\n", "", stated.read_text()) + values)
    command = [sys.executable, "-m", "build", "--no-isolation", "--outdir", str(made), str(copy)]
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=300)
    assert done.returncode == 0, done.stdout + done.stderr
    (sdist,), (wheel,) = made.glob("*.tar.gz"), made.glob("*.whl")
    return sdist, wheel


@dataclass(frozen=True)
class Environment:
    """A virtual environment with nothing but Kumulus in it; its dependencies come from the test's own environment."""

    prefix: Path
    """Its directory."""

    @classmethod
    def make(cls, prefix: Path, *, extras: bool = False) -> Environment:
        """Make an environment without Kumulus.

        Args:
            extras: whether packages that only extras need can be imported.
        """
        subprocess.run([sys.executable, "-m", "venv", "--without-pip", str(prefix)], check=True, timeout=120)
        made = cls(prefix)
        # .pth files in a directory added by a .pth file are not read, so its editable installation is not found.
        (made.packages / "needed.pth").write_text(sysconfig.get_path("purelib") + "\n")
        if extras:
            return made
        project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
        theirs = chain(*project["optional-dependencies"].values())
        names = sorted({re.split(r"[^\w-]", each)[0] for each in theirs} - {"kumulus"})
        (made.packages / "sitecustomize.py").write_text(f"import sys\n\nsys.modules.update(dict.fromkeys({names}))\n")
        return made

    @property
    def packages(self) -> Path:
        """Its site-packages."""
        return self.prefix / "lib" / f"python{sys.version_info.major}.{sys.version_info.minor}" / "site-packages"

    @property
    def python(self) -> Path:
        """Its interpreter."""
        return self.prefix / "bin" / "python"

    def install(self, wheel: Path) -> None:
        """Install a wheel with pip, without its dependencies."""
        pip = [sys.executable, "-m", "pip", "--python", str(self.python), "--disable-pip-version-check"]
        options = ["--quiet", "--no-index", "--no-deps", "--ignore-installed"]
        subprocess.run([*pip, "install", *options, str(wheel)], check=True, timeout=120)

    def digest(self) -> dict[str, str]:
        """Checksums of the files in its site-packages, by path."""
        files = (path for path in self.packages.rglob("*") if path.is_file())
        return {str(path): hashlib.sha256(path.read_bytes()).hexdigest() for path in files}


@dataclass(frozen=True)
class User:
    """A user with an empty home and this machine's tools."""

    home: Path
    """The home."""

    def variables(self, environment: Environment, *, tools: bool = False, **more: str) -> dict[str, str]:
        """The variables of a shell in which an environment is active.

        Args:
            tools: whether the tools are on PATH too.
        """
        own = str(Path(sys.executable).parent)
        path = [folder for folder in os.get_exec_path() if folder != own and not cache.owns(Path(folder))]
        first = [str(environment.prefix / "bin"), *([str(cache.tools(pins.load()) / "bin")] if tools else [])]
        return {
            **{name: os.environ[name] for name in _KEPT if name in os.environ},
            "HOME": str(self.home),
            "PATH": os.pathsep.join([*first, *path]),
            "PULUMI_HOME": str(self.home / ".pulumi"),
            "XDG_CACHE_HOME": str(cache.root().parents[1]),
            "NO_COLOR": "1",
            **more,
        }

    def run(
        self, command: list[str], cwd: Path, variables: dict[str, str], timeout: float = 300
    ) -> subprocess.CompletedProcess[str]:
        """Run a command to its end."""
        found = shutil.which(command[0], path=variables["PATH"])
        return subprocess.run(
            command,
            executable=found,
            cwd=cwd,
            env=variables,
            capture_output=True,
            text=True,
            check=False,
            timeout=timeout,
        )

    def processes(self) -> dict[int, str]:
        """The processes that still run for this user: command lines by pid."""
        found = {}
        for process in psutil.process_iter(["cmdline", "status"]):
            try:
                mine = process.environ().get("HOME") == str(self.home)
            except (psutil.Error, OSError):
                continue
            if mine and process.info["status"] != psutil.STATUS_ZOMBIE:
                found[process.pid] = " ".join(process.info["cmdline"] or [])
        return found
