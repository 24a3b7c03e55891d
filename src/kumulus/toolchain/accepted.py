"""The layers of images that a project has accepted by their digest: `kumulus.lock` in its directory, to be committed.

pins.toml has no digest of some images: nobody has published one that we could find. A project takes what the registry
has at one time, and from then on that and nothing else.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from kumulus.host import files, installation
from kumulus.toolchain import releases
from kumulus.toolchain.errors import ToolchainError
from kumulus.toolchain.registry import DIGEST

if TYPE_CHECKING:
    from kumulus.toolchain.pins import Tool

_NAME = "kumulus.lock"


def file() -> Path:
    """The project's file, which may not exist; outside of a project, one in the current directory."""
    here = Path.cwd()
    # Without host.pulumi_project, which reads YAML where it can.
    projects = (folder for folder in (here, *here.parents) if any(folder.glob("Pulumi.y*ml")))
    return next(projects, here) / _NAME


def layers() -> dict[str, str]:
    """The digests accepted for this platform, by image."""
    here = releases.platform()
    return {image: digests[here] for image, digests in _read().items() if here in digests}


def remember(image: str, digest: str) -> None:
    """Accept a layer of an image for this platform."""
    images = _read()
    images.setdefault(image, {})[releases.platform()] = digest
    files.write(file(), json.dumps({"images": images}, indent=2, sort_keys=True) + "\n")


def how_to_accept(tools: Sequence[Tool]) -> str:
    """What to say to the user about tools whose digests are yet to be accepted."""
    images = "".join(f"\n  {tool.name} v{tool.version}: {tool.unpinned.image}" for tool in tools if tool.unpinned)
    names = " ".join(f"--with {tool.name}" for tool in tools)
    return (
        f"nobody has published a sum of {', '.join(tool.name for tool in tools)}, which are in images:{images}"
        f"\n  To take what the registry has now, and nothing else afterwards: {installation.command()} tools {names}"
        f" --accept-digest\n  It is remembered in {_NAME}. Or put your own builds of them on PATH."
    )


def _read() -> dict[str, dict[str, str]]:
    """The digests by image and platform."""
    try:
        document: Any = json.loads(file().read_text())
        images: dict[str, dict[str, str]] = document["images"]
        if not all(DIGEST.fullmatch(digest) for found in images.values() for digest in found.values()):
            raise ValueError("a digest is not sha256: and 64 digits")
        return images
    except FileNotFoundError:
        return {}
    except (OSError, ValueError, KeyError, TypeError, AttributeError) as error:
        raise ToolchainError(
            f"{_NAME} is damaged: {error!r}\n  Take it from version control, or remove it and accept the digests again"
        ) from None
