"""Which cluster a stack of the runtime existing uses, and what it needs to be allowed there."""

import os
from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any

from pydantic import Field

from kumulus.model.checks import problem
from kumulus.model.errors import Problem, Where
from kumulus.model.fields import checked
from kumulus.runtimes.existing import is_content
from kumulus.runtimes.section import RuntimeSection


def _text_problems(where: Where, raw: object) -> list[Problem]:
    # Never with the value itself: a kubeconfig's content holds keys.
    if isinstance(raw, str) and raw.strip():
        return []
    return [problem(where, "is not a path or a kubeconfig's text", "write a path such as ~/.kube/config")]


class Existing(RuntimeSection):
    """An existing cluster, in which the stack creates and deletes only what it puts there itself."""

    kubeconfig: Annotated[str, checked(_text_problems, str, form="notBlank")] = Field(
        default="", examples=["~/.kube/config"]
    )
    """A path, relative to the project's directory or with `~`; or a kubeconfig's whole text, as an encrypted value. By
    default `$KUBECONFIG`, or else `~/.kube/config`."""
    context: str = Field(default="", examples=["my-cluster"])
    """The context of that kubeconfig; optional if there is only one."""

    def options(self, base: Path = Path(), environment: Mapping[str, str] = os.environ) -> dict[str, Any]:
        """Where the cluster is, as options of the resource Cluster; the environment has the user's ``KUBECONFIG``."""
        context = {"context": self.context} if self.context else {}
        if is_content(self.kubeconfig):
            return {"kubeconfig": self.kubeconfig, **context}
        # A list of files, which kubectl would merge, is reported when the kubeconfig is looked for.
        path = self.kubeconfig or environment.get("KUBECONFIG") or "~/.kube/config"
        return {"kubeconfig": str(base / os.path.expanduser(path)), **context}


def content_problems(existing: Existing, encrypted: bool) -> list[Problem]:
    """Problems of a kubeconfig's content in the stack file: unencrypted, it would be so in the stack's state too.

    Pulumi gives the whole configuration to the plugin's provider, and records it in the state.
    """
    if encrypted or not is_content(existing.kubeconfig):
        return []
    place = "existing.kubeconfig"
    remedy = f"set it with: pulumi config set --secret --path kumulus:cluster.{place} < FILE, or write the file's path"
    return [Problem(place, "is a kubeconfig in clear, with its keys", remedy)]
