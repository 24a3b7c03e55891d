"""``HelmAddon``: a Helm chart in the cluster."""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pulumi
import pulumi_kubernetes as kubernetes
from pulumi_kubernetes.helm.v3 import Release, RepositoryOptsArgs

from components.helm_resources import ChartCrds, ReleaseGround, ReleaseMark
from components.resources import ClusterLike
from components.secrets import marked
from spec.addons import Addon
from spec.errors import Where
from spec.secrets import Secrets

_SNAKE = re.compile(r"([A-Z])")


class HelmAddon(pulumi.ComponentResource):
    """An add-on: one ``helm.v3.Release``, and around it what that leaves undone.

    Its chart's CRDs are made and kept up to date; what an interrupted update left of it is repaired by the next one.

    Args:
        resource_name: its name in the stack.
        addon: chart, version, namespace and values, as in the stack file's ``clusterAddons``.
        cluster: the cluster component it is installed in.
        provider: the Kubernetes provider of that cluster.
        base: directory that a local chart's path refers to.
        secrets: places in ``addon`` that are secret, such as ``("valuesObject", "adminPassword")``.
        depends_on: what has to be there first.
        opts: Pulumi's resource options.
    """

    def __init__(
        self,
        resource_name: str,
        *,
        addon: Addon,
        cluster: ClusterLike,
        provider: kubernetes.Provider,
        base: Path,
        secrets: Sequence[Where] = (),
        depends_on: Sequence[pulumi.Resource] = (),
        opts: pulumi.ResourceOptions | None = None,
    ) -> None:
        super().__init__("kumulus:index:HelmAddon", resource_name, None, opts)
        kept = Secrets(tuple(secrets))
        # A password is one however the stack file has it.
        access = marked(repository_access(addon, base), (*kept.within("repositoryOpts"), ("password",)))
        values = marked(addon.values(), kept.within("valuesObject"))
        # Not the cluster: see docs/decisions/deleted-with.md.
        opts = pulumi.ResourceOptions(parent=self, depends_on=list(depends_on), deleted_with=cluster.lifetime)
        ground = ReleaseGround(
            f"{resource_name}-ground",
            namespace=addon.namespace,
            name=addon.name,
            create_namespace=addon.createNamespace,
            cluster=cluster,
            opts=opts,
        )
        crds = self._crds(resource_name, addon, chart_source(addon, base), access, values, cluster, opts)
        self.release = _release(
            resource_name,
            addon,
            chart_source(addon, base),
            access,
            values,
            ground.repairs,
            pulumi.ResourceOptions(
                parent=self,
                provider=provider,
                depends_on=[*depends_on, ground, *crds],
                deleted_with=cluster.lifetime,
            ),
        )
        ReleaseMark(
            f"{resource_name}-mark",
            namespace=addon.namespace,
            name=addon.name,
            cluster=cluster,
            opts=pulumi.ResourceOptions(parent=self, depends_on=[self.release], deleted_with=cluster.lifetime),
        )
        self.register_outputs({"status": self.release.status})

    @staticmethod
    def _crds(
        resource_name: str,
        addon: Addon,
        source: tuple[str, str | None],
        access: Any,
        values: Any,
        cluster: ClusterLike,
        opts: pulumi.ResourceOptions,
    ) -> list[pulumi.Resource]:
        if addon.crds != "CreateReplace":
            return []
        chart, repository = source
        return [
            ChartCrds(
                f"{resource_name}-crds",
                name=addon.name,
                chart=chart,
                repository=repository,
                version=addon.version,
                access=access,
                values=values,
                cluster=cluster,
                opts=opts,
            )
        ]


def _release(
    resource_name: str,
    addon: Addon,
    source: tuple[str, str | None],
    access: Any,
    values: Any,
    repairs: pulumi.Output[int],
    opts: pulumi.ResourceOptions,
) -> Release:
    chart, repository = source
    return Release(
        f"{resource_name}-release",
        name=addon.name,
        namespace=addon.namespace,
        chart=chart,
        version=addon.version,
        repository_opts=_repository_opts(repository, access),
        values=values,
        # Otherwise Helm keeps the last release's values when the stack file drops all of its own.
        reset_values=True,
        create_namespace=addon.createNamespace,
        timeout=addon.timeout,
        atomic=addon.atomic,
        skip_await=addon.skipAwait,
        # Those of ChartCrds are there by now; Helm would only make what is missing.
        skip_crds=addon.crds != "Create",
        # What an interrupted update left is marked as failed, and gone on from.
        replace=True,
        description=repairs.apply(lambda times: f"repaired {times} times" if times else ""),
        **{_SNAKE.sub(r"_\1", key).lower(): value for key, value in addon.further().items()},
        opts=opts,
    )


def repository_access(addon: Addon, base: Path) -> dict[str, str]:
    """What a private repository asks for, by the names of ``repositoryOpts``; relative paths refer to ``base``."""
    given = addon.repositoryOpts.model_dump() if addon.repositoryOpts else {}
    return {key: str(base / value) if key.endswith("File") else value for key, value in given.items() if value}


def _repository_opts(repository: str | None, access: Any) -> RepositoryOptsArgs | None:
    if not repository and not access:
        return None
    return RepositoryOptsArgs(
        repo=repository,
        username=_of(access, "username"),
        password=_of(access, "password"),
        ca_file=_of(access, "caFile"),
        cert_file=_of(access, "certFile"),
        key_file=_of(access, "keyFile"),
    )


def _of(access: Any, key: str) -> Any:
    # All of it is one output when all of it is secret.
    return access.apply(lambda known: known.get(key)) if isinstance(access, pulumi.Output) else access.get(key)


def chart_source(addon: Addon, base: Path) -> tuple[str, str | None]:
    """Return the chart's reference as Helm takes it, and its repository's URL if it comes from one.

    Args:
        addon: ``chart`` is ``<repoName>/<chart>`` or ``<chart>`` with a ``repoURL``, an ``oci://`` reference, or a
            path (see :func:`spec.addons.chart_kind`).
        base: directory that a relative path refers to.
    """
    if addon.chart_kind == "oci":
        return addon.chart, None
    if addon.chart_kind == "path":
        return str((base / addon.chart).resolve()), None
    if addon.repoURL and addon.repoURL.startswith("oci://"):
        return f"{addon.repoURL.rstrip('/')}/{addon.chart_name}", None
    return addon.chart_name, addon.repoURL
