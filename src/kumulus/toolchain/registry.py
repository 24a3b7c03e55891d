"""OCI registries: the address of an image's manifests and layers, and the anonymous token that a registry asks for.

An image's layer is a file whose name is its sum, so that reading one needs neither Docker nor a manifest.
Source: github.com/opencontainers/distribution-spec and distribution.github.io/distribution/spec/auth/token.
"""

import json
import re
from dataclasses import dataclass
from urllib.parse import urlencode, urlsplit

from kumulus.toolchain.errors import ToolchainError

_IMAGE = re.compile(r"(?P<host>[a-z0-9.-]+(:\d+)?)/(?P<repository>[a-z0-9][a-z0-9._/-]*):(?P<tag>\w[\w.-]{0,127})")
_OF_IMAGE = re.compile(r"(?P<place>https?://[^/]+/(?:.+/)?v2/)(?P<repository>.+)/(?:blobs|manifests)/[^/]+")
_FIELD = re.compile(r'(\w+)="([^"]*)"')
DIGEST = re.compile(r"sha256:[0-9a-f]{64}")
# For the rest of this process only: an anonymous token is good for some minutes.
_TOKENS: dict[str, str] = {}


@dataclass(frozen=True)
class Image:
    """An image in a registry."""

    host: str
    """The registry's."""
    repository: str
    """The image's name there."""
    tag: str

    @property
    def file(self) -> str:
        """The name of a file with one of its layers."""
        return f"{self.repository.rpartition('/')[2]}-{self.tag}.tar.gz"

    def blob(self, digest: str) -> str:
        """The URL of one of its layers."""
        return f"https://{self.host}/v2/{self.repository}/blobs/{digest}"

    def manifest(self, reference: str) -> str:
        """The URL of a manifest: the reference is a tag or a digest."""
        return f"https://{self.host}/v2/{self.repository}/manifests/{reference}"


def image(written: str) -> Image:
    """The image of a reference such as `registry.example/team/app:v1.2.3`."""
    if (found := _IMAGE.fullmatch(written)) is None:
        raise ToolchainError(
            f"{written!r} is no image\n  Write REGISTRY/REPOSITORY:TAG, such as registry.example/app:v1.2"
        )
    return Image(found["host"], found["repository"], found["tag"])


def authorization(url: str) -> str:
    """The header `Authorization` for a URL of an image whose registry gave a token; empty for any other."""
    found = _OF_IMAGE.fullmatch(url)
    return _TOKENS.get(found["place"] + found["repository"], "") if found else ""


def token_address(url: str, challenge: str) -> str:
    """Where to get the token that a registry asks for in an answer 401; empty if it asks for none.

    Args:
        url: of an image's manifest or layer.
        challenge: the answer's header `WWW-Authenticate`.
    """
    kind, _, fields = challenge.partition(" ")
    found, asked = _OF_IMAGE.fullmatch(url), dict(_FIELD.findall(fields))
    if found is None or kind.lower() != "bearer" or "realm" not in asked:
        return ""
    realm, registry = urlsplit(asked["realm"]), urlsplit(url)
    if realm.scheme != "https" and (realm.scheme, realm.netloc) != (registry.scheme, registry.netloc):
        raise ToolchainError(f"the token for it would come from {realm.geturl()}, which is not https")
    query = {name: asked[name] for name in ("service", "scope") if name in asked}
    query.setdefault("scope", f"repository:{found['repository']}:pull")
    return realm._replace(query="&".join(filter(None, (realm.query, urlencode(query))))).geturl()


def keep_token(url: str, answer: bytes) -> None:
    """Keep the token of a registry's answer, for further requests about the same image.

    Args:
        url: of an image's manifest or layer, for which there is a :func:`token_address`.
        answer: what that address has answered.
    """
    found = _OF_IMAGE.fullmatch(url)
    try:
        document = json.loads(answer)
        token = document.get("token") or document["access_token"]
    except (ValueError, KeyError, TypeError, AttributeError):
        raise ToolchainError("the registry asks for a token, and gives none to users without a name") from None
    assert found is not None
    _TOKENS[found["place"] + found["repository"]] = f"Bearer {token}"
