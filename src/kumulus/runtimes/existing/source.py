"""Where a stack's cluster is: a context of a kubeconfig that the stack file names or contains, and our copy of it.

The copy stays with the cluster that it was made for: if the kubeconfig's context is changed, the copy takes new
credentials from it only while it names the same API server. So even a `destroy`, which knows only the state, cannot
reach another cluster. See docs/decisions/existing-clusters.md.
"""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar

from kumulus.host import files
from kumulus.kube import ApiError, KubeconfigError, Unreachable
from kumulus.model.words import listed
from kumulus.nodes.errors import ProviderError
from kumulus.runtimes.existing import KUBECONFIG_FILE, RUNTIME, is_content
from kumulus.runtimes.place import Place, unfinished

if TYPE_CHECKING:
    from kumulus.kube import Client, Connection

_PATIENCE_S = 10.0
# What stands for a path in messages.
_CONTENT = Path("content (existing.kubeconfig)")
_CLUSTER_FILES = ("certificate-authority",)
_USER_FILES = ("client-certificate", "client-key", "tokenFile")


@dataclass(frozen=True)
class ContextSource:
    """One context of a kubeconfig, without the rest of it."""

    label: Path
    """The kubeconfig's name in messages: its path, or a text for content."""
    path: Path | None
    """The file; None for content."""
    context: str
    """The context's name."""
    document: Mapping[str, Any]
    """A whole kubeconfig with this context alone, in which all paths are absolute."""

    @classmethod
    def of(cls, options: Mapping[str, Any]) -> ContextSource:
        """The source that the runtime's options name."""
        # Imported here: a plugin that only compares properties needs no YAML.
        from kumulus.kube.config import parse_kubeconfig, read_kubeconfig

        setting, context = str(options["kubeconfig"]), options.get("context")
        path = None if is_content(setting) else Path(setting)
        label = path or _CONTENT
        document = read_kubeconfig(path) if path else parse_kubeconfig(setting, label)
        name, found = minified(document, label, str(context) if context else None)
        return cls(label, path, name, found)

    @property
    def server(self) -> str:
        """The API server's address."""
        return str(self.document["clusters"][0]["cluster"].get("server") or "")

    @property
    def user(self) -> str:
        """The user's name in the kubeconfig; empty for none."""
        users = self.document.get("users") or []
        return str(users[0]["name"]) if users else ""

    @property
    def text(self) -> str:
        """The document as a kubeconfig file, in JSON, which is YAML."""
        # YAML has dates, JSON does not.
        return json.dumps(self.document, indent=2, default=str) + "\n"

    def connection(self) -> Connection:
        """How to reach the cluster."""
        from kumulus.kube.config import connection

        return connection(dict(self.document), self.label, self.context)

    def client(self) -> Client:
        """A client of the cluster that soon gives up one that does not answer."""
        # Imported here: a plugin that only compares properties needs no HTTP library.
        from kumulus.kube import Client

        return Client(self.connection(), patience=_PATIENCE_S, request_timeout=_PATIENCE_S / 2)

    def __str__(self) -> str:
        return f"context {self.context!r} of kubeconfig {self.label}"


def minified(document: Mapping[str, Any], label: Path, context: str | None) -> tuple[str, dict[str, Any]]:
    """A context's name, and a kubeconfig with that context alone, in which relative paths have become absolute.

    Without a context, it is the current one. The label is the kubeconfig's path, to which its own paths are relative.
    """
    from kumulus.kube.config import entries

    found = entries(dict(document), label, context)
    base = label.absolute().parent
    user = _absolute(found.user, _USER_FILES, base)
    if isinstance(user.get("exec"), Mapping):
        command = str(user["exec"].get("command") or "")
        # As in kubectl, a command with a slash is relative to the kubeconfig; another one is looked for on PATH.
        if "/" in command:
            user = {**user, "exec": {**user["exec"], "command": str(base / command)}}
    settings = {key: value for key, value in found.settings.items() if key not in ("cluster", "user")}
    cluster_name, user_name = str(found.settings.get("cluster")), str(found.settings.get("user") or "")
    return found.context, {
        "apiVersion": "v1",
        "kind": "Config",
        "current-context": found.context,
        "contexts": [
            {
                "name": found.context,
                "context": {
                    **settings,
                    "cluster": cluster_name,
                    **({"user": user_name} if user_name else {}),
                },
            }
        ],
        "clusters": [{"name": cluster_name, "cluster": _absolute(found.cluster, _CLUSTER_FILES, base)}],
        "users": [{"name": user_name, "user": user}] if user_name else [],
    }


def problems(options: Mapping[str, Any]) -> dict[str, str]:
    """What is wrong with the options that say where the cluster is: the option → what to do."""
    setting = options.get("kubeconfig")
    if not isinstance(setting, str) or not setting.strip():
        return {"kubeconfig": "is required: the path of a kubeconfig, or its content"}
    if not isinstance(options.get("context", ""), str):
        return {"context": "is not the name of a context"}
    if not is_content(setting) and ":" in setting and not os.path.exists(setting):
        return {"kubeconfig": f"{setting} names several files; write the one that has the context"}
    try:
        source = ContextSource.of(options)
        if several := _several_contexts(options, source):
            return {"context": several}
        source.connection()
    except KubeconfigError as error:
        # The message names the context if that is what is wrong.
        key = "context" if " context " in str(error) and options.get("context") else "kubeconfig"
        return {key: str(error)}
    return {}


