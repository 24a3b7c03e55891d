"""``pip list`` as Pulumi asks for it in every command, asked once for each environment; anything else is pip's own.

On the PYTHONPATH of tests' commands: a sixth of the CPU of each preview and update was spent on the same answer.
"""

from __future__ import annotations

import os
import runpy
import subprocess
import sys
import sysconfig

FOLDER = os.path.dirname(__file__)
ASKED = ["list", "-v", "--format", "json"]


def listed() -> bytes:
    """What pip says of this environment; an installation changes the folder of its packages, and so the name here."""
    packages = sysconfig.get_path("purelib")
    name = f"{packages.replace(os.sep, '%')}-{os.stat(packages).st_mtime_ns}"
    file = os.path.join(os.environ["PIP_LISTS"], name)
    if not os.path.exists(file):
        said = subprocess.run([sys.executable, "-m", "pip", *ASKED], env=without(), check=True, stdout=subprocess.PIPE)
        with open(f"{file}.{os.getpid()}", "wb") as new:
            new.write(said.stdout)
        os.replace(new.name, file)
    with open(file, "rb") as known:
        return known.read()


def without() -> dict[str, str]:
    """The variables, without the place of this module."""
    others = [entry for entry in os.environ.get("PYTHONPATH", "").split(os.pathsep) if entry != FOLDER]
    return {**os.environ, "PYTHONPATH": os.pathsep.join(others)}


if __name__ == "__main__" and sys.argv[1:] == ASKED and "PIP_LISTS" in os.environ:
    sys.stdout.buffer.write(listed())
else:
    sys.path[:] = [entry for entry in sys.path if entry != FOLDER]
    if __name__ == "__main__":
        runpy.run_module("pip", run_name="__main__", alter_sys=True)
    else:
        # Whoever imports pip gets pip: an import returns what is here under its name.
        del sys.modules[__name__]
        import pip  # noqa: F401
