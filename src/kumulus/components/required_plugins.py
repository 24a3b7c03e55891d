"""Other plugins of Pulumi that a stack needs: whether each is there, and how to get it."""

from __future__ import annotations

import os
import shutil
from importlib.metadata import version

from kumulus.components.engine import user_error
from kumulus.host import installation
from kumulus.host.installation import pulumi_home

_ENGINE_FETCHES_NONE = "PULUMI_DISABLE_AUTOMATIC_PLUGIN_ACQUISITION"
_NO = ("", "0", "false")


def require_command_plugin() -> None:
    """Fail if the plugin that runs `hostCommands` and `loadImages` is missing and the engine would not fetch it.

    The engine itself would report the missing plugin only after the cluster has been created.

    Raises:
        pulumi.RunError: it is not installed, and the engine may not fetch plugins; says how to get it.
    """
    install = f"pulumi plugin install resource command {version('pulumi-command')}"
    _require(
        "command",
        "hostCommands and loadImages are run by",
        f"{install}\n  From a machine that can fetch it: {install} --file ARCHIVE",
    )


def require_kubernetes_plugin() -> None:
    """Fail if the plugin that makes charts and objects of the user's own is missing, likewise.

    Raises:
        pulumi.RunError: as above.
    """
    _require(
        "kubernetes",
        "charts and objects of your own in the cluster are made by",
        f"{installation.command()} tools --with pulumi-resource-kubernetes  "
        "(where it cannot be downloaded, it is built: about eleven CPU minutes)",
    )


def _require(name: str, what: str, remedy: str) -> None:
    fetched = os.environ.get(_ENGINE_FETCHES_NONE, "").lower() in _NO
    if fetched or shutil.which(f"pulumi-resource-{name}"):
        return
    folder = pulumi_home() / "plugins"
    if not any(path.is_dir() for path in folder.glob(f"resource-{name}-v*")):
        raise user_error(f"{what} Pulumi's plugin {name}, which is not in {folder}\n  To get it: {remedy}")
