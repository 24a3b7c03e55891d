"""A fresh clone of the project: its files as they are here, and nothing that running it leaves behind."""

import json
import os
import shutil
import subprocess
import sys
import sysconfig
import tomllib
from pathlib import Path

from kumulus.toolchain import venv
from tests.support import processes
from tests.support.project import PACKAGES_LISTED_ONCE

ROOT = Path(__file__).resolve().parents[2]
_LEFT = shutil.ignore_patterns(
    *(".git", ".venv", ".venv.lock", ".kumulus", ".pulumi-state", "__pycache__", "*.egg-info", "build", "dist"),
    *(".mypy_cache", ".ruff_cache", ".pytest_cache", ".import_linter_cache", ".hypothesis", "pictures", "local"),
)
# What the tester's shell may hold and a test must not see, and what make has told the tests' own command.
_PRIVATE = (
    *("PULUMI_", "KUMULUS_", "KWOK_", "KUBECONFIG", "HELM_", "PYTHON", "VIRTUAL_ENV"),
    *("MAKE", "MFLAGS", "ARGS", "STACK"),
)
_KEPT = ("KUMULUS_TOOLS", "KUMULUS_MIRROR", "PYTHONUTF8")


class Clone:
    """A copy in which the commands work as in a clone, with a PULUMI_HOME of its own.

    Its virtual environment has the packages of the tester's and the copy's own modules; no package is installed.

    Args:
        root: an empty directory.
    """

    def __init__(self, root: Path) -> None:
        self.directory = root / "kumulus"
        shutil.copytree(ROOT, self.directory, ignore=_LEFT, symlinks=True)
        pulumi_home = root / "pulumi"
        pulumi_home.mkdir()
        kept = {name: value for name, value in os.environ.items() if name in _KEPT or not name.startswith(_PRIVATE)}
        own = {"PULUMI_HOME": str(pulumi_home), "NO_COLOR": "1", "COLUMNS": "120"}
        self.environment = {**kept, **PACKAGES_LISTED_ONCE, **own}
        # The default, said aloud: by it a test finds what its commands left running.
        self.environment[processes.HOME_VARIABLE] = str(self.clusters)
        self._make_environment()

    @property
    def clusters(self) -> Path:
        """Where its clusters are."""
        return self.directory / ".kumulus"

    def close(self) -> None:
        """End every process of its clusters, however far a test got."""
        processes.kill(processes.helpers(self.clusters))
        processes.kill(pid for pids in processes.components(self.clusters).values() for pid in pids)

    def _make_environment(self) -> None:
        folder = self.directory / ".venv"
        command = [sys.executable, "-m", "venv", "--without-pip", str(folder)]
        subprocess.run(command, check=True, capture_output=True)
        variables = {"base": str(folder), "platbase": str(folder)}
        packages = Path(sysconfig.get_path("purelib", "venv", variables))
        paths = [str(self.directory / "src"), sysconfig.get_path("purelib")]
        (packages / "as-installed.pth").write_text("".join(f"{path}\n" for path in paths))
        for name, entry in tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["scripts"].items():
            module, _, function = entry.partition(":")
            script = folder / "bin" / name
            script.write_text(
                f"#!{folder}/bin/python\nimport sys\nfrom {module} import {function}\nsys.exit({function}())\n"
            )
            script.chmod(0o755)
        # As if `kumulus venv` had installed the requirements, which would ask the package index.
        stamp = {"digest": venv._digest(self.directory), "with": [venv.DEVELOPMENT]}
        (folder / "kumulus-installed").write_text(json.dumps(stamp))
