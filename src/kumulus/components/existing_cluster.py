"""``ExistingCluster``: a cluster that is there already, by its kubeconfig; and whether a stack installs KWOK in it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Unpack

import pulumi

from kumulus.components import engine
from kumulus.components.arguments import checked
from kumulus.components.control_plane import ControlPlane, ControlPlaneArgs
from kumulus.components.engine import user_error
from kumulus.components.inputs import CheckedInputs
from kumulus.components.mistakes import collected
from kumulus.kwok.controllers import release_name
from kumulus.model.errors import shown
from kumulus.runtimes import existing
from kumulus.runtimes.existing.section import Existing
from kumulus.stackfile.load import LoadedCluster
from kumulus.stackfile.model import ClusterSpec


class ExistingClusterArgs(ControlPlaneArgs, total=False):
    """Arguments of an ExistingCluster."""

    kubeconfig: pulumi.Input[str]
    """A path (relative to the program's directory, or with ``~``), or the whole text of a kubeconfig, which is kept as
    a secret. Default: ``$KUBECONFIG``, or else ``~/.kube/config``."""
    context: pulumi.Input[str]
    """A context of that kubeconfig. Optional if there is only one."""
    needs: Sequence[str]
    """What the program does there: nodes, faults, stages, usage, devices, hypernodes, kwok, addons, tenants,
    autoscaler. The permissions for it are checked before anything is changed. Default: nothing is checked."""


@collected
class ExistingCluster(ControlPlane):
    """A cluster of which nothing but what the stack puts into it is made, changed or removed."""

    runtime = "existing"

    def __init__(
        self, resource_name: str, *, opts: pulumi.ResourceOptions | None = None, **args: Unpack[ExistingClusterArgs]
    ) -> None:
        source = f"ExistingCluster {resource_name}"
        with checked(args, ExistingClusterArgs, source) as wrong:
            wanted = list(args.get("needs") or ())
            if unknown := [each for each in wanted if each not in existing.NEEDS]:
                wrong.add("needs", f"has {shown(unknown[0])}", f"write some of {', '.join(existing.NEEDS)}")
            with wrong.also():
                name = CheckedInputs(
                    ClusterSpec, source, {"name": args.get("cluster_name") or resource_name}, {"name": "cluster_name"}
                ).plain.name
            values = {key: args.get(key) for key in ("kubeconfig", "context")}
            found = CheckedInputs(Existing, source, values, {})
        options: dict[str, Any] = {**found.plain.options(Path.cwd()), "needs": wanted}
        if found.is_later("kubeconfig"):
            # It may be a kubeconfig's text, with keys in it.
            options["kubeconfig"] = pulumi.Output.secret(found["kubeconfig"]).apply(_path_or_text)
        if found.is_later("context"):
            options["context"] = found["context"]
        self._declare(resource_name, name, None, with_secret_kubeconfig(options), opts)


def _path_or_text(kubeconfig: str) -> str:
    """A kubeconfig as the runtime takes it: an absolute path, or the whole text."""
    return str(Existing(kubeconfig=kubeconfig).options(Path.cwd())["kubeconfig"])


def with_secret_kubeconfig(options: dict[str, Any]) -> dict[str, Any]:
    """Options, with a kubeconfig's text marked as a secret; a runtime of an extra may have no such option."""
    kubeconfig = options.get("kubeconfig")
    if isinstance(kubeconfig, str) and existing.is_content(kubeconfig):
        return {**options, "kubeconfig": pulumi.Output.secret(kubeconfig)}
    return options


def needs_of(loaded: LoadedCluster, kwok: KwokPlan) -> list[str]:
    """What a loaded stack does in its cluster, and so needs permissions for."""
    spec, extras = loaded.spec, loaded.spec.sections_of_extras()
    wanted = {
        existing.NODES: loaded.pools,
        existing.FAULTS: loaded.faults,
        existing.STAGES: spec.podLifecycles or kwok.stages,
        existing.USAGE: spec.podUsage,
        existing.DEVICES: any(group.resourceSlices for group in spec.nodeGroups),
        existing.HYPERNODES: any(group.has_hyper_nodes for group in spec.nodeGroups),
        existing.KWOK: kwok.install,
        existing.TENANTS: spec.tenants,
        existing.ADDONS: spec.clusterAddons or "observability" in extras,
        existing.AUTOSCALER: "autoscaler" in extras,
    }
    return [need for need, asked in wanted.items() if asked]


@dataclass(frozen=True)
class KwokPlan:
    """What becomes of KWOK in a cluster."""

    install: bool = False
    """Whether the stack installs it."""
    stages: bool = False
    """Whether the cluster takes KWOK's stages as objects, or will."""
    controller: str = ""
    """Where another than the stack has installed it, ``<namespace>/<name>``; empty for nowhere."""

    @classmethod
    def of(cls, loaded: LoadedCluster, base: Path) -> KwokPlan:
        """The plan for a loaded stack; looks into an existing cluster, and refuses one that does not answer.

        Taken for one without KWOK, such a cluster would get a second KWOK, or lose the stack's stages, as soon as it
        answers again.
        """
        # None if the stack file does not say: then it is installed unless it is there.
        asked = loaded.spec.kwokCharts.install
        if loaded.spec.runtime_descriptor.local:
            return cls()
        if asked or not loaded.spec.runtime_descriptor.outlives_stack:
            install = asked is not False
            return cls(install=install, stages=install)
        where = {**loaded.spec.runtime_options(base), "release": release_name(loaded.cluster_name)}
        answer = pulumi.runtime.invoke("kumulus:index:findKwok", where, engine.invoke_options()).value or {}
        if problem := answer.get("problem"):
            raise user_error(str(problem))
        controller = str(answer.get("controller") or "")
        install = asked is None and not controller
        return cls(install, install or bool(answer.get("stages")), controller)
