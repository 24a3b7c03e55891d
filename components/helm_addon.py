"""``HelmAddon``: a Helm chart in the cluster."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any, Literal, Required, TypedDict, Unpack, cast

import pulumi

from kumulus.components.arguments import SectionOf, check, fields
from kumulus.components.helm_release import HelmRelease
from kumulus.components.helm_resources import ReleaseMark, ReleasePreparation
from kumulus.components.inputs import Checked, refused
from kumulus.components.resources import ClusterLike, depended_on
from kumulus.components.secrets import marked
from kumulus.model.errors import Where
from kumulus.stackfile.addons import Addon, chart_kind, missing_chart
from kumulus.stackfile.secrets import Secrets


class HelmAddonArgs(TypedDict, total=False):
    """What a HelmAddon is given."""

    cluster: Required[ClusterLike]
    """The cluster it is installed in."""
    chart: Required[str]
    """A chart of ``repo_url``, an ``oci://`` reference, or a path, ``./chart``, from ``base``."""
    repo_url: pulumi.Input[str]
    """The chart's repository, ``https://…``; needed unless the chart is an ``oci://`` reference or a path."""
    version: pulumi.Input[str]
    """The chart's version; the newest when left out."""
    namespace: pulumi.Input[str]
    """Where it is installed; ``default`` when left out."""
    values: pulumi.Input[Mapping[str, Any]]
    """The chart's values."""
    release_name: str
    """The Helm release's name; the resource's name when left out."""
    create_namespace: pulumi.Input[bool]
    """Whether the namespace is made where it is missing, and removed with the last add-on in it. True when left out."""
    timeout: pulumi.Input[int]
    """Seconds to wait until all of it is ready; 300 when left out."""
    atomic: pulumi.Input[bool]
    """Take the release back when it fails. False when left out."""
    skip_await: pulumi.Input[bool]
    """Do not wait until all of it is ready. False when left out."""
    crds: Literal["CreateReplace", "Create", "Skip"]
    """What becomes of the CRDs in the chart's ``crds`` directories: ``CreateReplace``, made and kept up to date, when
    left out."""
    repository_opts: Annotated[pulumi.Input[Mapping[str, Any]], SectionOf("kumulus.stackfile.addons:RepositoryOpts")]
    """How to be let into a private repository: username, password, caFile, certFile, keyFile."""
    base: str
    """The directory that a chart's relative path refers to; the program's when left out."""
    cleanup_on_fail: pulumi.Input[bool]
    """Delete what a failed upgrade has made."""
    dependency_update: pulumi.Input[bool]
    """Fetch the chart's dependencies first, for a chart from a path."""
    devel: pulumi.Input[bool]
    """Without a version, take one of development too."""
    disable_openapi_validation: pulumi.Input[bool]
    """Do not check the objects against the cluster's OpenAPI schema."""
    disable_webhooks: pulumi.Input[bool]
    """Run no hooks."""
    force_update: pulumi.Input[bool]
    """Delete and make again what cannot be updated."""
    keyring: pulumi.Input[str]
    """Path of the public keys for ``verify``."""
    lint: pulumi.Input[bool]
    """Lint the chart before an upgrade."""
    max_history: pulumi.Input[int]
    """How many revisions are kept; 0 means all of them."""
    verify: pulumi.Input[bool]
    """The chart has to be signed."""
    wait_for_jobs: pulumi.Input[bool]
    """Wait for Jobs to complete, too."""


_APART = {"release_name": "name", "repo_url": "repoURL", "values": "valuesObject"}
_FIELDS = fields(HelmAddonArgs, but=("cluster", "base"), otherwise=_APART)
_NAMES = {field: name for name, field in _FIELDS.items()}


