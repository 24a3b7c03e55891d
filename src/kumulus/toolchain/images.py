"""Which layer of an image has a program: for pins.toml, and for a project that accepts what a registry has now.

``python -m kumulus.toolchain.images IMAGE:TAG MEMBER [linux-amd64 …]`` prints the tables for pins.toml. MEMBER is the
program's path in the image, or for a chart a pattern such as ``'*/crds/*.yaml'``.
"""

import fnmatch
import hashlib
import json
import struct
import sys
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from kumulus.toolchain import accepted, fetch, registry, releases
from kumulus.toolchain.download import fetched, paths, take
from kumulus.toolchain.errors import ToolchainError
from kumulus.toolchain.fetch import NotFetched
from kumulus.toolchain.pins import Tool
from kumulus.toolchain.progress import ToolLine, say
from kumulus.toolchain.registry import DIGEST, Image

_INDEXES = ("application/vnd.oci.image.index.v1+json", "application/vnd.docker.distribution.manifest.list.v2+json")
_MANIFESTS = ("application/vnd.oci.image.manifest.v1+json", "application/vnd.docker.distribution.manifest.v2+json")
_PLATFORMS = ("linux-amd64", "linux-arm64")
# PT_INTERP, the type of a program header.
_INTERPRETER = 3


@dataclass(frozen=True)
class Layer:
    """The layer of an image that has a member."""

    digest: str
    """Its sum, such as `sha256:…`."""
    size: int
    """In bytes."""
    manifest: str
    """The digest of the image's manifest."""
    loader: str
    """The C library's loader that the program needs; empty for a static one."""


def find(image: Image, member: str, platform: str) -> Layer:
    """The one layer that has a member; it stays among the downloads, where the next download finds it.

    Args:
        member: the path of a program in it, or a pattern of paths.
    """
    manifest, layers = _manifest(image, platform)
    named = f"{image.host}/{image.repository}:{image.tag}"
    found = []
    for media, digest in layers:
        # A later layer may replace the member, so each has to be looked into.
        if "zstd" in media:
            raise ToolchainError(f"{named} has a layer packed with zstd, which Python reads only since 3.14")
        file = _layer(image, digest)
        if any(fnmatch.fnmatchcase(path, member) for path in paths(file)):
            found.append((file, digest))
        else:
            file.unlink()
    if len(found) != 1:
        places = f"{len(found)} layers have" if found else "no layer has"
        raise ToolchainError(f"{named}: {places} {member}, and exactly one has to")
    ((file, digest),) = found
    is_pattern = "*" in member
    layer = Layer(digest, file.stat().st_size, manifest, "" if is_pattern else _loader(file, member))
    # With this name, the download of a pinned file finds it complete.
    file.replace(file.with_name(f"{file.name}.part"))
    return layer


def accept(tools: Sequence[Tool]) -> None:
    """Remember what the registry has now of the tools that have no sum."""
    for tool in tools:
        if tool.unpinned is None:
            continue
        member = tool.keep[0].path if tool.files_only else tool.unpinned.members[tool.name]
        layer = find(registry.image(tool.unpinned.image), member, releases.platform())
        if layer.loader and not Path(layer.loader).exists():
            raise ToolchainError(f"{tool.name} v{tool.version} needs {layer.loader}, which this machine does not have")
        accepted.remember(tool.unpinned.image, layer.digest)
        say(f"{tool.name} v{tool.version}: accepted {layer.digest} of {tool.unpinned.image}, in {accepted.file()}")


def _manifest(image: Image, platform: str) -> tuple[str, list[tuple[str, str]]]:
    """The digest of an image's manifest for a platform, and the media type and digest of each layer."""
    reference = image.tag
    while True:
        content = _document(image.manifest(reference))
        digest = f"sha256:{hashlib.sha256(content).hexdigest()}"
        if reference not in (image.tag, digest):
            raise ToolchainError(f"{image.manifest(reference)} is not what its digest says, but {digest}")
        try:
            document: dict[str, Any] = json.loads(content)
            if "manifests" not in document:
                return digest, _layers(document)
            # An index of manifests, of which one is for the platform.
            reference = _manifest_of(document, platform)
        except (ValueError, KeyError, TypeError, AttributeError) as error:
            raise ToolchainError(f"{image.manifest(reference)} has no image for {platform}: {error!r}") from None


def _layers(manifest: Mapping[str, Any]) -> list[tuple[str, str]]:
    layers = [(str(each["mediaType"]), str(each["digest"])) for each in manifest["layers"]]
    if not all(DIGEST.fullmatch(digest) for _, digest in layers):
        raise ValueError("a layer's digest is none of sha256")
    return layers


def _manifest_of(index: Mapping[str, Any], platform: str) -> str:
    """The digest of the manifest for a platform in an index of manifests."""
    (digest,) = [
        str(each["digest"])
        for each in index["manifests"]
        if f"{each['platform']['os']}-{each['platform']['architecture']}" == platform
    ]
    if not DIGEST.fullmatch(digest):
        raise ValueError("a manifest's digest is none of sha256")
    return digest


def _document(url: str) -> bytes:
    try:
        return fetch.document(releases.addresses(url), ", ".join((*_INDEXES, *_MANIFESTS)))
    except NotFetched as error:
        raise ToolchainError(f"{releases.address(url)} cannot be read: {error}") from None


def _layer(image: Image, digest: str) -> Path:
    algorithm, _, wanted = digest.partition(":")
    step = ToolLine(f"{image.file} {digest[:19]}")
    try:
        file = fetched(image.blob(digest), image.file, algorithm, wanted, step)
    except NotFetched as error:
        step.end("not downloaded")
        raise ToolchainError(f"{image.blob(digest)} cannot be downloaded: {error}") from None
    step.end(f"downloaded {file.stat().st_size / 1e6:.0f} MB")
    return file


def _loader(layer: Path, member: str) -> str:
    """The loader that a program in a layer asks for, by the headers of its ELF file (man 5 elf); empty for none."""
    with tempfile.TemporaryDirectory(dir=layer.parent) as folder:
        program = take(layer, {"program": member}, "", Path(folder))["program"].read_bytes()
    if program[:6] != b"\x7fELF\x02\x01":
        raise ToolchainError(f"{member} of {layer.name} is no program for Linux of 64 bits")
    (table,), (size, count) = struct.unpack_from("<Q", program, 32), struct.unpack_from("<HH", program, 54)
    for number in range(count):
        kind, _, offset, _, _, length = struct.unpack_from("<IIQQQQ", program, table + number * size)
        if kind == _INTERPRETER:
            return program[offset : offset + length].rstrip(b"\0").decode()
    return ""


def main(arguments: Sequence[str]) -> int:
    """Print the tables for pins.toml."""
    if len(arguments) < 2:
        print(__doc__, file=sys.stderr)
        return 2
    written, member, *platforms = arguments
    try:
        image = registry.image(written)
        print(f'image = "{written}"')
        for platform in platforms or _PLATFORMS:
            layer = find(image, member, platform)
            print(f"# manifest {layer.manifest}; {layer.loader or 'no loader'}; {layer.size / 1e6:.0f} MB")
            print(f'[download.{platform}]\nurl = "{image.blob(layer.digest)}"\nsha256 = "{layer.digest[7:]}"')
    except ToolchainError as error:
        print(f"error: {error}", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
