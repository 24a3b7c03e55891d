"""The variables a shell or a child process needs to run the tools as plain `pulumi` and `kubectl`."""

import os
import shutil
from collections.abc import Mapping
from pathlib import Path

from kumulus.host import installation
from kumulus.host.installation import pulumi_home
from kumulus.toolchain import cache, pins, plugins
from kumulus.toolchain.locate import locate

_LANGUAGES = "languages"
_PROXIES = ("grpc_proxy", "https_proxy", "http_proxy")


def changes(environment: Mapping[str, str]) -> dict[str, str]:
    """The variables to set, given the current ones; applying them twice is the same as once.

    The user's own choices stay: a passphrase, proxies, and whether the engine may fetch plugins.
    """
    wanted = {
        "PATH": search_path(environment.get("PATH", os.defpath)),
        "PULUMI_SKIP_UPDATE_CHECK": "true",
    }
    if "PULUMI_CONFIG_PASSPHRASE" not in environment and "PULUMI_CONFIG_PASSPHRASE_FILE" not in environment:
        # A local backend asks for a passphrase even when nothing is secret.
        wanted["PULUMI_CONFIG_PASSPHRASE"] = ""
    if any(map(environment.get, _PROXIES)) and "no_grpc_proxy" not in environment:
        # Pulumi's SDK for Python would ask the proxy for the engine, which is on this machine.
        wanted["no_grpc_proxy"] = "127.0.0.1"
    acquisition = "PULUMI_DISABLE_AUTOMATIC_PLUGIN_ACQUISITION"
    if acquisition not in environment and not plugins.complete(pulumi_home()):
        # If a provider's SDK is installed but its plugin is not, the engine spends 2.4 s of every command trying to
        # fetch it, whether or not the stack uses it. If it may not try, it carries on without it.
        wanted[acquisition] = "true"
    return wanted


def search_path(path: str) -> str:
    """PATH with the Python environment of Kumulus and its tools first, and those of earlier calls removed.

    The environment is for programs whose Pulumi.yaml names none: they run with the first `python` on PATH, and so can
    import the components.
    """
    ours = directories()
    others = [
        folder
        for folder in path.split(os.pathsep)
        if folder not in ours and not (os.path.isabs(folder) and cache.owns(Path(folder)))
    ]
    return os.pathsep.join([*ours, *others])


def directories() -> list[str]:
    """The directories to put first on PATH: that of Kumulus' Python, the tools', and those of language hosts.

    Pulumi looks for language hosts on PATH; each that the user has fetched is in its own directory.
    """
    known = pins.load()
    tools = [known.tool(name) for name in known.sets.get(_LANGUAGES, ())]
    hosts = [(cache.home_of(known, tool), tool) for tool in tools]
    return [
        str(installation.scripts()),
        str(cache.tools(known) / "bin"),
        *(str(home / tool.folder) for home, tool in hosts if cache.is_current(home, tool)),
    ]


def missing_host(runtime: str) -> str:
    """The language host of a project's programs, if it is one of our tools and Pulumi would not find it; else ""."""
    known, host = pins.load(), f"pulumi-language-{runtime}"
    if host not in known.sets.get(_LANGUAGES, ()):
        return ""
    # Pulumi looks on PATH, next to itself, and among its plugins.
    path = search_path(os.environ.get("PATH", os.defpath))
    engine = locate(known, known.tool("pulumi")).path
    if engine is not None:
        path = os.pathsep.join([path, str(engine.resolve().parent)])
    installed = any((pulumi_home() / "plugins").glob(f"language-{runtime}-v*"))
    return "" if installed or shutil.which(host, path=path) else host


def complete(environment: Mapping[str, str]) -> dict[str, str]:
    """The whole environment for a child process."""
    return {**environment, **changes(environment)}