class HelmAddon(pulumi.ComponentResource):
    """An add-on: one ``helm.v3.Release``, and around it what that leaves undone.

    Its chart's CRDs are made and kept up to date; what an interrupted update left of it is repaired by the next one.

    Args:
        resource_name: its name in the stack.
        args: see :class:`HelmAddonArgs`.
        opts: Pulumi's resource options; what they depend on is there before anything of the add-on.

    Raises:
        pulumi.RunError: an argument is wrong; the message has each one's path and what to write instead.
    """

    status: pulumi.Output[Mapping[str, Any]]
    """The release's: its revision, app version, namespace and state."""

    def __init__(
        self, resource_name: str, *, opts: pulumi.ResourceOptions | None = None, **args: Unpack[HelmAddonArgs]
    ) -> None:
        source = f"HelmAddon {resource_name}"
        check(args, HelmAddonArgs, source)
        super().__init__("kumulus:index:HelmAddon", resource_name, None, opts)
        given = {field: args.get(name) for name, field in _FIELDS.items()}
        addon = Checked(Addon, source, {**given, "name": args.get("release_name") or resource_name}, _NAMES)
        base = Path(args.get("base") or "").absolute()
        cluster, chart = args["cluster"], addon.plain.chart
        _look_for(chart, args, base, source)
        release = HelmRelease(addon, base)
        # Deleted with the lifetime, not the cluster: see docs/decisions/deleted-with.md.
        first = depended_on(opts)
        within = pulumi.ResourceOptions(parent=self, depends_on=first, deleted_with=cluster.lifetime)
        prepared = ReleasePreparation(
            f"{resource_name}-preparation",
            namespace=addon["namespace"],
            name=addon.plain.name,
            create_namespace=addon["createNamespace"],
            cluster=cluster,
            opts=pulumi.ResourceOptions.merge(within, pulumi.ResourceOptions(aliases=[_formerly(resource_name)])),
        )
        crds = [release.crds(f"{resource_name}-crds", cluster, within)] if addon.plain.crds == "CreateReplace" else []
        self.release = release.declared(
            f"{resource_name}-release",
            prepared.repairs,
            pulumi.ResourceOptions(
                parent=self,
                provider=cluster.kubernetes,
                depends_on=[*first, prepared, *crds],
                deleted_with=cluster.lifetime,
            ),
        )
        ReleaseMark(
            f"{resource_name}-mark",
            namespace=addon["namespace"],
            name=addon.plain.name,
            cluster=cluster,
            opts=pulumi.ResourceOptions(parent=self, depends_on=[self.release], deleted_with=cluster.lifetime),
        )
        self.status = self.release.status
        self.register_outputs({"status": self.status})


def arguments_of(addon: Addon, cluster: ClusterLike, base: Path, secrets: tuple[Where, ...] = ()) -> HelmAddonArgs:
    """The arguments of a HelmAddon for an add-on of a stack file.

    Args:
        addon: as in the stack file's ``clusterAddons``.
        cluster: the cluster it is installed in.
        base: directory that relative paths refer to.
        secrets: paths in it that are secret, such as ``("valuesObject", "adminPassword")``.
    """
    kept = Secrets(secrets)
    given = {name: getattr(addon, field) for name, field in _FIELDS.items() if field in addon.model_fields_set}
    if addon.repositoryOpts:
        access = addon.repositoryOpts.model_dump(exclude_unset=True)
        given["repository_opts"] = marked(access, kept.within("repositoryOpts"))
    given |= {"cluster": cluster, "base": str(base)}
    given["values"] = marked(addon.values(), kept.within("valuesObject"))
    return cast(HelmAddonArgs, given)


def _formerly(resource_name: str) -> pulumi.Alias:
    """The name and type of the release's preparation in stacks of 0.1.0 before 2026-11-23."""
    return pulumi.Alias(name=f"{resource_name}-ground", type_="kumulus:index:ReleaseGround")


def _look_for(chart: str, args: HelmAddonArgs, base: Path, source: str) -> None:
    """Check that the chart can be found.

    Raises:
        pulumi.RunError: it cannot; says what to write instead.
    """
    kind = chart_kind(chart)
    if kind == "repository" and not args.get("repo_url"):
        raise refused(source, "repo_url", "is missing", "write the URL of the chart's repository, https://…")
    if kind == "path" and (wrong := missing_chart(base / chart)):
        raise refused(source, "chart", *wrong)
