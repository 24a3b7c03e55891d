"""Imports: from an id that names a cluster or one of its pools, and from the note kept with the cluster's files."""

from __future__ import annotations

import json
import os
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from kumulus.host import files
from kumulus.kube import ApiError, KubeconfigError, Unreachable
from kumulus.model.identity import STACK_ID
from kumulus.model.pool_form import pool_to_properties
from kumulus.nodes.errors import ProviderError
from kumulus.nodes.pools import record
from kumulus.provider.resources.base import Properties
from kumulus.runtimes import apiserver
from kumulus.runtimes.place import Place

if TYPE_CHECKING:
    from kumulus.provider.connections import Connections

_KEYS = ("runtime", "kubernetesVersion", "options")
_PATIENCE = 10.0


def default_home() -> str:
    """The home of clusters that do not name one; a relative path refers to the program's directory."""
    return os.environ.get("KUMULUS_HOME") or ".kumulus"


def note(directory: str, inputs: Properties) -> None:
    """Write down what a cluster was declared with, in a file that only its owner can read, for a later import.

    A full disk must not fail work that is done: an import reports that the note is missing.
    """
    place = Place(Path(directory))
    text = json.dumps({key: inputs[key] for key in _KEYS if inputs.get(key) is not None}, indent=2, sort_keys=True)
    with suppress(OSError, TypeError):
        if place.directory.is_dir() and _text(place) != text:
            files.write(place.declared_file, text)
            place.declared_file.chmod(0o600)


def cluster_place(name: str, program: str) -> Place:
    """The place of a cluster: by its name in the default home, or by a path from the program's directory."""
    if os.sep in name:
        place = Place(Path(os.path.normpath(os.path.join(program, name))))
    else:
        place = Place.of(os.path.normpath(os.path.join(program, default_home())), name)
    if not place.note_file.exists():
        raise ProviderError(
            f"no cluster of Kumulus is at {place.directory}; write the path of its directory, <home>/clusters/<name>, "
            "in place of its name, or set KUMULUS_HOME to its home"
        )
    return place


def cluster_inputs(place: Place) -> Properties:
    """The inputs of a cluster, from its note."""
    try:
        declared = json.loads(_text(place))
        found = {key: declared[key] for key in _KEYS if key in declared}
    except (ValueError, TypeError):
        raise ProviderError(
            f"cluster {place.name}: {place.declared_file} does not say what it was declared with; `pulumi refresh` in "
            "the stack that made it writes that"
        ) from None
    return {"name": place.name, "home": str(place.home), "status": "running", **found}


async def identity(place: Place) -> str:
    """Ask a cluster for its identity."""
    try:
        return await apiserver.identity(place.kubeconfig, _PATIENCE)
    except (ApiError, Unreachable, KubeconfigError) as error:
        raise ProviderError(
            f"cluster {place.name} does not say who it is: {error}; bring it back where it was made, with "
            "`pulumi up --refresh`, and import it then"
        ) from None


async def pool_inputs(connections: Connections, resource_id: str, program: str) -> Properties:
    """The inputs of the node pool `<cluster>/<pool>`, as recorded in the cluster; see :func:`cluster_place`."""
    cluster, _, name = resource_id.rpartition("/")
    if not cluster or not name:
        raise ProviderError(f"{resource_id!r} names no pool; write <cluster>/<pool>, such as demo/gpu-a100-use1")
    place = cluster_place(cluster, program)
    found = await identity(place)
    try:
        client = await connections.client(str(place.kubeconfig), found, _PATIENCE)
        pool = await record.find(client, name, _PATIENCE)
    except (ApiError, Unreachable, KubeconfigError) as error:
        raise ProviderError(f"pool {name}: {error}") from None
    if pool is None:
        raise ProviderError(
            f"cluster {place.name} has no pool {name!r} on record; `kubectl get nodes -L kumulus.io/pool` shows the "
            "pools"
        )
    where = {"kubeconfig": str(place.kubeconfig), "clusterIdentity": found, "clusterName": place.name}
    # The pool keeps the identity of the stack that made it until this stack's next update replaces it.
    labels = {key: value for key, value in pool.labels.items() if key != STACK_ID}
    marked = {"stackId": pool.labels[STACK_ID]} if STACK_ID in pool.labels else {}
    return {**where, **marked, **pool_to_properties(replace(pool, labels=labels))}


def _text(place: Place) -> str:
    try:
        return place.declared_file.read_text()
    except OSError:
        return ""
