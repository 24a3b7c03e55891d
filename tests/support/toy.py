"""The toy extra of `toy_extra/`, installed by pip as a user would install it."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

SOURCE = Path(__file__).with_name("toy_extra")


def install(folder: Path, source: Path = SOURCE) -> Path:
    """Build an extra's wheel and install it; returns the directory to put on the path.

    Args:
        folder: an empty directory.
        source: the extra's project.
    """
    project, site = folder / "project", folder / "site"
    shutil.copytree(source, project, ignore=shutil.ignore_patterns("__pycache__"))
    # Offline: the build uses this environment's setuptools.
    pip = (sys.executable, "-m", "pip", "--isolated", "--disable-pip-version-check", "--quiet")
    how = ("install", "--no-index", "--no-deps", "--no-build-isolation", "--target", str(site), str(project))
    done = subprocess.run([*pip, *how], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return site


def ask(site: Path, *arguments: str, cwd: Path | None = None) -> subprocess.CompletedProcess[str]:
    """Run Python in an environment that has an extra.

    Args:
        site: as :func:`install` returns it.
    """
    path = os.pathsep.join(filter(None, (str(site), os.environ.get("PYTHONPATH"))))
    environment = {**os.environ, "PYTHONPATH": path, "PYTHONDONTWRITEBYTECODE": "1"}
    return subprocess.run(
        [sys.executable, *arguments], env=environment, cwd=cwd, capture_output=True, text=True, check=False
    )
