"""A stack's identity, which marks what the stack makes in a cluster or on a machine. A name only finds such a thing.

See docs/decisions/identity.md.
"""

import hashlib
import re
import secrets
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Self

STACK_ANNOTATION = "kumulus.io/stack"
"""On objects that no other stack may take over: the owner, ``<organization>/<project>/<stack>``."""

TENANT_LABEL = "kumulus.io/tenant"
POD_SECURITY_LABEL = "pod-security.kubernetes.io/enforce"
"""Source: https://kubernetes.io/docs/concepts/security/pod-security-admission/."""

RUN_LABEL = "kumulus.io/experiment-run"
"""The run's id, on whatever an experiment's run makes in a cluster: anything without it belongs to somebody else."""


STACK_ID = "kumulus.io/stack-id"
"""The label on everything that a stack makes: the identity of the owning stack."""

_LENGTH = 32
_IDENTITY = re.compile(rf"[0-9a-f]{{{_LENGTH}}}")


def drawn(seed: bytes = b"") -> str:
    """A new identity, 128 bits in hexadecimal digits, from a random seed; the same seed gives the same one."""
    return hashlib.sha256(b"kumulus stack identity" + (seed or secrets.token_bytes(32))).hexdigest()[:_LENGTH]


def is_identity(value: object) -> bool:
    """Whether a value has the form of an identity."""
    return isinstance(value, str) and _IDENTITY.fullmatch(value) is not None


@dataclass(frozen=True)
class Owner:
    """A stack, in the form that marks what it makes."""

    identity: str = ""
    """Its identity; empty for a stack that has none yet and marks nothing."""
    stack: str = ""
    """Its current name, such as ``organization/kumulus/dev``; only for messages."""
    recorded: str = ""
    """An earlier identity, with which its state has the object in question: what carries that one is its own, too."""

    @classmethod
    def of(cls, metadata: Mapping[str, Any]) -> Self | None:
        """The owner of an object, by its metadata; None when no stack has marked it."""
        identity = str((metadata.get("labels") or {}).get(STACK_ID) or "")
        if not identity:
            return None
        return cls(identity, str((metadata.get("annotations") or {}).get(STACK_ANNOTATION) or ""))

    def is_known_by(self, identity: str) -> bool:
        """Whether an identity, which an object carries, is this stack's; an empty one is nobody's."""
        return bool(identity) and identity in (self.identity, self.recorded)

    @property
    def labels(self) -> dict[str, str]:
        """The labels of what this stack owns."""
        return {STACK_ID: self.identity} if self.identity else {}

    @property
    def annotations(self) -> dict[str, str]:
        """The annotations of what this stack owns, where there is room for them."""
        return {STACK_ANNOTATION: self.stack} if self.stack and self.identity else {}

    def __str__(self) -> str:
        """Its name in a sentence: ``the stack organization/kumulus/dev (identity 1f3a9c0b)``."""
        named = f"the stack {self.stack}" if self.stack else "another stack"
        return f"{named} (identity {self.identity[:8]})" if self.identity else named


NOBODY = Owner()
"""The owner of things that carry no identity."""
