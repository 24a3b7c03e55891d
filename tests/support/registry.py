"""Images on a local mirror that is a registry too: an index, a manifest for each platform, layers."""

import json
import struct
from collections.abc import Mapping, Sequence

from kumulus.toolchain import releases
from tests.support.mirror import Answer, Mirror, sha256

HOST = "registry.example"
GZIP = "application/vnd.oci.image.layer.v1.tar+gzip"
TOKEN = "of-this-test"


def elf(loader: str = "", padding: int = 0) -> bytes:
    """The head of a program for Linux, which asks for this loader."""
    named = loader.encode() + b"\0" if loader else b""
    head = b"\x7fELF\x02\x01" + bytes(10) + struct.pack("<HHIQQQIHHHHHH", 2, 62, 1, 0, 64, 0, 0, 64, 56, 1, 0, 0, 0)
    table = struct.pack("<IIQQQQQQ", 3 if loader else 1, 4, 120, 0, 0, len(named), len(named), 1)
    return head + table + named + bytes(padding)


def push(
    mirror: Mirror,
    repository: str,
    tag: str,
    layers: Sequence[bytes],
    *,
    media: Mapping[int, str] | None = None,
    index: bool = True,
    below: str = "/mine/" + HOST + "/v2",
) -> list[Answer]:
    """Put an image on the mirror, for this platform; returns the answers of its layers.

    Args:
        mirror: that one; what it has of the image is for whoever shows its token.
        layers: packed.
        media: the type of layers that are not .tar.gz, by number.
        index: whether the tag is of an index, as an image's for several platforms is; a chart's is not.
        below: the path of the registry.
    """
    place = f"{below}/{repository}"
    described = [
        {"mediaType": (media or {}).get(number, GZIP), "digest": f"sha256:{sha256(body)}", "size": len(body)}
        for number, body in enumerate(layers)
    ]
    answers = [Answer(body, token=TOKEN) for body in layers]
    for layer, answer in zip(described, answers, strict=True):
        mirror.files[f"{place}/blobs/{layer['digest']}"] = answer
    top = json.dumps({"schemaVersion": 2, "layers": described}).encode()
    if index:
        system, _, architecture = releases.platform().partition("-")
        listed = [
            {"digest": f"sha256:{sha256(b'other')}", "platform": {"os": "plan9", "architecture": architecture}},
            {"digest": f"sha256:{sha256(top)}", "platform": {"os": system, "architecture": architecture}},
        ]
        mirror.files[f"{place}/manifests/sha256:{sha256(top)}"] = Answer(top, token=TOKEN)
        top = json.dumps({"schemaVersion": 2, "manifests": listed}).encode()
    mirror.files[f"{place}/manifests/{tag}"] = Answer(top, token=TOKEN)
    scope = f"repository%3A{repository.replace('/', '%2F')}%3Apull"
    asked = f"/token?service=registry.example&scope={scope}"
    mirror.files[asked] = Answer(json.dumps({"token": TOKEN}).encode())
    return answers
