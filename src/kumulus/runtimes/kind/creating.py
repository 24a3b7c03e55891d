"""Have kind make a cluster, and wait until it can be used."""

from __future__ import annotations

import asyncio
import os
import re
import subprocess
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from kumulus import toolchain
from kumulus.host import files
from kumulus.kube import ApiError, KubeconfigError, Unreachable
from kumulus.kube.bodies import nothing
from kumulus.kube.codecs import STRATEGIC_MERGE_PATCH
from kumulus.kube.objects import NODES
from kumulus.model import nodes
from kumulus.model.durations import seconds
from kumulus.model.words import counted
from kumulus.nodes.errors import ProviderError
from kumulus.nodes.reporter import Reporter
from kumulus.runtimes import apiserver, directories
from kumulus.runtimes.base import WantedControlPlane
from kumulus.runtimes.kind import DEFAULT_WAIT, commands, failures
from kumulus.runtimes.kind.commands import environment
from kumulus.runtimes.kind.containers import ContainerEngine
from kumulus.runtimes.kind.kind_config import EMPTY, with_room
from kumulus.runtimes.kind.place import LONGEST_S, KindPlace

if TYPE_CHECKING:
    from kumulus.kube import Client

_READ_S = 30.0
# The patches of :func:`with_metrics`. They have no API version, so that kind applies them to whichever it writes (its
# pkg/internal/patch). The first two programs ask for a token; etcd and kube-proxy serve nothing but numbers there.
_COMPONENTS = """\
kind: ClusterConfiguration
controllerManager: {{extraArgs: {{bind-address: "{anywhere}"}}}}
scheduler: {{extraArgs: {{bind-address: "{anywhere}"}}}}
etcd: {{local: {{extraArgs: {{listen-metrics-urls: "http://{host}:2381"}}}}}}
"""
_KUBE_PROXY = """\
kind: KubeProxyConfiguration
metricsBindAddress: "{host}:10249"
"""

_DAEMON_SETS = "/apis/apps/v1/namespaces/kube-system/daemonsets"

# For all attempts to delete a cluster, and between two of them.
_DELETE_S, _PAUSE_S = 45.0, 0.5
_STEP = re.compile(r"^ • (.*?)\s*\.\.\.")
_NOT_TEXT = re.compile(r"[^\x20-\x7e]")

# As Pulumi's Kubernetes provider asks for it when it starts, waiting 8 s. A new server takes longer to put it together
# the first time on a busy machine, and then the update fails; it keeps what it has put together.
_SCHEMA = "application/com.github.proto-openapi.spec.v2@v1.0+protobuf"


class NothingMade(ProviderError):
    """Kind has failed before it made a container: those of the cluster's name, if any, are somebody else's."""


def executable() -> str:
    """The path of kind's executable."""
    try:
        return str(toolchain.find("kind"))
    except toolchain.ToolchainError as error:
        raise ProviderError(f"the runtime kind needs kind: {error}") from None


def _environment(engine: ContainerEngine, report: Reporter | None = None) -> dict[str, str]:
    """The variables to run kind with; reports what the engine cannot do for kind."""
    found = environment(os.environ)
    if found.notice and report:
        report.info(found.notice)
    return {**found.variables, **engine.environment}


def configuration(options: Mapping[str, Any]) -> dict[str, Any]:
    """The stack's ``kindConfig``, with room for a fleet's addresses, and metrics that can be scraped."""
    return with_metrics(with_room(options.get("kindConfig") or {}))


def image(wanted: WantedControlPlane) -> str | None:
    """The image for all nodes; None where kind, or the stack's ``kindConfig``, has its own."""
    if chosen := wanted.options.get("nodeImage"):
        return str(chosen)
    return f"kindest/node:{wanted.kubernetes_version}" if wanted.kubernetes_version else None


