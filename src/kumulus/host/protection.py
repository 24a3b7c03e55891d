"""Whether anything protects a stack's secrets: a passphrase may be empty.

With a self-managed backend, Pulumi encrypts with a key that it derives from a passphrase and a salt; the salt is in the
stack's file and in the state. `kumulus env` sets the empty passphrase if the user sets none.
"""

import gzip
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from kumulus.host.pulumi_project import PulumiProject, logged_in

# Pulumi's own service keeps the key; these backends have only the state (pkg/backend/diy).
_SHARED = ("s3://", "gs://", "azblob://", "postgres://")
_FILE = "file://"
# Pulumi's mark of a secret in a state (sdk/go/common/resource/sig).
_MARK = '"4dabf18193072939515e22adb298388d":"1b47061264138c4ac30d75fd1eb44270"'


@dataclass(frozen=True)
class Unprotected:
    """Why a stack's secrets are unprotected."""

    backend: Literal["shared", "local"]
    """Where the state is: `shared`, or `local` to this machine."""
    where: str
    """The backend's URL, without parts that may be a password."""
    known: bool
    """Whether the state has secrets already, so that the user has been warned."""

    def message(self, stack: str, secrets: str) -> str:
        """The warning to the user."""
        if self.backend == "shared":
            return (
                f"{stack} has {secrets}, its state is in {self.where}, and the passphrase is empty: everybody who can "
                f"read that state can read them\n  To encrypt them: "
                f"pulumi stack change-secrets-provider passphrase -s {stack}, "
                "or awskms://… and the like,\n  and set PULUMI_CONFIG_PASSPHRASE_FILE to the new one's file"
            )
        return (
            f"{stack} has {secrets}, and the passphrase is empty: anybody with its state or its file can read them. "
            f"That is said once. To encrypt them: pulumi stack change-secrets-provider passphrase -s {stack}, and set "
            "PULUMI_CONFIG_PASSPHRASE_FILE to the new one's file"
        )


def unprotected(
    project: PulumiProject, stack: str, document: object, environment: Mapping[str, str], pulumi_home: Path
) -> Unprotected | None:
    """Why a stack's secrets can be read by others; None if something protects them, or Pulumi Cloud keeps them.

    Args:
        pulumi_home: where Pulumi records which backend the user is logged in to.
    """
    if not _is_empty(environment) or not _by_passphrase(document):
        return None
    url = environment.get("PULUMI_BACKEND_URL") or project.backend or logged_in(pulumi_home)
    if url.startswith(_SHARED):
        return Unprotected("shared", _without_user(url), known=False)
    if not url.startswith(_FILE):
        return None
    return Unprotected("local", url, known=_MARK in _state(project, stack))


def _is_empty(environment: Mapping[str, str]) -> bool:
    """Whether Pulumi uses the empty passphrase; if neither variable is set, it asks for one."""
    if "PULUMI_CONFIG_PASSPHRASE" in environment:
        return environment["PULUMI_CONFIG_PASSPHRASE"] == ""
    if not (file := environment.get("PULUMI_CONFIG_PASSPHRASE_FILE")):
        return False
    try:
        return Path(file).read_text().strip() == ""
    except (OSError, ValueError):
        return False


def _by_passphrase(document: object) -> bool:
    provider = document.get("secretsprovider") if isinstance(document, Mapping) else None
    return provider in (None, "", "default", "passphrase")


def _without_user(url: str) -> str:
    scheme, _, rest = url.partition("://")
    return f"{scheme}://{rest.partition('?')[0].rpartition('@')[2]}"


def _state(project: PulumiProject, stack: str) -> str:
    """The stack's state in a local backend, without whitespace; empty before its first update."""
    directory = project.backend_directory()
    if directory is None:
        return ""
    file = directory / ".pulumi" / "stacks" / project.name / f"{stack}.json"
    try:
        packed = file.with_suffix(".json.gz")
        text = gzip.decompress(packed.read_bytes()).decode() if packed.exists() else file.read_text()
    except (OSError, ValueError, EOFError):
        return ""
    return "".join(text.split())