def _several_contexts(options: Mapping[str, Any], source: ContextSource) -> str:
    """A message that the context has to be written; empty when it is, or when there is only one.

    The current one is what somebody last worked with: `kubectl config use-context` would redirect the next update.
    """
    if options.get("context"):
        return ""
    from kumulus.kube.config import contexts, parse_kubeconfig, read_kubeconfig

    setting = str(options["kubeconfig"])
    names = contexts(read_kubeconfig(source.path) if source.path else parse_kubeconfig(setting, source.label))
    if len(names) < 2:
        return ""
    return (
        f"is left out, and kubeconfig {source.label} has {len(names)} contexts ({listed(names, 8)}); "
        f"write the one that is meant, such as {source.context}, its current one"
    )


def _absolute(entry: Mapping[str, Any], keys: tuple[str, ...], base: Path) -> dict[str, Any]:
    return {key: str(base / str(value)) if key in keys and value else value for key, value in entry.items()}


GONE_FOR_GOOD = "if that cluster is gone for good, `pulumi stack rm --force` forgets what was in it"


def another_cluster(context: ContextSource, identity: str, actual: str) -> ProviderError:
    """The context leads to another cluster than at the last update."""
    return ProviderError(
        f"{context} leads to another cluster: the UID of its namespace kube-system is {actual}, and was {identity} at "
        f"the last update; nothing was changed. Point the context back to the stack's cluster; {GONE_FOR_GOOD}"
    )


def not_allowed(context: ContextSource, lacking: str) -> ProviderError:
    """Permissions are missing."""
    return ProviderError(
        f"{context}: the user {context.user!r} lacks permissions that this stack needs: {lacking}. "
        "docs/clusters.md has roles to grant them; nothing was changed"
    )


def not_asked(context: ContextSource, error: ApiError | Unreachable) -> ProviderError:
    """The server does not answer, or not to this user."""
    if isinstance(error, Unreachable):
        return ProviderError(
            f"{context}: {error}; nothing was changed. When it answers, run this again; {GONE_FOR_GOOD}"
        )
    if error.status == 401:
        return ProviderError(
            f"{context}: {context.server} does not accept the credentials of the user {context.user!r} (401 "
            "Unauthorized): they may have expired; renew them, for example by logging in again, and run this again"
        )
    if error.status == 403:
        return not_allowed(context, f"namespaces: get ({error.message})")
    return ProviderError(f"{context}: {error}; nothing was changed")


# Keys of the note next to a copy.
_RUNTIME, _SOURCE, _CONTEXT = "runtime", "source", "context"


class CopyPlace(Place):
    """The directory with the stack's copy of a kubeconfig."""

    FILES: ClassVar[frozenset[str]] = Place.FILES | {KUBECONFIG_FILE}
    OURS_WITHOUT_NOTE: ClassVar[frozenset[str]] = frozenset({unfinished("kumulus.json"), unfinished(KUBECONFIG_FILE)})

    @property
    def kubeconfig(self) -> Path:
        """The copy."""
        return self.directory / KUBECONFIG_FILE


def outlives_by_note(kubeconfig: Path) -> bool:
    """Whether a cluster is one that no stack makes or removes, by the note next to its kubeconfig.

    Without a note, as on a new machine, the kubeconfig's name is the only sign of it.
    """
    runtime = Place(kubeconfig.parent).note().get(_RUNTIME)
    return runtime == RUNTIME.name if runtime else kubeconfig.name == KUBECONFIG_FILE


def write(place: CopyPlace, source: ContextSource, owner: str) -> None:
    """Write the copy, readable by its owner alone, and a note of its source."""
    place.home.mkdir(mode=0o700, parents=True, exist_ok=True)
    place.directory.parent.mkdir(mode=0o700, exist_ok=True)
    place.directory.mkdir(mode=0o700, exist_ok=True)
    note = {"owner": owner, _RUNTIME: RUNTIME.name, _SOURCE: str(source.path or ""), _CONTEXT: source.context}
    # The note first, so that a killed process leaves a directory that is recognised as the stack's.
    if place.note() != note:
        place.write_note(note)
    # As bytes: a copy that is damaged need not be a text.
    if not place.kubeconfig.is_file() or place.kubeconfig.read_bytes() != source.text.encode():
        files.write(place.kubeconfig, source.text, mode=0o600)


def refresh(kubeconfig: str) -> None:
    """Give a copy new credentials from its source, if that has some for the same API server; all else is left alone."""
    place = CopyPlace(Path(kubeconfig).parent)
    note = place.note()
    if not note.get(_SOURCE):
        return
    with suppress(KubeconfigError, OSError, ValueError, KeyError, IndexError):
        source = ContextSource.of({"kubeconfig": note[_SOURCE], "context": note.get(_CONTEXT)})
        known = json.loads(place.kubeconfig.read_text())
        if known["clusters"] == source.document["clusters"] and known != source.document:
            files.write(place.kubeconfig, source.text, mode=0o600)
