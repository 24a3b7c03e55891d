"""A workload of an experiment: jobs that are alike, described or taken from a manifest."""

# ruff: noqa: N815 - fields are called what the file calls them, so that a path in an error is a path in the code

from __future__ import annotations

from typing import Annotated, Literal, Self

from pydantic import Field, model_validator

from spec.checks import problem, whole_problems
from spec.distributions import DurationField
from spec.errors import Problem, Where, shown
from spec.experiment.arrival import Arrival
from spec.experiment.fields import MOST_JOBS, Name, Requests
from spec.fields import Annotations, Labels, LabelValue, Section, checked, found, whole
from spec.names import label_key_fault, suggest
from spec.topology import LEVELS

Kind = Literal["Job", "JobSet", "Pod", "Deployment"]
MOST_WORKERS = 20_000
PLACES = ("host", "zone", "region", *LEVELS)
"""What pods can be kept together by, beside a label's key."""
_GENERATED = (
    "kind", "workers", "requests", "gpuProduct", "nodeSelector", "affinity", "priority", "queue", "gang", "duration",
    "labels", "annotations",
)  # fmt: skip


def _place_problems(where: Where, raw: object) -> list[Problem]:
    if isinstance(raw, str) and (raw in PLACES or ("/" in raw and label_key_fault(raw) is None)):
        return []
    near = suggest(raw, PLACES) if isinstance(raw, str) else None
    remedy = f"write {near}" if near else f"write one of {', '.join(PLACES)}, or the key of a label"
    return [problem(where, f"is {shown(raw)}, not a place", remedy)]


def _priority_problems(where: Where, raw: object) -> list[Problem]:
    return [] if isinstance(raw, str) else whole_problems(where, raw, -1_000_000_000, 1_000_000_000)


Place = Annotated[str, checked(_place_problems)]


class Affinity(Section):
    """The workers of a job stay together, one job apart from the other.

    Args:
        required: they are all in one zone, rack …, or wait.
        preferred: if that is possible.
    """

    required: Place | None = Field(default=None, examples=["zone"])
    preferred: Place | None = Field(default=None, examples=["rack"])


class Workload(Section):
    """Jobs that are alike. Either described by the fields from `kind` on, or taken from `manifest`.

    Args:
        name: part of the names of its objects.
        jobs: how many; a trace decides it instead.
        arrival: when they come.
        manifest: a file with Kubernetes objects, relative to the experiment file; they are created once for each job.
        replace: texts in the manifest and what stands in their place; `{index}` there is the job's number from 1.
        kind: what each job is. The pods of a Pod or a Deployment have no end.
        workers: pods of each job.
        requests: of each pod, and its limits.
        gpuProduct: the GPUs it wants, a value of the experiment's `productLabel`.
        nodeSelector: labels that its nodes have.
        affinity: whether its workers stay together.
        priority: a number, for which a PriorityClass is made, or the name of one that is there.
        queue: in which its jobs wait, of a scheduler that has queues.
        gang: all workers of a job get a node, or none, under a scheduler that knows gangs; the default one places them
            one by one all the same.
        duration: how long each pod runs; None means without end.
        labels, annotations: of its pods, besides.
    """

    name: Name = Field(examples=["training"])
    jobs: Annotated[int, whole(1, MOST_JOBS)] = Field(default=1, examples=["15"])
    arrival: Arrival = Field(default_factory=Arrival, examples=["{poisson: 2}"])
    manifest: str = Field(default="", examples=["workloads/job.yaml"])
    replace: dict[str, str] = Field(default_factory=dict, examples=['{JOB_ID: "job-{index}"}'])
    kind: Kind = Field(default="Job", examples=["Job"])
    workers: Annotated[int, whole(1, MOST_WORKERS)] = Field(default=1, examples=["100"])
    requests: Requests = Field(default_factory=dict, examples=['{cpu: "24", nvidia.com/gpu: "8"}'])
    gpuProduct: LabelValue = Field(default="", examples=["NVIDIA-H100-80GB-HBM3"])
    nodeSelector: Labels = Field(default_factory=dict, examples=["{example.com/gpu: a100}"])
    affinity: Affinity = Field(default_factory=Affinity, examples=["{required: zone}"])
    priority: Annotated[str | int, checked(_priority_problems)] = Field(default="", examples=["100"])
    queue: str = Field(default="", examples=["team-a"])
    gang: bool = Field(default=False, examples=["true"])
    duration: DurationField | None = Field(default=None, examples=["10m"])
    labels: Labels = Field(default_factory=dict, examples=["{app: training}"])
    annotations: Annotations = Field(default_factory=dict, examples=["{example.com/note: text}"])

    @model_validator(mode="after")
    def _fits(self) -> Self:
        wrong: list[Problem] = []
        if self.manifest:
            wrong += [
                problem((name,), "has no effect beside manifest, which describes the objects", "leave it out")
                for name in _GENERATED
                if name in self.model_fields_set
            ]
        elif self.replace:
            wrong.append(problem(("replace",), "has no effect without manifest", "leave it out"))
        if self.kind in ("Pod", "Deployment") and self.duration is not None:
            remedy = "write kind: Job, or leave the duration out"
            wrong.append(problem(("duration",), f"is not for a {self.kind}, whose pods have no end", remedy))
        if self.kind == "Pod" and self.workers != 1:
            remedy = "write jobs: for how many pods there are, or another kind"
            wrong.append(problem(("workers",), "is not for a Pod, which is one", remedy))
        if self.arrival.trace is not None and "jobs" in self.model_fields_set:
            wrong.append(problem(("jobs",), "is decided by the trace", "leave it out, or write arrival.trace.limit"))
        if wrong:
            raise found(wrong)
        return self
