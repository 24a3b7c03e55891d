"""``HelmAddon``: a Helm chart in the cluster."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Annotated, Any, Literal, Required, TypedDict, Unpack, cast

import pulumi

from kumulus.components.arguments import SectionOf, checked, fields
from kumulus.components.helm_release import HelmRelease
from kumulus.components.inputs import CheckedInputs, refused, with_secrets
from kumulus.components.mistakes import collected
from kumulus.components.resources import ClusterLike, InCluster, depended_on
from kumulus.model.errors import Where, path_text
from kumulus.stackfile.addons import Addon, chart_kind, missing_chart
from kumulus.stackfile.secrets import Secrets


class HelmAddonArgs(TypedDict, total=False):
    """Arguments of a HelmAddon."""

    cluster: Required[ClusterLike]
    """The cluster it is installed in."""
    chart: Required[str]
    """The name of a chart in ``repo_url``, an ``oci://`` reference, or a path such as ``./chart``, relative to
    ``base``."""
    repo_url: pulumi.Input[str]
    """The chart's repository, ``https://…``; required unless the chart is an ``oci://`` reference or a path."""
    version: pulumi.Input[str]
    """The chart's version. Default: the newest."""
    namespace: pulumi.Input[str]
    """The namespace it is installed in. Default: ``default``."""
    values: pulumi.Input[Mapping[str, Any]]
    """The chart's values."""
    release_name: str
    """The Helm release's name. Default: the resource's name."""
    create_namespace: pulumi.Input[bool]
    """Whether a missing namespace is created, and removed with the last add-on in it. Default: True."""
    timeout: pulumi.Input[int]
    """Seconds to wait until everything is ready. Default: 300."""
    atomic: pulumi.Input[bool]
    """Whether a release that fails is rolled back. Default: False."""
    skip_await: pulumi.Input[bool]
    """Whether not to wait until everything is ready. Default: False."""
    crds: Literal["CreateReplace", "Create", "Skip"]
    """What is done with the CRDs in the chart's ``crds`` directories. Default: ``CreateReplace``, which creates them
    and keeps them up to date."""
    repository_opts: Annotated[pulumi.Input[Mapping[str, Any]], SectionOf("kumulus.stackfile.addons:RepositoryOpts")]
    """Credentials of a private repository: username, password, caFile, certFile, keyFile."""
    base: str
    """The directory that a chart's relative path refers to. Default: the program's."""
    cleanup_on_fail: pulumi.Input[bool]
    """Whether objects that a failed upgrade created are deleted."""
    dependency_update: pulumi.Input[bool]
    """For a chart from a path: whether its dependencies are fetched first."""
    devel: pulumi.Input[bool]
    """Whether prereleases count as versions too, if ``version`` is left out."""
    disable_openapi_validation: pulumi.Input[bool]
    """Whether objects are not checked against the cluster's OpenAPI schema."""
    disable_webhooks: pulumi.Input[bool]
    """Whether no hooks are run."""
    force_update: pulumi.Input[bool]
    """Whether objects that cannot be updated are deleted and recreated."""
    keyring: pulumi.Input[str]
    """Path of the public keys for ``verify``."""
    lint: pulumi.Input[bool]
    """Whether the chart is linted before an upgrade."""
    max_history: pulumi.Input[int]
    """How many revisions are kept; 0 keeps all of them."""
    verify: pulumi.Input[bool]
    """Whether the chart must be signed."""
    wait_for_jobs: pulumi.Input[bool]
    """Whether to wait for Jobs to complete, too."""


_APART = {"release_name": "name", "repo_url": "repoURL", "values": "valuesObject"}
_FIELDS = fields(HelmAddonArgs, but=("cluster", "base"), otherwise=_APART)
_NAMES = {field: name for name, field in _FIELDS.items()}


class _Preparation(InCluster):
    """How often something was repaired: the release follows."""

    repairs: pulumi.Output[int]


