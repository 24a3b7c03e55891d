"""In a checkout, going on with the Python of its .venv, which has the packages that Kumulus needs."""

import os
import sys

from kumulus.host import installation
from kumulus.toolchain import venv


def enter_venv() -> None:
    """Run this command again in .venv, in place of this process; returns if it runs there already or is installed.

    If there is no .venv, it is made.
    """
    checkout = installation.checkout()
    if checkout is None or os.path.realpath(sys.prefix) == os.path.realpath(checkout / ".venv"):
        return
    if not has_venv():
        venv.ensure(checkout)
    python = str(installation.python())
    os.execv(python, [python, str(checkout / "kumulus"), *sys.argv[1:]])


def with_venv() -> None:
    """Let this process import what .venv has, which is sooner than another; enters it if it is of another Python."""
    checkout = installation.checkout()
    if checkout is None:
        return
    packages = checkout / ".venv" / "lib" / f"python{sys.version_info.major}.{sys.version_info.minor}" / "site-packages"
    if packages.is_dir():
        sys.path.append(str(packages))
    else:
        enter_venv()


def has_venv() -> bool:
    """Whether there is a .venv to enter that was made to the end, or none is needed."""
    checkout = installation.checkout()
    return checkout is None or venv.is_made(checkout)
