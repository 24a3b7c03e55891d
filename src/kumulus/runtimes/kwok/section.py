"""The options of a cluster of the kwok runtime: its section of the stack file, and what the rest of that file asks."""

import os
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

from pydantic import Field, create_model, field_validator

from kumulus.host import extras
from kumulus.kwok.node_metrics import Kind
from kumulus.model.checks import of_mapping, problem, share_problems
from kumulus.model.durations import duration_problems
from kumulus.model.errors import Problem, Where, shown
from kumulus.model.fields import DriverName, QuantityText, Section, checked, malformed, whole
from kumulus.model.quantity import parse
from kumulus.runtimes.section import RuntimeSection


@of_mapping
def _switches_problems(where: Where, raw: Mapping[str, Any]) -> list[Problem]:
    found = []
    for key, value in raw.items():
        if not key.isprintable():
            message = f"has the key {shown(key)}, which does not print"
            found.append(problem(where, message, "write a name such as api/all"))
        if not (isinstance(value, bool) or (isinstance(value, str) and value.isprintable())):
            remedy = 'write true, false or a text in quotes, such as "true"'
            found.append(problem((*where, key), f"is {shown(value)}", remedy))
    return found


def _as_texts(raw: Mapping[str, bool | str]) -> dict[str, str]:
    return {key: value if isinstance(value, str) else str(value).lower() for key, value in raw.items()}


Switches = Annotated[dict[str, str], checked(_switches_problems, _as_texts, form="switches")]

_IMAGE = r"^[a-z0-9][a-z0-9._-]*(:[0-9]+)?(/[a-z0-9._-]+)*$"


class DeviceBinding(Section):
    """What becomes of devices with `bindingConditions`, once they are allocated."""

    after: Annotated[str, checked(duration_problems, lambda raw: raw or "0s", form="duration")] = Field(
        default="0s", examples=["20s"]
    )
    """How long it takes until the claim has the conditions; kube-scheduler looks every 5 s."""
    failures: Annotated[float, checked(share_problems, float, form="share")] = Field(default=0, examples=["0.1"])
    """The share of allocations that get the `bindingFailureConditions` instead; kube-scheduler tries again."""


class Kwok(RuntimeSection):
    """Settings of the kwok runtime."""

    apiServerPort: Annotated[int, whole(1024, 65535)] | None = Field(default=None, examples=["6443"])
    """The API server's port on 127.0.0.1; by default a free one."""
    featureGates: dict[str, bool] = Field(default_factory=dict, examples=["{DynamicResourceAllocation: true}"])
    """Kubernetes feature gates."""
    runtimeConfig: Switches = Field(default_factory=dict, examples=["{api/all: true}"])
    """API groups and versions that the API server serves, such as `api/all: true`."""
    workloads: Literal["native"] | None = Field(default=None, examples=["native"])
    """`native`: Kubernetes' own API for groups of pods, which the cluster's scheduler places all at once and in one
    domain of the topology; with its feature gates and API versions. Of Kubernetes 1.37 and later."""
    stageObjects: bool | None = Field(default=None, examples=["true"])
    """Whether KWOK takes its stages from objects of the cluster. Faults of pods that the file does not declare need it:
    those of `kumulus fault inject` and of an experiment."""
    events: Literal["kubelet"] | None = Field(default=None, examples=["kubelet"])
    """`kubelet`: pods get the events that a kubelet writes: Pulled, Created, Started, Killing. Four more objects for
    each pod."""
    deviceBindings: dict[DriverName, DeviceBinding] = Field(
        default_factory=dict, examples=["{gpu.nvidia.com: {after: 20s, failures: 0.1}}"]
    )
    """By DRA driver, what its controller does with devices that have to be made ready for a node (docs/dra.md). Those
    of a driver left out wait for a controller of yours."""
    etcdFsync: bool | None = Field(default=None, examples=["false"])
    """Whether etcd waits for the disk at every write. If not, writes are faster, but a crash of the machine (not of a
    process) can lose the cluster."""
    etcdQuota: QuantityText = Field(default="", examples=["8Gi"])
    """How large etcd's data may grow; by default KWOK's own limit."""
    heartbeatFactor: Annotated[int, whole(1, 1000)] | None = Field(default=None, examples=["5"])
    """Multiplies the nodes' heartbeat intervals; by default 5, and more if a cluster is created for more than 1,000
    nodes (docs/scale.md)."""
    createThrough: Literal["storage", "api"] | None = Field(default=None, examples=["api"])
    """How new nodes are created: written to the API server's storage, which is several times faster, or posted one by
    one; by default `storage`, wherever that gives the same nodes."""
    processes: dict[Annotated[str, Field(pattern=_IMAGE)], Annotated[str, Field(min_length=1)]] = Field(
        default_factory=dict,
        examples=["{registry.k8s.io/kueue/kueue: kueue}", "{example.com/team/operator: ./bin/operator}"],
    )
    """Pods that really run, as processes of this machine: an image, without its tag, and the program that it stands
    for: a path, relative to the project's directory, or a tool that Kumulus has (docs/pods.md)."""

    def options(self, base: Path = Path()) -> dict[str, Any]:
        """See :meth:`RuntimeSection.options`; programs with a path have their whole one."""
        found = super().options(base)
        if self.processes:
            found["processes"] = {
                image: str(Path(base, os.path.expanduser(program)).absolute()) if "/" in program else program
                for image, program in self.processes.items()
            }
        return found


class KueueSpec(Section):
    """What is asked of Kueue as a local process."""

    origin: str = ""
    workerLostTimeout: str = ""
    dispatcher: str = ""
    stepSize: int | None = None


class _KwokOptions(Kwok):
    """Options of the resource Cluster."""

    # Texts, too, as programs in other languages pass them: "true" and "false".
    featureGates: Switches = Field(default_factory=dict)  # type: ignore[assignment]
    podUsage: Kind | None = None
    kueue: KueueSpec | None = None
    # These two are made from the stack's file, which has been checked.
    podLoads: list[dict[str, Any]] | None = None
    prices: list[dict[str, Any]] | None = None

    @field_validator("featureGates", "runtimeConfig")
    @classmethod
    def _switches(cls, value: dict[str, str]) -> dict[str, str]:
        # They become one argument of the API server: a=true,b=false.
        wrong = [
            problem((name,), f"is {shown(switch)}", "write a name and true or false")
            for name, switch in value.items()
            if not name or set(name) & set("=, \t\n") or switch not in ("true", "false")
        ]
        if wrong:
            raise malformed(wrong)
        return value

    @field_validator("etcdQuota")
    @classmethod
    def _quota(cls, value: str) -> str:
        if value and parse(value).nanos <= 0:
            raise malformed([problem((), f"is {shown(value)}", "write a quantity such as 8Gi")])
        return value


if TYPE_CHECKING:
    KwokOptions = _KwokOptions
else:
    # The sections of extras are options, too. An extra's addition checks them, since programs may write them as well.
    _HANDED = dict.fromkeys(extras.names("sections"), (dict[str, Any] | None, None))
    KwokOptions = create_model("KwokOptions", __base__=_KwokOptions, __doc__=_KwokOptions.__doc__, **_HANDED)
