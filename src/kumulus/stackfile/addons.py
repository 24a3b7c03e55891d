"""Add-ons as the stack file has them: Helm releases, with charts from a repository, an OCI reference or a path."""

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
from kumulus.model.names import ValueMistake
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


def yaml_mapping_problems(where: Where, raw: object) -> list[Problem]:
    """Problems of what :func:`mapping_of_yaml` reads."""
    try:
        mapping_of_yaml(raw)
    except SpecError as error:
        return [problem(where, each.message, each.remedy) for each in error.problems]
    return []


def _repository_mistake(url: str) -> ValueMistake | None:
    if url.startswith(("https://", "http://", "oci://")):
        return None
    return ValueMistake("is not the URL of a chart repository", "write a URL that starts with https:// or oci://")


def _name_mistake(value: str) -> ValueMistake | None:
    if value and value == value.strip() and value.isprintable():
        return None
    return ValueMistake("is not a name", "write it without blanks around it")


ChartRepository = Annotated[str, text(_repository_mistake, form="repository")]
ChartName = Annotated[str, text(_name_mistake, form="name")]
MappingOrYaml = Annotated[dict[str, Any], checked(yaml_mapping_problems, mapping_of_yaml, form="mappingOrYaml")]


def in_order(addons: Sequence[Addon]) -> list[Addon]:
    """Add-ons, each after those it depends on; the dependencies must exist and have no cycle."""
    by_name = {addon.name: addon for addon in addons}
    order = TopologicalSorter({addon.name: addon.dependsOn for addon in addons}).static_order()
    return [by_name[name] for name in order]


class RepositoryOpts(Section):
    """Credentials of a private chart repository, as in `helm.v3.Release`."""

    username: str = Field(default="", examples=["reader"])
    """The user name at the repository; requires `password`."""
    password: str = Field(default="", examples=['"…"'])
    """The user's password; preferably a secret, set by `pulumi config set --secret --path`."""
    caFile: str = Field(default="", examples=["./ca.pem"])
    """Path of the certificate authority that signed the server's certificate."""
    certFile: str = Field(default="", examples=["./client.pem"])
    """Path of a client certificate; requires `keyFile`."""
    keyFile: str = Field(default="", examples=["./client-key.pem"])
    """Path of the client certificate's key."""


class ReleaseOptions(Section):
    """Less common options of `helm.v3.Release`, under its names; each does what Helm's option of that name does."""

    cleanupOnFail: bool = Field(default=False, examples=["true"])
    """Delete what a failed upgrade has created."""
    dependencyUpdate: bool = Field(default=False, examples=["true"])
    """Fetch the chart's dependencies first, for a chart from a path."""
    devel: bool = Field(default=False, examples=["true"])
    """Without a version, accept development versions too."""
    disableOpenapiValidation: bool = Field(default=False, examples=["true"])
    """Do not check the objects against the cluster's OpenAPI schema."""
    disableWebhooks: bool = Field(default=False, examples=["true"])
    """Run no hooks."""
    forceUpdate: bool = Field(default=False, examples=["true"])
    """Delete and recreate what cannot be updated."""
    keyring: str = Field(default="", examples=["./pubring.gpg"])
    """Path of the public keys for `verify`."""
    lint: bool = Field(default=False, examples=["true"])
    """Lint the chart before an upgrade."""
    maxHistory: Annotated[int, whole(0, 1000)] = Field(default=0, examples=["10"])
    """How many revisions are kept; 0 means all of them."""
    verify: bool = Field(default=False, examples=["true"])
    """Require a signed chart."""
    waitForJobs: bool = Field(default=False, examples=["true"])
    """Wait for Jobs to complete, too."""


class Addon(ReleaseOptions):
    """A Helm release to install."""

    name: Annotated[str, short_label(_RELEASE_NAME_LENGTH)] = Field(examples=["prometheus"])
    """The release's name, unique in the stack."""
    repoName: str = Field(default="", examples=["prometheus-community"])
    """The repository's name, which may precede the chart's; it has no other meaning."""
    repoURL: ChartRepository | None = Field(
        default=None, examples=["https://prometheus-community.github.io/helm-charts"]
    )
    """The chart repository; needed unless the chart is an OCI reference or a path."""
    namespace: Annotated[str, short_label(63)] = Field(default="default", examples=["monitoring"])
    """The release's namespace, created when missing unless `createNamespace` is off."""
    chart: ChartName = Field(examples=["prometheus-community/kube-prometheus-stack"])
    """`repoName/chart`, `chart`, `oci://registry/chart`, or a path from the project's directory, `./chart`."""
    version: str | None = Field(default=None, examples=['"75.16.1"'])
    """The chart's version; by default the newest."""
    valuesObject: MappingOrYaml = Field(default_factory=dict, examples=["{}"])
    """The chart's values, as a mapping or YAML text."""
    createNamespace: bool = Field(default=True, examples=["true"])
    """Create the namespace."""
    timeout: Annotated[int, whole(1, DAY)] = Field(default=300, examples=["300"])
    """Seconds to wait until everything is ready."""
    atomic: bool = Field(default=False, examples=["true"])
    """Roll the release back if it fails."""
    skipAwait: bool = Field(default=False, examples=["true"])
    """Do not wait until everything is ready."""
    dependsOn: list[str] = Field(default_factory=list, examples=["[cert-manager]"])
    """Names of add-ons that are installed before this one."""
    crds: Crds = Field(default="CreateReplace", examples=["CreateReplace"])
    """What happens to CRDs in the chart's `crds` directories: created and upgraded, created once, or neither."""
    repositoryOpts: RepositoryOpts | None = Field(default=None, examples=['{username: reader, password: "…"}'])
    """Credentials of a private repository; for registries use `helm registry login`."""
