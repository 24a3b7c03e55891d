"""The variables a shell or a child process needs to run the tools as plain `pulumi` and `kubectl`."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path

from toolchain import cache, pins, plugins
from toolchain.locate import pulumi_home


def changes(environment: Mapping[str, str]) -> dict[str, str]:
    """The variables to set, given those that are; applying them twice is the same as once.

    What the user has chosen stays: a passphrase, whether the engine may fetch plugins.
    """
    wanted = {
        "PATH": search_path(environment.get("PATH", os.defpath)),
        "PULUMI_SKIP_UPDATE_CHECK": "true",
    }
    if "PULUMI_CONFIG_PASSPHRASE" not in environment and "PULUMI_CONFIG_PASSPHRASE_FILE" not in environment:
        # A local backend asks for one even when nothing is secret.
        wanted["PULUMI_CONFIG_PASSPHRASE"] = ""
    acquisition = "PULUMI_DISABLE_AUTOMATIC_PLUGIN_ACQUISITION"
    if acquisition not in environment and not plugins.has_command_plugin(pulumi_home()):
        # While the SDK of the command provider is installed and its plugin is not, the engine spends 2.4 s of every
        # command trying to fetch it.
        wanted[acquisition] = "true"
    return wanted


def search_path(path: str) -> str:
    """PATH with the virtual environment and the built tools first, and those of earlier calls taken out.

    The virtual environment is there for programs whose Pulumi.yaml names none: they run with the first `python`, and
    so can import the components.
    """
    ours = directories()
    others = [
        folder
        for folder in path.split(os.pathsep)
        if folder not in ours and not (os.path.isabs(folder) and cache.owns(Path(folder)))
    ]
    return os.pathsep.join([*ours, *others])


def directories() -> list[str]:
    """The directories to put first on PATH: the virtual environment's, and the built tools'."""
    environment = Path(__file__).resolve().parent.parent / ".venv" / "bin"
    return [str(environment), str(cache.tools(pins.load()) / "bin")]


def complete(environment: Mapping[str, str]) -> dict[str, str]:
    """The whole environment for a child process."""
    return {**environment, **changes(environment)}