async def make(
    place: KindPlace, wanted: WantedControlPlane, engine: ContainerEngine, report: Reporter, stop: asyncio.Event
) -> None:
    """Have kind make the cluster, and write its kubeconfig to its place.

    Raises:
        NothingMade: it failed, or was cancelled, before kind made anything.
        ProviderError: the same, but kind may have left something.
    """
    steps: list[str] = []
    node_image = image(wanted)
    try:
        ended = await commands.run(
            executable(),
            "create",
            "cluster",
            # If it fails, we remove what it has made: kind would remove whatever has the name by then, such as what
            # somebody else has made while the image was pulled.
            "--retain",
            *("--name", place.name),
            *("--config", str(place.config_file)),
            *("--kubeconfig", str(place.kubeconfig)),
            *(("--image", node_image) if node_image else ()),
            timeout=LONGEST_S,
            environment=_environment(engine, report),
            on_line=lambda line: _report(line, report, steps),
            stop=stop,
        )
    except commands.CommandCancelled:
        message = f"cancelled while kind was making cluster {place.name}; nothing of it is left"
        raise _failure(steps)(message) from None
    except commands.CommandTimeout:
        raise _failure(steps)(f"kind did not make cluster {place.name} within {LONGEST_S / 60:.0f} min") from None
    if ended.code and "already exist for a cluster with the name" in ended.stderr:
        raise NothingMade(failures.taken(place.name))
    if ended.code:
        raise _failure(steps)(failures.explained(ended, place.config_file.read_text()))
    directories.keep_private(place, [place.kubeconfig, place.config_file])


def _report(line: str, report: Reporter, steps: list[str]) -> None:
    if step := _STEP.match(line):
        steps.append(_NOT_TEXT.sub("", step.group(1)).strip().lower())
        report.status(f"kind: {steps[-1]}")


def _failure(steps: Sequence[str]) -> type[ProviderError]:
    """What to raise when kind did not come further than these steps: it pulls the image before it makes a container."""
    return NothingMade if steps and steps[-1].startswith("ensuring node image") else ProviderError


async def ready(place: KindPlace, options: Mapping[str, Any], report: Reporter, stop: asyncio.Event) -> str:
    """Wait until the API server answers and every node is ready; returns the cluster's identity.

    Without kind's own network (``disableDefaultCNI``), nodes are not waited for: an add-on has to bring one first.
    """
    wait = seconds(str(options.get("wait") or DEFAULT_WAIT))
    deadline = time.monotonic() + wait
    patience = max(wait, 5.0)
    networking = (options.get("kindConfig") or {}).get("networking") or {}
    try:
        identity = await apiserver.identity(place.kubeconfig, patience)
        async with apiserver.client(place.kubeconfig, patience=patience) as client:
            await keep_to_real_nodes(client)
            await client.request("GET", "/openapi/v2", accept=_SCHEMA, decode=nothing)
            if networking.get("disableDefaultCNI"):
                return identity
            while waiting := _waiting((await client.get(NODES))["items"]):
                if stop.is_set():
                    raise ProviderError(f"cancelled while cluster {place.name} was starting; nothing of it is left")
                if time.monotonic() > deadline:
                    reasons = "; ".join(f"{name}: {why}" for name, why in list(waiting.items())[:3])
                    raise ProviderError(
                        f"{len(waiting)} of cluster {place.name}'s nodes did not become ready within {wait:g} s "
                        f"({reasons}); kind.wait can be longer"
                    )
                report.status(f"waiting for {counted(len(waiting), 'node')}")
                await asyncio.sleep(0.5)
    except (ApiError, Unreachable, KubeconfigError) as error:
        raise ProviderError(f"the API server of cluster {place.name} does not answer: {error}") from None
    return identity


def _waiting(nodes: list[dict[str, Any]]) -> dict[str, str]:
    """The nodes that are not ready, each with its reason."""
    found = {}
    for node in nodes:
        conditions = {each["type"]: each for each in node["status"].get("conditions") or []}
        state = conditions.get("Ready") or {}
        if state.get("status") != "True":
            found[str(node["metadata"]["name"])] = str(state.get("message") or "it has said nothing")[:200]
    return found


