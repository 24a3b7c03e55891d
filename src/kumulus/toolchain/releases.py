"""Official release files: which one has a tool, its checksum, and where to download it."""

import base64
import hashlib
import json
import os
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal
from urllib.parse import SplitResult, unquote, urlsplit

from kumulus.toolchain import registry
from kumulus.toolchain.errors import ToolchainError

Mode = Literal["auto", "download", "build"]
_MODES: tuple[Mode, ...] = ("auto", "download", "build")
_ALGORITHMS = {"sha256": 64, "sha512": 128}
_MACHINES = {"x86_64": "amd64", "amd64": "amd64", "aarch64": "arm64", "arm64": "arm64"}


@dataclass(frozen=True)
class Release:
    """A file of a project's release for this platform.

    The fields are those of a [[download]], described at the top of pins.toml: `members` is its `tools`, `algorithm` and
    `sum` its checksum.
    """

    url: str
    algorithm: str
    sum: str
    version: str
    members: Mapping[str, str]
    others: str
    megabytes: int
    source: str
    image: str = ""

    @property
    def name(self) -> str:
        """The file's name."""
        return registry.image(self.image).file if self.image else self.url.rpartition("/")[2]

    def stamp(self, tool: str) -> str:
        """The stamp of a tool from this file: another stamp means another program."""
        recipe = [tool, self.url, self.algorithm, self.sum, self.members[tool]]
        return f"downloaded {hashlib.sha256(json.dumps(recipe).encode()).hexdigest()[:16]}"


@dataclass(frozen=True)
class Unpinned:
    """A layer of an image, with tools in it; its digest is neither in pins.toml nor accepted by this project."""

    image: str
    """As in pins.toml."""
    members: Mapping[str, str]
    """The paths of its tools in it, by tool."""


def platform() -> str:
    """This machine's operating system and architecture, as releases call them: `linux-amd64`."""
    system = os.uname()
    return f"{system.sysname.lower()}-{_MACHINES.get(system.machine, system.machine)}"


def read(
    entries: Sequence[Mapping[str, Any]], target: str, accepted: Mapping[str, str] | None = None
) -> dict[tuple[str, str], Release | Unpinned]:
    """The release files of one platform, by tool and version.

    Args:
        entries: the tables `download` of pins.toml.
        target: the platform, such as `linux-amd64`.
        accepted: the digests of layers that the project accepted, by image.

    Raises:
        KeyError: a table lacks something.
        TypeError: it has no checksum, or an invalid one.
    """
    found: dict[tuple[str, str], Release | Unpinned] = {}
    for entry in entries:
        if target not in entry:
            continue
        table, image = entry[target], entry.get("image", "")
        members = {tool: member.replace("{platform}", target) for tool, member in entry["tools"].items()}
        if table.get("unpinned"):
            if not (digest := (accepted or {}).get(image)):
                found.update({(tool, entry["version"]): Unpinned(image, members) for tool in members})
                continue
            table = {"url": registry.image(image).blob(digest), "sha256": digest.partition(":")[2]}
        algorithm, digits = _sum(table)
        release = Release(
            url=table["url"],
            algorithm=algorithm,
            sum=digits,
            version=entry["version"],
            members=members,
            others=entry.get("others", ""),
            megabytes=entry["megabytes"],
            source=entry["source"],
            image=image,
        )
        found.update({(tool, release.version): release for tool in release.members})
    return found


def mode() -> Mode:
    """What KUMULUS_TOOLS asks for; `auto` if it is not set."""
    written = os.environ.get("KUMULUS_TOOLS", "").strip() or "auto"
    for each in _MODES:
        if written == each:
            return each
    raise ToolchainError(f"KUMULUS_TOOLS is {written!r}\n  Write one of: {', '.join(_MODES)}; or unset it")


def mirror() -> str:
    """The URL of the mirror to download everything from, without a trailing slash; empty if there is none.

    It is without the user and the password, so that it can be printed; :func:`authorization` has these.
    """
    parts = _mirror()
    return parts._replace(netloc=parts.netloc.rpartition("@")[2]).geturl()


def authorization(url: str) -> str:
    """The header `Authorization` for a URL: the mirror's user and password, for its own host; empty for any other."""
    parts, asked = _mirror(), urlsplit(url)
    user_and_password, _, host = parts.netloc.rpartition("@")
    if not user_and_password or (asked.scheme, asked.netloc) != (parts.scheme, host):
        return ""
    user, _, password = user_and_password.partition(":")
    return f"Basic {base64.b64encode(f'{unquote(user)}:{unquote(password)}'.encode()).decode()}"


def _mirror() -> SplitResult:
    """The parts of KUMULUS_MIRROR, its user and password included; all of them are empty if it is not set."""
    written = os.environ.get("KUMULUS_MIRROR", "").strip().rstrip("/")
    try:
        parts = urlsplit(written)
        has_server = parts.scheme in ("http", "https") and parts.hostname and parts.port != 0
        has_more = parts.query or parts.fragment or "@" in parts.path
        if not written or (has_server and not has_more):
            return parts
    except ValueError:
        pass  # a port that is no number
    # What comes before the @ may be a password.
    _, hidden, shown = written.rpartition("@")
    raise ToolchainError(
        f"KUMULUS_MIRROR is {('…@' if hidden else '') + shown!r}"
        "\n  Write a URL such as https://mirror.example/kumulus, or https://USER:PASSWORD@mirror.example/kumulus"
    )


def address(url: str) -> str:
    """The URL to download a file from: its own, or one on the mirror, which has a folder for each host."""
    return addresses(url)[-1]


def addresses(url: str) -> tuple[str, ...]:
    """The URLs to download a file from, in the order in which they are tried; the last one is that of a plain mirror.

    A mirror may itself be a registry that pulls through. Then a blob of ghcr.io is at MIRROR/v2/ghcr.io/…; on a plain
    mirror it is at MIRROR/ghcr.io/v2/….
    """
    base, parts = mirror(), urlsplit(url)
    if not base:
        return (url,)
    in_registry = parts.path.removeprefix("/v2/")
    pulled_through = () if in_registry == parts.path else (f"{base}/v2/{parts.netloc}/{in_registry}",)
    return (*pulled_through, f"{base}/{parts.netloc}{parts.path}")


def _sum(table: Mapping[str, str]) -> tuple[str, str]:
    """The algorithm and the digits of a table's checksum."""
    for algorithm, length in _ALGORITHMS.items():
        if re.fullmatch(f"[0-9a-f]{{{length}}}", table.get(algorithm, "")):
            return algorithm, table[algorithm]
    raise TypeError(f"{table['url']} has no sum")