@collected
class HelmAddon(pulumi.ComponentResource):
    """An add-on: one ``helm.v3.Release``, and around it what that leaves undone.

    Its chart's CRDs are made and kept up to date; what an interrupted update left of it is repaired by the next one.

    Args:
        opts: Pulumi's resource options; what they depend on is there before anything of the add-on.
    """

    status: pulumi.Output[Mapping[str, Any]]
    """The release's: its revision, app version, namespace and state."""

    def __init__(
        self, resource_name: str, *, opts: pulumi.ResourceOptions | None = None, **args: Unpack[HelmAddonArgs]
    ) -> None:
        source = f"HelmAddon {resource_name}"
        with checked(args, HelmAddonArgs, source) as wrong:
            base = Path(args.get("base") or "").absolute()
            with wrong.also():
                _look_for(args["chart"], args, base, source)
            values = {field: args.get(name) for name, field in _FIELDS.items()}
            addon = CheckedInputs(Addon, source, {**values, "name": args.get("release_name") or resource_name}, _NAMES)
        cluster = args["cluster"]
        super().__init__("kumulus:index:HelmAddon", resource_name, None, opts)
        pulumi.Output.from_input(addon["valuesObject"]).apply(self._warn_of_nulls)
        release = HelmRelease(addon, base)
        # Deleted with the lifetime, not the cluster: see docs/decisions/deleted-with.md.
        first = depended_on(opts)
        within = pulumi.ResourceOptions(parent=self, depends_on=first, deleted_with=cluster.lifetime)
        place = {"namespace": addon["namespace"], "name": addon.plain.name}
        prepared = _Preparation(
            "kumulus:index:ReleasePreparation",
            f"{resource_name}-preparation",
            cluster,
            {**place, "createNamespace": addon["createNamespace"], "repairs": None},
            within,
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
        after = pulumi.ResourceOptions(parent=self, depends_on=[self.release], deleted_with=cluster.lifetime)
        InCluster("kumulus:index:ReleaseMark", f"{resource_name}-mark", cluster, place, after)
        self.status = self.release.status
        self.register_outputs({"status": self.status})

    def _warn_of_nulls(self, values: object) -> None:
        for where in _nulls(values, ("values",)):
            pulumi.log.warn(
                f"{path_text(where)} is null: unlike Helm, Pulumi's release leaves that out, and the chart's own value "
                "stays; write another value, such as false or an empty text",
                self,
            )


def arguments_of(addon: Addon, cluster: ClusterLike, base: Path, secrets: tuple[Where, ...] = ()) -> HelmAddonArgs:
    """The arguments of a HelmAddon for an add-on of a stack file, with the paths in it that are secret."""
    kept = Secrets(secrets)
    arguments = {name: getattr(addon, field) for name, field in _FIELDS.items() if field in addon.model_fields_set}
    if addon.repositoryOpts:
        access = addon.repositoryOpts.model_dump(exclude_unset=True)
        arguments["repository_opts"] = with_secrets(access, kept.within("repositoryOpts"))
    arguments |= {"cluster": cluster, "base": str(base)}
    arguments["values"] = with_secrets(addon.valuesObject, kept.within("valuesObject"))
    return cast(HelmAddonArgs, arguments)


def _nulls(value: object, where: Where) -> Iterator[Where]:
    if value is None:
        yield where
    elif isinstance(value, Mapping):
        for key, each in value.items():
            yield from _nulls(each, (*where, key))
    elif isinstance(value, list):
        for index, each in enumerate(value):
            yield from _nulls(each, (*where, index))


def _look_for(chart: str, args: HelmAddonArgs, base: Path, source: str) -> None:
    """Refuse a chart that cannot be found, with what to write instead."""
    kind = chart_kind(chart)
    if kind == "repository" and not args.get("repo_url"):
        raise refused(source, "repo_url", "is missing", "write the URL of the chart's repository, https://…")
    if kind == "path" and (wrong := missing_chart(base / chart)):
        raise refused(source, "chart", *wrong)
