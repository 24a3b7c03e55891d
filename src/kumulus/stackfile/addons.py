"""Add-ons as the stack file has them: Helm releases, with charts from a repository, an OCI reference or a path."""

# ruff: noqa: N815 - fields are called what the file calls them, so that a path in an error is a path in the code

from __future__ import annotations

import json
import os
from collections.abc import Mapping, Sequence
from graphlib import TopologicalSorter
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import Field

from kumulus.model.checks import problem
from kumulus.model.errors import Problem, SpecError, Where, shown, shown_path
from kumulus.model.fields import Section, checked, short_label, text, whole
from kumulus.model.names import Mistake
from kumulus.stackfile.yamltext import json_problem, read_yaml

ChartKind = Literal["repository", "oci", "path"]
Crds = Literal["CreateReplace", "Create", "Skip"]
"""What happens to a chart's CRDs, in Flux's HelmRelease terms: created and upgraded, created once, or neither."""

_RELEASE_NAME_LENGTH = 53
DAY = 86_400


def chart_kind(chart: str) -> ChartKind:
    """Where a chart comes from: `oci://…` is in a registry, `./…`, `../…` and `/…` are paths, else a repository."""
    if chart.startswith("oci://"):
        return "oci"
    return "path" if chart.startswith(("./", "../", "/")) or chart in (".", "..") else "repository"


def chart_name(chart: str) -> str:
    """A chart without its repository's name, as Helm expects it with a repository URL; other forms are unchanged."""
    return chart.rpartition("/")[2] if chart_kind(chart) == "repository" else chart


def missing_chart(path: Path) -> tuple[str, str] | None:
    """Why a path is not a chart's, and what to write instead; None if it is."""
    # Unlike Path.is_file, these raise nothing for a name that is too long or may not be looked up.
    if os.path.isfile(path) or os.path.isfile(path / "Chart.yaml"):
        return None
    what = "has no Chart.yaml" if os.path.isdir(path) else "is not there"
    return f"the chart {shown_path(path)} {what}", "write the path of a chart's directory or .tgz file"


def mapping_of_yaml(raw: object) -> dict[str, Any]:
    """A mapping of JSON values, given as a mapping or as YAML text; an empty text is an empty mapping.

    A key of YAML that is a number, true or false becomes a text, as Helm has it.

    Raises:
        SpecError: the text does not parse or is not a mapping; paths are relative.
    """
    value = read_yaml(raw) if isinstance(raw, str) else raw
    if isinstance(raw, str) and value is None:
        return {}
    if not isinstance(value, Mapping):
        message = f"is a text of {shown(value)}, not of a mapping" if isinstance(raw, str) else f"is {shown(value)}"
        raise SpecError([Problem("", message, "write a mapping, or a YAML text of one")])
    if reason := json_problem(dict(value)):
        raise SpecError([Problem("", reason, "write texts, numbers, true, false, lists and mappings")])
    found: dict[str, Any] = json.loads(json.dumps(dict(value)))
    return found


def mapping_problems(where: Where, raw: object) -> list[Problem]:
    """Problems of a mapping, or of a YAML text of one."""
    try:
        mapping_of_yaml(raw)
    except SpecError as error:
        return [problem(where, each.message, each.remedy) for each in error.problems]
    return []


def repository_mistake(url: str) -> Mistake | None:
    """What is wrong with the URL of a chart repository; None for nothing."""
    if url.startswith(("https://", "http://", "oci://")):
        return None
    return Mistake("is not the URL of a chart repository", "write a URL that starts with https:// or oci://")


def not_empty_mistake(value: str) -> Mistake | None:
    """What is wrong with a name; None for nothing."""
    if value and value == value.strip() and value.isprintable():
        return None
    return Mistake("is not a name", "write it without blanks around it")


MappingOrYaml = Annotated[dict[str, Any], checked(mapping_problems, mapping_of_yaml, form="mappingOrYaml")]


def in_order(addons: Sequence[Addon]) -> list[Addon]:
    """Add-ons, each after those it depends on; the dependencies must exist and have no cycle."""
    by_name = {addon.name: addon for addon in addons}
    order = TopologicalSorter({addon.name: addon.dependsOn for addon in addons}).static_order()
    return [by_name[name] for name in order]


class RepositoryOpts(Section):
    """Credentials of a private chart repository, as in `helm.v3.Release`."""

    username: str = Field(
        default="", description="The user name at the repository; requires `password`.", examples=["reader"]
    )
    password: str = Field(
        default="",
        description="The user's password; preferably a secret, set by `pulumi config set --secret --path`.",
        examples=['"…"'],
    )
    caFile: str = Field(
        default="",
        description="Path of the certificate authority that signed the server's certificate.",
        examples=["./ca.pem"],
    )
    certFile: str = Field(
        default="", description="Path of a client certificate; requires `keyFile`.", examples=["./client.pem"]
    )
    keyFile: str = Field(default="", description="Path of the client certificate's key.", examples=["./client-key.pem"])


