"""Whether pulumi-command's plugin is there, checked before anything is created."""

from __future__ import annotations

import os
import shutil
from importlib.metadata import version

from kumulus.components.engine import user_error
from kumulus.host.launcher import pulumi_home

_ENGINE_FETCHES_NONE = "PULUMI_DISABLE_AUTOMATIC_PLUGIN_ACQUISITION"
_NO = ("", "0", "false")


def require_command_plugin() -> None:
    """Fail if the plugin that runs `hostCommands` and `loadImages` is missing and the engine would not fetch it.

    The engine itself would report the missing plugin only after the cluster has been created.

    Raises:
        pulumi.RunError: it is not installed, and the engine may not fetch plugins; says how to get it.
    """
    if os.environ.get(_ENGINE_FETCHES_NONE, "").lower() in _NO or shutil.which("pulumi-resource-command"):
        return
    home = pulumi_home()
    if any(path.is_dir() for path in home.glob("plugins/resource-command-v*")):
        return
    install = f"pulumi plugin install resource command {version('pulumi-command')}"
    raise user_error(
        f"hostCommands and loadImages are run by Pulumi's plugin command, which is not in {home / 'plugins'}\n"
        f"  To get it: {install}\n"
        f"  From a machine that can fetch it: {install} --file ARCHIVE"
    )
