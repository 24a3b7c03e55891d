"""The checkout this command belongs to: its stacks, where their state is, where their clusters are.

Pulumi.yaml is read with expressions for the three fields needed, since no YAML library is there on a bare machine.
"""

from __future__ import annotations

import difflib
import os
import re
from pathlib import Path

from cli.errors import UserError

ROOT = Path(__file__).resolve().parent.parent
# What in a stack file takes which tool, or set of them.
_ASKED_FOR = {
    # On kind and elsewhere, what is measured and KWOK itself are charts too.
    r"""^[ \t]+(clusterAddons:|kumulus:clusterConfig:|(kumulus:)?runtime:[ \t]*["']?(kind|existing)\b)""": "helm",
    r"^[ \t]+podUsage:": "metrics-server",
    r"^[ \t]+observability:": "observability",
    r"""^[ \t]+(kumulus:)?runtime:[ \t]*["']?kind["']?[ \t]*(#|$)""": "kind",
}
_REAL_NODES = r"""^[ \t]+(kumulus:)?runtime:[ \t]*["']?(kind|existing)\b"""


def stacks() -> list[str]:
    """The stacks that have a file."""
    files = (ROOT / "stacks").glob("Pulumi.*.yaml")
    return sorted(file.name.removeprefix("Pulumi.").removesuffix(".yaml") for file in files)


def require_stack(stack: str) -> str:
    """The stack's name, if it has a file.

    Raises:
        UserError: it has none; names those that have.
    """
    known = stacks()
    if stack in known:
        return stack
    near = difflib.get_close_matches(stack, known, n=1)
    hint = f" (did you mean {near[0]}?)" if near else ""
    raise UserError(f"there is no stacks/Pulumi.{stack}.yaml{hint}; the stacks are: {', '.join(known) or 'none'}")


def optional_tools(stack: str) -> list[str]:
    """The optional tools that a stack's file asks for; none where it has no file."""
    asked = [tools for pattern, tools in _ASKED_FOR.items() if _has(stack, pattern)]
    # There they are images, in the cluster.
    return [tools for tools in asked if tools != "observability" or not _has(stack, _REAL_NODES)]


def runs_host_commands(stack: str) -> bool:
    """Whether a stack's file has something that pulumi-command's plugin runs."""
    return _has(stack, r"^[ \t]+(hostCommands|loadImages):")


def clusters_directory() -> Path:
    """Where the files of local clusters are, a directory for each stack."""
    home = os.environ.get("KUMULUS_HOME", "")
    # A relative one is relative to the program, as in the provider.
    return ROOT / (home or ".kumulus") / "clusters"


def kubeconfig(stack: str) -> Path:
    """Where a stack's kubeconfig is while its cluster is up: its own, or its copy of an existing cluster's."""
    directory = clusters_directory() / stack
    copy = directory / "existing.yaml"
    return copy if copy.exists() else directory / "kubeconfig.yaml"


def name() -> str:
    """The project's name in Pulumi."""
    return _field(r"^name:[ \t]*(\S+)") or "kumulus"


def local_backend() -> Path | None:
    """The directory with the stacks' state, or None when it is not a directory on this machine."""
    url = os.environ.get("PULUMI_BACKEND_URL") or _field(r"^backend:\s*(?:#.*)?\{?\s*url:[ \t]*([^\s}]+)") or ""
    url = url.strip("\"'")
    if not url.startswith("file://"):
        return None
    return (ROOT / Path(url.removeprefix("file://")).expanduser()).resolve()


def state_exists(stack: str) -> bool | None:
    """Whether the backend knows the stack; None when only Pulumi can tell."""
    backend = local_backend()
    if backend is None:
        return None
    folder = backend / ".pulumi" / "stacks" / name()
    return any((folder / f"{stack}.json{packed}").exists() for packed in ("", ".gz", ".zst"))


def _field(pattern: str) -> str | None:
    try:
        text = (ROOT / "Pulumi.yaml").read_text()
    except OSError:
        return None
    match = re.search(pattern, text, re.MULTILINE)
    return match[1] if match else None


def _has(stack: str, pattern: str) -> bool:
    try:
        text = (ROOT / "stacks" / f"Pulumi.{stack}.yaml").read_text()
    except OSError:
        return False
    return re.search(pattern, text, re.MULTILINE) is not None