class ReleaseOptions(Section):
    """What `helm.v3.Release` knows besides, under its names; each does what Helm's option of that name does."""

    cleanupOnFail: bool = Field(
        default=False, description="Delete what a failed upgrade has created.", examples=["true"]
    )
    dependencyUpdate: bool = Field(
        default=False, description="Fetch the chart's dependencies first, for a chart from a path.", examples=["true"]
    )
    devel: bool = Field(
        default=False, description="Without a version, accept development versions too.", examples=["true"]
    )
    disableOpenapiValidation: bool = Field(
        default=False, description="Do not check the objects against the cluster's OpenAPI schema.", examples=["true"]
    )
    disableWebhooks: bool = Field(default=False, description="Run no hooks.", examples=["true"])
    forceUpdate: bool = Field(
        default=False, description="Delete and recreate what cannot be updated.", examples=["true"]
    )
    keyring: str = Field(default="", description="Path of the public keys for `verify`.", examples=["./pubring.gpg"])
    lint: bool = Field(default=False, description="Lint the chart before an upgrade.", examples=["true"])
    maxHistory: Annotated[int, whole(0, 1000)] = Field(
        default=0, description="How many revisions are kept; 0 means all of them.", examples=["10"]
    )
    verify: bool = Field(default=False, description="Require a signed chart.", examples=["true"])
    waitForJobs: bool = Field(default=False, description="Wait for Jobs to complete, too.", examples=["true"])

    def further(self) -> dict[str, Any]:
        """The options that are set, by the file's names."""
        return {
            key: value for key in ReleaseOptions.model_fields if (value := getattr(self, key)) not in (False, "", 0)
        }


class Addon(ReleaseOptions):
    """A Helm release to install."""

    name: Annotated[str, short_label(_RELEASE_NAME_LENGTH)] = Field(
        description="The release's name, unique in the stack.", examples=["prometheus"]
    )
    repoName: str = Field(
        default="",
        description="The repository's name, which may precede the chart's; it has no other meaning.",
        examples=["prometheus-community"],
    )
    repoURL: Annotated[str, text(repository_mistake, form="repository")] | None = Field(
        default=None,
        description="The chart repository; needed unless the chart is an OCI reference or a path.",
        examples=["https://prometheus-community.github.io/helm-charts"],
    )
    namespace: Annotated[str, short_label(63)] = Field(
        default="default",
        description="The release's namespace, created when missing unless `createNamespace` is off.",
        examples=["monitoring"],
    )
    chart: Annotated[str, text(not_empty_mistake, form="name")] = Field(
        description=(
            "`repoName/chart`, `chart`, `oci://registry/chart`, or a path from the project's directory, `./chart`."
        ),
        examples=["prometheus-community/kube-prometheus-stack"],
    )
    version: str | None = Field(
        default=None, description="The chart's version; by default the newest.", examples=['"75.16.1"']
    )
    valuesObject: MappingOrYaml = Field(
        default_factory=dict, description="The chart's values, as a mapping or YAML text.", examples=["{}"]
    )
    createNamespace: bool = Field(default=True, description="Create the namespace.", examples=["true"])
    timeout: Annotated[int, whole(1, DAY)] = Field(
        default=300, description="Seconds to wait until everything is ready.", examples=["300"]
    )
    atomic: bool = Field(default=False, description="Roll the release back if it fails.", examples=["true"])
    skipAwait: bool = Field(default=False, description="Do not wait until everything is ready.", examples=["true"])
    dependsOn: list[str] = Field(
        default_factory=list,
        description="Names of add-ons that are installed before this one.",
        examples=["[cert-manager]"],
    )
    crds: Crds = Field(
        default="CreateReplace",
        description=(
            "What happens to CRDs in the chart's `crds` directories: created and upgraded, created once, or neither."
        ),
        examples=["CreateReplace"],
    )
    repositoryOpts: RepositoryOpts | None = Field(
        default=None,
        description="Credentials of a private repository; for registries use `helm registry login`.",
        examples=['{username: reader, password: "…"}'],
    )

    @property
    def chart_kind(self) -> ChartKind:
        """Where the chart comes from."""
        return chart_kind(self.chart)

    @property
    def chart_name(self) -> str:
        """The chart as Helm expects it with `repoURL`: without the repository's name."""
        return chart_name(self.chart)

    def values(self) -> dict[str, Any]:
        """The chart's values, JSON-able."""
        return dict(self.valuesObject)
