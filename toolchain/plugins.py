"""Pulumi's provider plugins: put where the engine looks, since one found on PATH makes it warn in every command."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

from toolchain import pins
from toolchain.errors import ToolchainError
from toolchain.locate import find, is_installed, plugin_directory

PROVIDER = "pulumi-resource-kubernetes"
# Pulumi's own download only; its Python SDK is installed, so the engine asks for it in every command.
COMMAND_PLUGIN = "resource-command-v*"
# As requirements.txt has its SDK; a test keeps the two in step.
COMMAND_VERSION = "1.2.1"


def install(pulumi_home: Path) -> None:
    """Install Pulumi's Kubernetes provider for engines with this PULUMI_HOME, unless it is there already.

    Raises:
        ToolMissing: pulumi or the provider has not been built yet.
        ToolchainError: pulumi refused the plugin; with what it said.
    """
    provider = pins.load().tool(PROVIDER)
    if is_installed(pulumi_home, provider):
        return
    kind = ["resource", provider.name.removeprefix("pulumi-resource-"), provider.version]
    options = ["--file", str(find(PROVIDER)), "--reinstall", "--non-interactive"]
    answer = _install(pulumi_home, [*kind, *options])
    if answer.returncode != 0 or not is_installed(pulumi_home, provider):
        said = (answer.stderr + answer.stdout).strip()
        directory = plugin_directory(pulumi_home, provider)
        raise ToolchainError(f"pulumi did not install {provider.name} into {directory}:\n  {said}")


def install_command(pulumi_home: Path) -> None:
    """Have Pulumi fetch the plugin that runs `hostCommands`, in the version of its SDK, unless some version is there.

    Raises:
        ToolMissing: pulumi has not been built yet.
        ToolchainError: it cannot be fetched; with what pulumi said, and how to install it from a file.
    """
    if has_command_plugin(pulumi_home):
        return
    kind = ["resource", "command", COMMAND_VERSION]
    answer = _install(pulumi_home, [*kind, "--non-interactive"])
    if answer.returncode != 0 or not has_command_plugin(pulumi_home):
        said = (answer.stderr + answer.stdout).strip()
        raise ToolchainError(
            f"pulumi did not fetch the plugin command {COMMAND_VERSION}, which hostCommands and loadImages need:\n"
            f"  {said}\n  From a machine that can fetch it: pulumi plugin install {' '.join(kind)} --file ARCHIVE"
        )


def has_command_plugin(pulumi_home: Path) -> bool:
    """Whether the plugin that runs `hostCommands` is installed, in any version."""
    found = (pulumi_home / "plugins").glob(COMMAND_PLUGIN)
    return any(path.is_dir() and not path.with_name(f"{path.name}.partial").exists() for path in found)


def _install(pulumi_home: Path, arguments: list[str]) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [find("pulumi"), "plugin", "install", *arguments],
        capture_output=True,
        text=True,
        errors="replace",
        stdin=subprocess.DEVNULL,
        env={**os.environ, "PULUMI_HOME": str(pulumi_home), "PULUMI_SKIP_UPDATE_CHECK": "true"},
        check=False,
    )
