"""The ``helm.v3.Release`` of an add-on: where its chart comes from, who may fetch it, and the options Helm gets."""

from __future__ import annotations

import re
from functools import partial
from pathlib import Path
from typing import Any

import pulumi
from pulumi_kubernetes.helm.v3 import Release, RepositoryOptsArgs

from kumulus.components import engine
from kumulus.components.engine import user_error
from kumulus.components.inputs import CheckedInputs, with_secrets
from kumulus.components.resources import ClusterLike, InCluster
from kumulus.model.words import repairs_text
from kumulus.stackfile.addons import Addon, ReleaseOptions, chart_kind, chart_name
from kumulus.stackfile.load import LoadedCluster


def _snake(field: str) -> str:
    return re.sub(r"([A-Z])", r"_\1", field).lower()


class HelmRelease:
    """An add-on's release as Helm and the plugin take it; relative paths refer to ``base``."""

    def __init__(self, addon: CheckedInputs[Addon], base: Path) -> None:
        self._addon = addon
        self._values = addon["valuesObject"]
        self._access = _access(addon, base)
        self._chart, self._repository = _source(addon, base)

    def crds(self, name: str, cluster: ClusterLike, opts: pulumi.ResourceOptions) -> InCluster:
        """Declare the chart's CRDs."""
        properties = {
            "name": self._addon.plain.name,
            "chart": self._chart,
            "repository": self._repository,
            "version": self._addon["version"],
            "access": self._access,
            "values": self._values,
        }
        return InCluster("kumulus:index:ChartCrds", name, cluster, properties, opts)

    def declared(self, name: str, repairs: pulumi.Output[int], opts: pulumi.ResourceOptions) -> Release:
        """Declare the release.

        Args:
            repairs: how often a leftover of an interrupted update was repaired.
        """
        addon = self._addon
        # Only options that are set: to pass the others, too, would change every existing release.
        asked = (field for field in ReleaseOptions.model_fields if addon.is_later(field) or getattr(addon.plain, field))
        return Release(
            name,
            name=addon.plain.name,
            namespace=addon["namespace"],
            chart=self._chart,
            version=addon["version"],
            repository_opts=_repository_opts(self._repository, self._access),
            values=self._values,
            # Otherwise Helm keeps the last release's values when the stack file drops all of its own.
            reset_values=True,
            create_namespace=addon["createNamespace"],
            timeout=addon["timeout"],
            atomic=addon["atomic"],
            skip_await=addon["skipAwait"],
            # With CreateReplace, ChartCrds has created them by now; Helm would only create missing ones.
            skip_crds=addon.plain.crds != "Create",
            # ReleasePreparation has marked what an interrupted update left as failed; with this, Helm goes on from it.
            replace=True,
            description=repairs.apply(repairs_text),
            **{_snake(field): addon[field] for field in asked},
            opts=opts,
        )


def repository_access(addon: Addon, base: Path) -> dict[str, str]:
    """A private repository's credentials, by the names of ``repositoryOpts``; relative paths refer to ``base``."""
    options = addon.repositoryOpts.model_dump() if addon.repositoryOpts else {}
    return {key: _located(base, key, value) for key, value in options.items() if value}


def _located(base: Path, key: str, value: Any) -> Any:
    return str(base / value) if value and key.endswith("File") else value


def _access(addon: CheckedInputs[Addon], base: Path) -> Any:
    """Like :func:`repository_access`, but with outputs; a password is always marked as a secret."""
    options = addon["repositoryOpts"] or {}
    if isinstance(options, pulumi.Output):
        return pulumi.Output.secret(options).apply(
            lambda known: {key: _located(base, key, known[key]) for key in known or {} if known[key]}
        )
    access: dict[str, Any] = {}
    for key, value in options.items():
        if isinstance(value, pulumi.Output):
            access[key] = value.apply(partial(_located, base, key))
        elif value:
            access[key] = _located(base, key, value)
    return with_secrets(access, [("password",)])


def _source(addon: CheckedInputs[Addon], base: Path) -> tuple[Any, Any]:
    """The chart and its repository's URL, as :func:`chart_source` returns them, or as outputs."""
    if not addon.is_later("repoURL"):
        return chart_source(addon.plain, base)
    found = addon["repoURL"].apply(lambda url: chart_source(addon.plain.model_copy(update={"repoURL": url}), base))
    return found.apply(lambda both: both[0]), found.apply(lambda both: both[1])


def _repository_opts(repository: Any, access: Any) -> RepositoryOptsArgs | None:
    if not repository and not access:
        return None
    return RepositoryOptsArgs(
        repo=repository,
        username=_credential(access, "username"),
        password=_credential(access, "password"),
        ca_file=_credential(access, "caFile"),
        cert_file=_credential(access, "certFile"),
        key_file=_credential(access, "keyFile"),
    )


def _credential(access: Any, key: str) -> Any:
    # The whole mapping is one output if all of it is secret or known later.
    return access.apply(lambda known: known.get(key)) if isinstance(access, pulumi.Output) else access.get(key)


def chart_source(addon: Addon, base: Path) -> tuple[str, str | None]:
    """Return the chart's reference as Helm takes it, and its repository's URL if it comes from one."""
    kind, name = chart_kind(addon.chart), chart_name(addon.chart)
    if kind == "oci":
        return addon.chart, None
    if kind == "path":
        return str((base / addon.chart).resolve()), None
    if addon.repoURL and addon.repoURL.startswith("oci://"):
        return f"{addon.repoURL.rstrip('/')}/{name}", None
    return name, addon.repoURL


def require_charts(loaded: LoadedCluster, base: Path) -> None:
    """Have the plugin fetch the add-ons' charts that are not on this machine yet; an error if it cannot fetch all.

    Each add-on's own check looks at its chart as well, but only once the add-on's dependency, the cluster, is there. A
    preview creates nothing, so that check is early enough for it.
    """
    if pulumi.runtime.is_dry_run():
        return
    wanted = []
    for addon in loaded.spec.clusterAddons:
        chart, repository = chart_source(addon, base)
        access = repository_access(addon, base)
        wanted.append({"chart": chart, "repository": repository or "", "version": addon.version, "access": access})
    answer = pulumi.runtime.invoke("kumulus:index:findCharts", {"charts": wanted}, engine.invoke_options()).value or {}
    wrong = {int(index): str(said) for index, said in (answer.get("problems") or {}).items()}
    if not wrong:
        return
    addons = f"add-ons of {loaded.member}" if loaded.member else "add-ons"
    lines = [f"  clusterAddons[{index}]: {wrong[index]}" for index in sorted(wrong)]
    raise user_error(
        "\n".join(
            [
                f"{len(wrong)} of {len(wanted)} {addons} cannot be installed; nothing of the cluster was changed",
                *lines,
                f"  To go on without add-ons: pulumi config set -s {pulumi.get_stack()} kumulus:skipAddons true",
            ]
        )
    )