async def kubeconfig(engine: ContainerEngine, place: KindPlace, file: Path) -> None:
    """Write the kubeconfig of an existing cluster."""
    asked = ("get", "kubeconfig", "--name", place.name)
    try:
        ended = await commands.run(executable(), *asked, timeout=_READ_S, environment=_environment(engine))
    except commands.CommandTimeout:
        raise ProviderError(f"the kubeconfig of kind cluster {place.name} was not read within {_READ_S:g} s") from None
    if ended.code:
        raise ProviderError(f"the kubeconfig of kind cluster {place.name} cannot be read: {failures.brief(ended)}")
    files.write(file, ended.stdout, mode=0o600)


def discard(engine: ContainerEngine, place: KindPlace) -> None:
    """Remove every container of a cluster; finding none is success.

    This blocks the event loop: it is the last step of a cancelled call, and if it could be cancelled again, it would
    leave containers behind.
    """
    deadline = time.monotonic() + _DELETE_S
    while True:
        problem = _delete(engine, place, deadline)
        left = engine.listed(place.name)
        if not problem and not left:
            return
        # A container that is still being made is listed and cannot be removed yet: some versions of docker rm fail
        # then, and some do not.
        being_made = "no such" in problem.lower() or not problem
        if not being_made or time.monotonic() > deadline:
            raise ProviderError(f"kind could not delete cluster {place.name}: {problem or 'a container is being made'}")
        time.sleep(_PAUSE_S)


def _delete(engine: ContainerEngine, place: KindPlace, deadline: float) -> str:
    """Have kind delete a cluster; returns why it could not, or "". The deadline is by :func:`time.monotonic`."""
    command = [executable(), "delete", "cluster", "--name", place.name, "--kubeconfig", str(place.kubeconfig)]
    try:
        answer = subprocess.run(
            command,
            env=_environment(engine),
            capture_output=True,
            text=True,
            errors="replace",
            stdin=subprocess.DEVNULL,
            timeout=max(1.0, deadline - time.monotonic()),
            check=False,
            start_new_session=True,
        )
    except subprocess.TimeoutExpired:
        return f"it did not end within {_DELETE_S:.0f} s"
    return failures.brief(commands.Ended(answer.returncode, "", answer.stderr)) if answer.returncode else ""


async def keep_to_real_nodes(client: Client) -> None:
    """Make a new cluster's DaemonSets avoid emulated nodes; one that has a node affinity already is left alone.

    Those of kind and kubeadm (the pod network, kube-proxy) tolerate every taint, so each emulated node would get a pod
    of each. Nobody asked for these pods, and each costs the API server more writes than the node itself.
    """
    change = {"spec": {"template": {"spec": {"affinity": nodes.affinity_to_real()}}}}
    for each in (await client.get(_DAEMON_SETS))["items"]:
        if not (each["spec"]["template"]["spec"].get("affinity") or {}).get("nodeAffinity"):
            path = f"{_DAEMON_SETS}/{each['metadata']['name']}"
            await client.write("PATCH", path, change, content_type=STRATEGIC_MERGE_PATCH)


def with_metrics(config: Mapping[str, Any]) -> dict[str, Any]:
    """A checked ``kindConfig`` by which a Prometheus in the cluster reaches the metrics of the control plane.

    kubeadm has them served on 127.0.0.1 of their node, out of reach of pods (docs/decisions/observability.md). Our
    patches for kubeadm come before those of the configuration, which win.
    """
    networking = config.get("networking") or {}
    anywhere = "::" if networking.get("ipFamily") == "ipv6" else "0.0.0.0"  # noqa: S104 - of a container's network
    host = f"[{anywhere}]" if ":" in anywhere else anywhere
    patches = [each.format(anywhere=anywhere, host=host) for each in (_COMPONENTS, _KUBE_PROXY)]
    return {**EMPTY, **config, "kubeadmConfigPatches": [*patches, *(config.get("kubeadmConfigPatches") or [])]}
