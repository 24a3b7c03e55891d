"""KWOK inside a cluster whose nodes run containers: how its Helm charts are installed."""

import ipaddress
import re
from typing import Annotated

from pydantic import Field

from kumulus.kwok.controllers import ControllerSettings
from kumulus.model.checks import matching, problem
from kumulus.model.errors import Problem, Where, shown
from kumulus.model.fields import QuantityText, Section, checked, whole
from kumulus.model.scale import MOST_SHARDS
from kumulus.stackfile.addons import ChartName, ChartRepository, chart_kind

IMAGE = re.compile(r"(?P<repository>[a-zA-Z0-9][\w.:/-]*?):(?P<tag>[\w][\w.-]{0,127})")
_image_problems = matching(IMAGE, "an image with a tag", "write it like example.com/kwok:v0.8.0")
# The smallest address range that a pod network may have: 4,094 addresses.
LONGEST_PREFIX = 20


def _network_problems(where: Where, raw: object) -> list[Problem]:
    try:
        network = ipaddress.IPv4Network(str(raw))
    except ValueError as error:
        return [problem(where, f"is {shown(raw)}: {error}", "write a range such as 198.18.0.0/15")]
    if network.prefixlen > LONGEST_PREFIX:
        return [problem(where, f"is {shown(raw)}, too small", f"write a range of /{LONGEST_PREFIX} or larger")]
    return []


Network = Annotated[str, checked(_network_problems, str, form="network")]


class KwokChartsSpec(Section):
    """How KWOK is installed in a cluster whose nodes run containers."""

    install: bool | None = Field(default=None, examples=["false"])
    """Whether to install KWOK; by default only if the cluster has none. An existing KWOK is used and left as it is."""
    repoURL: ChartRepository = Field(
        default="https://kwok.sigs.k8s.io/charts/", examples=["https://charts.example.com"]
    )
    """The chart repository."""
    chart: ChartName = Field(default="kwok", examples=["./charts/kwok"])
    """The chart kwok: its name in the repository, an `oci://` reference, or a path, if no repository can be reached."""
    stageFastChart: ChartName = Field(default="stage-fast", examples=["./charts/stage-fast"])
    """The chart stage-fast: its name in the repository, an `oci://` reference, or a path."""
    version: str = Field(default="0.3.0", examples=['"0.3.0"'])
    """The version of both charts in a repository."""
    image: Annotated[str, checked(_image_problems, str, form="kwokImage")] = Field(
        default="registry.k8s.io/kwok/kwok:v0.8.0", examples=["example.com/kwok:v0.8.0"]
    )
    """kwok-controller's image, with its tag."""
    imagePullSecrets: list[str] = Field(default_factory=list, examples=["[registry-login]"])
    """Names of secrets in the namespace kube-system."""
    shards: Annotated[int, whole(1, MOST_SHARDS)] | None = Field(default=None, examples=["4"])
    """How many kwok-controllers share the nodes; by default one per 10,000 nodes, rounded up."""
    parallelism: Annotated[int, whole(1, 1000)] = Field(default=32, examples=["32"])
    """How many node stages, pod stages and leases each kwok-controller processes at once."""
    leaseDurationSeconds: Annotated[int, whole(10, 600)] | None = Field(default=None, examples=["40"])
    """How long a node's lease lasts; it is renewed every quarter of that. By default 40, or 100 from 2,500 nodes on."""
    podCIDR: Network = Field(default="198.18.0.0/15", examples=["10.128.0.0/9"])
    """The address range of emulated pods, divided among the shards. The default is reserved for benchmarks (RFC 2544),
    so that no traffic for a real pod is lost."""
    cpu: QuantityText = Field(default="100m", examples=['"1"'])
    """CPU that each kwok-controller requests."""
    memory: QuantityText = Field(default="128Mi", examples=["1Gi"])
    """Memory that each kwok-controller requests."""

    def addon(self, chart: str) -> dict[str, str | None]:
        """Where a chart is, in the fields of an add-on."""
        kind = chart_kind(chart)
        if kind == "repository":
            return {"chart": chart, "repoURL": self.repoURL, "version": self.version}
        return {"chart": chart, "version": self.version if kind == "oci" else None}

    def settings(self) -> ControllerSettings:
        """The settings shared by the cluster's kwok-controllers."""
        image = IMAGE.fullmatch(self.image)
        assert image
        return ControllerSettings(
            repository=image["repository"],
            tag=image["tag"],
            pull_secrets=tuple(self.imagePullSecrets),
            parallelism=self.parallelism,
            lease_seconds=self.leaseDurationSeconds,
            pod_cidr=self.podCIDR,
            cpu=self.cpu,
            memory=self.memory,
        )
