"""Pulumi's provider plugins: installed where the engine looks, since one on PATH makes it warn in every command."""

import os
import subprocess
from pathlib import Path

from kumulus.host.installation import has_plugin
from kumulus.toolchain import pins, releases, supply
from kumulus.toolchain.errors import ToolchainError, ToolMissing
from kumulus.toolchain.locate import find, is_installed, plugin_directory
from kumulus.toolchain.progress import answer

PROVIDER = "pulumi-resource-kubernetes"
# It can only be downloaded; its Python SDK is installed, so the engine looks for it in every command.
COMMAND = "pulumi-resource-command"
# The version of its SDK in requirements.txt; a test keeps the two in step.
COMMAND_VERSION = "1.2.1"


def install(pulumi_home: Path) -> None:
    """Install Pulumi's Kubernetes provider for engines with this PULUMI_HOME, unless it is there already."""
    _install_ours(pulumi_home, PROVIDER)


def install_command(pulumi_home: Path) -> None:
    """Get the plugin that runs `hostCommands`, in the version of its SDK, unless some version is there.

    If we cannot download it, Pulumi is asked to fetch it itself.
    """
    if has_command_plugin(pulumi_home):
        return
    try:
        supply.provide([COMMAND])
    except ToolMissing as error:
        if releases.mode() == "build":
            file = f"pulumi plugin install resource command {COMMAND_VERSION} --file ARCHIVE"
            raise ToolMissing(f"{error}; hostCommands and loadImages need it\n  From a file: {file}") from None
        _have_pulumi_fetch_command(pulumi_home)
        return
    _install_ours(pulumi_home, COMMAND)


def _have_pulumi_fetch_command(pulumi_home: Path) -> None:
    kind = ["resource", "command", COMMAND_VERSION]
    said = _run_install(pulumi_home, [*kind, "--non-interactive"])
    if said.returncode != 0 or not has_command_plugin(pulumi_home):
        output = (said.stderr + said.stdout).strip()
        raise ToolchainError(
            f"pulumi did not fetch the plugin command {COMMAND_VERSION}, which hostCommands and loadImages need:\n"
            f"  {output}\n  From a machine that can fetch it: pulumi plugin install {' '.join(kind)} --file ARCHIVE"
        )


def complete(pulumi_home: Path) -> bool:
    """Whether the plugins of all installed Python SDKs are there; the engine looks for them in every command."""
    return has_command_plugin(pulumi_home) and is_installed(pulumi_home, pins.load().tool(PROVIDER))


def has_command_plugin(pulumi_home: Path) -> bool:
    """Whether the plugin that runs `hostCommands` is installed, in any version."""
    return has_plugin(pulumi_home, "command")


def _install_ours(pulumi_home: Path, name: str) -> None:
    """Install a plugin that is one of the tools, unless it is there already."""
    plugin = pins.load().tool(name)
    if is_installed(pulumi_home, plugin):
        return
    kind = ["resource", plugin.name.removeprefix("pulumi-resource-"), plugin.version]
    said = _run_install(pulumi_home, [*kind, "--file", str(find(name)), "--reinstall", "--non-interactive"])
    if said.returncode != 0 or not is_installed(pulumi_home, plugin):
        output = (said.stderr + said.stdout).strip()
        directory = plugin_directory(pulumi_home, plugin)
        raise ToolchainError(f"pulumi did not install {plugin.name} into {directory}:\n  {output}")


def _run_install(pulumi_home: Path, arguments: list[str]) -> subprocess.CompletedProcess[str]:
    environment = {**os.environ, "PULUMI_HOME": str(pulumi_home), "PULUMI_SKIP_UPDATE_CHECK": "true"}
    return answer([find("pulumi"), "plugin", "install", *arguments], env=environment)
