"""KWOK inside a cluster, as the runtimes kind and existing have it: by its Helm charts."""

# ruff: noqa: N815 - fields are called what the file calls them, so that a path in an error is a path in the code

from __future__ import annotations

import ipaddress
import re
from typing import Annotated

from pydantic import Field

from spec.addons import chart_kind
from spec.checks import problem
from spec.errors import Problem, Where, shown
from spec.fields import Section, checked, text, whole
from spec.names import Fault
from spec.shards import MOST_SHARDS

_IMAGE = re.compile(r"(?P<repository>[a-zA-Z0-9][\w.:/-]*?):(?P<tag>[\w][\w.-]{0,127})")
# The smallest part a shard may get of the range: 4,094 addresses.
_LONGEST_PREFIX = 20


def _image_problems(where: Where, raw: object) -> list[Problem]:
    if isinstance(raw, str) and _IMAGE.fullmatch(raw):
        return []
    return [problem(where, f"is {shown(raw)}, not an image with a tag", "write it like example.com/kwok:v0.8.0")]


def _network_problems(where: Where, raw: object) -> list[Problem]:
    try:
        network = ipaddress.IPv4Network(str(raw))
    except ValueError as error:
        return [problem(where, f"is {shown(raw)}: {error}", "write a range such as 198.18.0.0/15")]
    if network.prefixlen > _LONGEST_PREFIX:
        return [problem(where, f"is {shown(raw)}, too small", f"write a range of /{_LONGEST_PREFIX} or larger")]
    return []


def _repository_fault(url: str) -> Fault | None:
    if url.startswith(("https://", "http://", "oci://")):
        return None
    return Fault("is not the URL of a chart repository", "write a URL that starts with https:// or oci://")


class KwokCharts(Section):
    """How KWOK is installed in a cluster whose nodes run containers.

    Args:
        install: whether it is; None means unless KWOK is there already, which is then used and left as it is.
        repoURL: the chart repository.
        chart: the chart kwok: its name there, an ``oci://`` reference, or a path, for where no repository is reached.
        stageFastChart: likewise, the chart stage-fast.
        version: of both charts in a repository.
        image: kwok-controller's, with its tag.
        imagePullSecrets: names of secrets in the namespace kube-system.
        shards: how many kwok-controllers share the nodes; None means one for each 10,000 nodes begun.
        parallelism: how many stages of nodes, of pods, and leases one plays at once, each.
        leaseDurationSeconds: how long a node's lease holds, renewed at each quarter of it; None means 40, or 100 from
            2,500 nodes on.
        podCIDR: where emulated pods have their addresses, shared out among the shards. The default is kept for
            benchmarks (RFC 2544), so that no traffic for a real pod gets lost there.
        cpu, memory: what each kwok-controller requests.
    """

    install: bool | None = Field(default=None, examples=["false"])
    repoURL: Annotated[str, text(_repository_fault)] = Field(
        default="https://kwok.sigs.k8s.io/charts/", examples=["https://charts.example.com"]
    )
    chart: str = Field(default="kwok", examples=["./charts/kwok"])
    stageFastChart: str = Field(default="stage-fast", examples=["./charts/stage-fast"])
    version: str = Field(default="0.3.0", examples=['"0.3.0"'])
    image: Annotated[str, checked(_image_problems, str)] = Field(
        default="registry.k8s.io/kwok/kwok:v0.8.0", examples=["example.com/kwok:v0.8.0"]
    )
    imagePullSecrets: list[str] = Field(default_factory=list, examples=["[registry-login]"])
    shards: Annotated[int, whole(1, MOST_SHARDS)] | None = Field(default=None, examples=["4"])
    parallelism: Annotated[int, whole(1, 1000)] = Field(default=32, examples=["32"])
    leaseDurationSeconds: Annotated[int, whole(10, 600)] | None = Field(default=None, examples=["40"])
    podCIDR: Annotated[str, checked(_network_problems, str)] = Field(default="198.18.0.0/15", examples=["10.128.0.0/9"])
    cpu: str = Field(default="100m", examples=['"1"'])
    memory: str = Field(default="128Mi", examples=["1Gi"])

    def addon(self, chart: str) -> dict[str, str | None]:
        """Where a chart is, as an add-on has it."""
        if chart_kind(chart) != "repository":
            return {"chart": chart, "version": self.version if chart_kind(chart) == "oci" else None}
        return {"chart": chart, "repoURL": self.repoURL, "version": self.version}

    @property
    def repository_and_tag(self) -> tuple[str, str]:
        """The image in two, as the chart's values have it."""
        found = _IMAGE.fullmatch(self.image)
        assert found
        return found["repository"], found["tag"]
