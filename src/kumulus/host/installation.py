"""How Kumulus is installed: as a checkout, or in a Python environment; where Pulumi's engine finds its plugin.

The engine looks in `$PULUMI_HOME/plugins/resource-kumulus-v<version>`. The file there is a few lines that start the
plugin with the Python that has this version of Kumulus. Environments with different versions have one each, and the
last one to use a version determines the Python. A plugin on PATH would work too, but the engine warns about it in every
command. See docs/decisions/finding-the-plugin.md.
"""

import functools
import json
import os
import pwd
import shlex
import shutil
import sys
from contextlib import suppress
from importlib import metadata
from pathlib import Path
from typing import Any
from urllib.parse import unquote, urlsplit

from kumulus.host import files
from kumulus.host.version import EARLIER, VERSION

_PACKAGE = Path(__file__).resolve().parents[1]


@functools.cache
def checkout() -> Path | None:
    """The checkout that this package is in, or None if it is installed."""
    source, root = _PACKAGE.parent, _PACKAGE.parents[1]
    is_checkout = source.name == "src" and (root / "kumulus").is_file() and (root / "requirements.txt").is_file()
    return root if is_checkout else None


def python() -> Path:
    """The interpreter for programs and the provider plugin: it has Kumulus and what it needs."""
    root = checkout()
    return root / ".venv" / "bin" / "python" if root else Path(sys.executable)


def scripts() -> Path:
    """The directory with that interpreter, and with the command `kumulus` in most installations."""
    return python().parent


def command() -> str:
    """How to type the command in the current directory, for advice that can be pasted."""
    root = checkout()
    found = shutil.which("kumulus")
    if root is None or (found and Path(found).absolute().parent == scripts()):
        return "kumulus"
    path = os.path.relpath(root / "kumulus")
    return path if path.startswith(os.pardir) else os.path.join(os.curdir, path)


def way_to_add(extra: str) -> str:
    """How to install the packages of one of Kumulus' extras, as a command that can be pasted."""
    if checkout():
        return f"{command()} venv --with {extra}"
    if asked := requirement(extra):
        return f"pip install '{asked}'"
    path = unquote(urlsplit(origin().get("url", "")).path)
    return f"pip install '{path or 'kumulus'}[{extra}]'"


def requirement(extra: str = "") -> str:
    """What pip installs this package again by, at the same commit and with an extra (PEP 508).

    Empty if it was not installed from a repository.
    """
    source = origin()
    vcs = source.get("vcs_info")
    if not vcs:
        return ""
    # pip until 23.2 refuses such an address without a host, and Python 3.11 comes with an older one.
    address = source["url"].replace("file:///", "file://localhost/", 1)
    return f"kumulus{f'[{extra}]' if extra else ''} @ {vcs['vcs']}+{address}@{vcs['commit_id']}"


def origin() -> dict[str, Any]:
    """What pip recorded about the address that it installed this package from (PEP 610); empty if it was an index."""
    with suppress(metadata.PackageNotFoundError, ValueError):
        found: dict[str, Any] = json.loads(metadata.distribution("kumulus").read_text("direct_url.json") or "{}")
        return found
    return {}


NAME = "pulumi-resource-kumulus"
"""The plugin's file."""


def pulumi_home() -> Path:
    """Where the engine keeps its plugins, its credentials and the selected stack."""
    if configured := os.environ.get("PULUMI_HOME"):
        return Path(configured)
    try:
        # As the engine finds it, whatever HOME says.
        return Path(pwd.getpwuid(os.getuid()).pw_dir) / ".pulumi"
    except KeyError:
        return Path.home() / ".pulumi"


def has_plugin(pulumi_home: Path, name: str) -> bool:
    """Whether a plugin of Pulumi's is installed, in any version; one whose installation was interrupted is not."""
    found = (pulumi_home / "plugins").glob(f"resource-{name}-v*")
    return any(path.is_dir() and not path.with_name(f"{path.name}.partial").exists() for path in found)


def install_plugin(pulumi_home: Path, python: Path) -> None:
    """Make engines with this PULUMI_HOME start the plugin with this Python; does nothing if they do already."""
    script = _plugin_script(python)
    _write_if_changed(_plugin_file(pulumi_home, VERSION), script)
    for version in EARLIER:
        # If an earlier version is installed on this machine, too, it keeps its own plugin.
        if not (file := _plugin_file(pulumi_home, version)).exists():
            _write_if_changed(file, script)


def _plugin_file(pulumi_home: Path, version: str) -> Path:
    return pulumi_home / "plugins" / f"resource-kumulus-v{version}" / NAME


def _write_if_changed(file: Path, text: str) -> None:
    try:
        if file.read_bytes() == text.encode() and os.access(file, os.X_OK):
            return
    except OSError:
        pass
    file.parent.mkdir(parents=True, exist_ok=True)
    # Atomically, as an engine may be about to start it.
    files.write(file, text, mode=0o755)


def _plugin_script(python: Path) -> str:
    # -P keeps the working directory, which is the user's program, off the import path: its modules must not shadow
    # the plugin's.
    return f"""\
#!/bin/sh
python=${{KUMULUS_PYTHON:-{shlex.quote(str(python))}}}
[ -x "$python" ] || {{
  echo "kumulus plugin: $python is gone; run 'kumulus env' in an environment that has Kumulus {VERSION}" >&2
  exit 1
}}
exec "$python" -P -m kumulus.provider.plugin "$@"
"""
