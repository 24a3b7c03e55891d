"""A workload of an experiment: jobs that are alike, described or taken from a manifest, and when they arrive."""

# ruff: noqa: N815 - fields are called what the file calls them, so that a path in an error is a path in the code

from collections.abc import Iterator
from typing import Annotated, Literal, Self

from pydantic import ConfigDict, Field, model_validator

from kumulus.extras.lab.file.fields import MOST_JOBS, Name, Needed, Rate, Requests, Seconds
from kumulus.model.checks import problem, whole_problems
from kumulus.model.errors import Problem, Where, shown
from kumulus.model.fields import (
    FORM,
    Annotations,
    DurationField,
    Labels,
    LabelValue,
    Section,
    checked,
    malformed,
    whole,
)
from kumulus.model.names import instead, label_key_mistake
from kumulus.model.topology import LEVELS


class TraceColumns(Section):
    """The columns of a trace, by their headings in its first line."""

    arrival: Needed = Field(default="arrival", examples=["submit_time"])
    """The column of a job's arrival: a number of seconds (from any epoch; the first job arrives at 0), or a date."""
    size: str = Field(default="size", examples=["num_workers"])
    """The column of a job's number of workers; if empty, every job has the workload's."""
    duration: str = Field(default="duration", examples=["duration"])
    """The column of a job's duration in seconds; if empty, every job has the workload's."""
    name: str = Field(default="", examples=["name"])
    """The column of a job's name; empty if the trace has none."""
    cpu: str = Field(default="", examples=["cpu"])
    """The column of the CPU that each worker requests, a quantity; if empty, every job has the workload's `requests`,
    as for the following."""
    memory: str = Field(default="", examples=["memory"])
    """The column of the memory that each worker requests, a quantity."""
    gpus: str = Field(default="", examples=["num_gpus"])
    """The column of how many GPUs each worker requests."""
    gpuMilli: str = Field(default="", examples=["gpu_milli"])
    """The column of the part of each GPU, in thousandths: less than 1000 only for a single GPU."""
    gpuModels: str = Field(default="", examples=["gpu_spec"])
    """The column of the GPU models that a job may run on, `A|B`, values of the `productLabel`."""
    priority: str = Field(default="", examples=["prio"])
    """The column of a job's priority, a whole number."""
    user: str = Field(default="", examples=["vc"])
    """The column of a job's user, queue or virtual cluster."""
    qos: str = Field(default="", examples=["qos"])
    """The column of a job's quality of service, in the trace's words."""


class Window(Section):
    """A part of a trace, by time."""

    from_: Seconds = Field(default=0.0, alias="from", examples=["24h"])
    """When it starts, counted from the trace's first job."""
    to: Seconds = Field(examples=["168h"])
    """When it ends, counted from the trace's first job."""

    @model_validator(mode="after")
    def _some_time(self) -> Self:
        if self.to <= self.from_:
            raise malformed([problem(("to",), "is not after from", "write a longer duration")])
        return self


class Trace(Section):
    """A trace: a CSV file with a header line and a line for each job."""

    file: Needed = Field(examples=["traces/small.csv"])
    """The trace's path, relative to the experiment file: CSV with a header line and a line for each job."""
    columns: TraceColumns = Field(default_factory=TraceColumns, examples=["{arrival: submit_time}"])
    """The headings of the columns to use."""
    speed: Rate = Field(default=1.0, examples=["60"])
    """How many times faster than recorded the trace is replayed, both arrivals and durations."""
    limit: Annotated[int, whole(1, MOST_JOBS)] | None = Field(default=None, examples=["500"])
    """Only this many of the trace's first jobs."""
    window: Window | None = Field(default=None, examples=["{from: 24h, to: 168h}"])
    """Only the jobs that arrived in a part of the trace's time."""
    inflate: Rate | None = Field(default=None, examples=["1.3"])
    """Jobs in an order drawn by the seed, with random ones repeated or left out to request this share of all GPUs."""
    shuffle: Literal["seed"] | None = Field(default=None, examples=["seed"])
    """With `seed`, the experiment's seed decides the order of the jobs."""
    stay: bool = Field(default=False, examples=["true"])
    """No job ends, whatever the trace says."""
    milliGpus: bool = Field(default=False, examples=["true"])
    """Pods also request GPUs in thousandths, by the extended resource `kumulus.io/gpu-milli`. Every scheduler counts it
    on nodes that declare it, by node and not GPU by GPU. With `resourceClaims`, it rules out nodes without room before
    claims are allocated."""
    userQueues: bool = Field(default=False, examples=["true"])
    """Each job waits in a queue named after its user or virtual cluster. Unless `setup` has the queue, the run creates
    it with all that the nodes have. Schedulers without queues take the jobs as they are."""


class Arrival(Section):
    """When jobs arrive; by default all at once."""

    model_config = ConfigDict(json_schema_extra={FORM: "arrivalRules"})

    after: Seconds = Field(default=0.0, examples=["30s"])
    """How long after the experiment's start the first job may come."""
    once: Literal["scheduled"] | None = Field(default=None, examples=["scheduled"])
    """With `scheduled`, `after` counts from when all pods of the workloads without it have a node."""
    rate: Rate | None = Field(default=None, examples=["5"])
    """How many jobs arrive per second, evenly."""
    poisson: Rate | None = Field(default=None, examples=["5"])
    """How many jobs arrive per second on average, with exponentially distributed times between them."""
    trace: Trace | None = Field(default=None, examples=["{file: trace.csv}"])
    """Jobs arrive as recorded; the trace decides how many there are."""

    @model_validator(mode="after")
    def _one_way(self) -> Self:
        present = [name for name in ("rate", "poisson", "trace") if getattr(self, name) is not None]
        if len(present) > 1:
            raise malformed([problem((present[1],), f"cannot be combined with {present[0]}", "leave one of them out")])
        return self


# A workload that is a recorded day: what was created, scaled, deleted and evicted, and when.
class Replay(Section):
    """A recording to replay, or a part of one."""

    file: Needed = Field(examples=["day.recording.jsonl"])
    """The recording, as `kumulus replay import` writes it, relative to the experiment file."""
    speed: Rate = Field(default=1.0, examples=["10"])
    """How many times faster than recorded it is replayed, both times between steps and runs."""
    from_: Seconds = Field(default=0.0, alias="from", examples=["2h"])
    """When the replay starts, counted from the recording's start; what existed by then is created at once."""
    until: Seconds | None = Field(default=None, examples=["5h"])
    """When the replay ends, counted from the recording's start; by default at its end."""

    @model_validator(mode="after")
    def _some_time(self) -> Self:
        if self.until is not None and self.until <= self.from_:
            raise malformed([problem(("until",), "is not after from", "write a longer duration")])
        return self


Kind = Literal["Job", "JobSet", "Pod", "Deployment"]
MOST_WORKERS = 20_000
MOST_PRIORITY = 1_000_000_000
NEVER = "Never"
PLACES = ("host", "zone", "region", *LEVELS)
"""The places in which pods can be kept together, besides a label's key."""
GENERATED = (
    "kind", "workers", "requests", "gpuProduct", "nodeSelector", "affinity", "priority", "preemptionPolicy", "queue",
    "gang", "topology", "disruption", "duration", "labels", "annotations", "resourceClaims",
)  # fmt: skip
DESCRIBING = (*GENERATED, "jobs", "arrival", "manifest", "replace", "schedulerName")
"""The fields that have no effect with a recording."""


def _place_problems(where: Where, raw: object) -> list[Problem]:
    if isinstance(raw, str) and (raw in PLACES or ("/" in raw and label_key_mistake(raw) is None)):
        return []
    remedy = instead(raw, PLACES, also=", or the key of a label")
    return [problem(where, f"is {shown(raw)}, not a place", remedy)]


def _priority_problems(where: Where, raw: object) -> list[Problem]:
    return [] if isinstance(raw, str) else whole_problems(where, raw, -MOST_PRIORITY, MOST_PRIORITY)


Place = Annotated[str, checked(_place_problems, form="place")]


class Affinity(Section):
    """Keeps the workers of a job together, for each job on its own."""

    required: Place | None = Field(default=None, examples=["zone"])
    """The workers of a job are all in one such place, or wait."""
    preferred: Place | None = Field(default=None, examples=["rack"])
    """The workers of a job are all in one such place if that is possible."""


class Slices(Section):
    """Equal parts of a gang."""

    required: Place = Field(examples=["rack"])
    """Each slice is placed in one such place."""
    size: Annotated[int, whole(1, MOST_WORKERS)] = Field(examples=["8"])
    """Pods of each slice; the gang has a multiple of them."""


class Together(Section):
    """Where the pods of a gang have to be together."""

    required: Place | None = Field(default=None, examples=["rack"])
    """The gang is placed in one such place, or waits."""
    slices: Slices | None = Field(default=None, examples=["{required: rack, size: 8}"])
    """The gang, a Job, consists of slices, each in a smaller place: `native`, `kueue`."""


class Workload(Section):
    """Jobs that are alike, described by the fields from `kind` on or taken from `manifest`; or a recorded day."""

    model_config = ConfigDict(json_schema_extra={FORM: "workloadRules"})

    name: Name = Field(examples=["training"])
    """The workload's name, part of the names of its objects."""
    jobs: Annotated[int, whole(1, MOST_JOBS)] = Field(default=1, examples=["15"])
    """How many jobs; with a trace, the trace decides."""
    arrival: Arrival = Field(default_factory=Arrival, examples=["{poisson: 2}"])
    """When the jobs arrive; by default all at once."""
    measured: bool = Field(default=True, examples=["false"])
    """Whether the times and rates of scheduling are those of its pods, too; write false for pods that others follow."""
    manifest: str = Field(default="", examples=["workloads/job.yaml"])
    """A file with Kubernetes objects, relative to the experiment file; they are created once for each job."""
    replay: Replay | None = Field(default=None, examples=["{file: day.recording.jsonl, speed: 10}"])
    """A recorded day to replay, as made by `kumulus replay import`; it decides everything."""
    replace: dict[str, str] = Field(default_factory=dict, examples=['{JOB_ID: "job-{index}"}'])
    """Texts in the manifest and their replacements, in which `{index}` is the job's number from 1."""
    kind: Kind = Field(default="Job", examples=["Job"])
    """What each job is; with Pod, as many pods as it has workers. The pods of a Pod or a Deployment run without end."""
    workers: Annotated[int, whole(1, MOST_WORKERS)] = Field(default=1, examples=["100"])
    """Pods of each job."""
    requests: Requests = Field(default_factory=dict, examples=['{cpu: "24", nvidia.com/gpu: "8"}'])
    """What each pod requests; its limits are the same."""
    resourceClaims: Literal["milli", "mig"] | None = Field(default=None, examples=["milli"])
    """Pods request by ResourceClaim the GPUs that their `requests`, or the trace, have as `nvidia.com/gpu`, and parts
    of one (`kumulus.io/gpu-milli`): with `milli`, that many thousandths of a GPU that claims share; with `mig`, the
    smallest MIG device with as much."""
    gpuProduct: LabelValue = Field(default="", examples=["NVIDIA-H100-80GB-HBM3"])
    """The GPUs that the pods want, a value of the experiment's `productLabel`."""
    nodeSelector: Labels = Field(default_factory=dict, examples=["{example.com/gpu: a100}"])
    """Labels that the pods' nodes must have."""
    affinity: Affinity = Field(default_factory=Affinity, examples=["{required: zone}"])
    """Whether the workers of a job stay together."""
    priority: Annotated[str | int, checked(_priority_problems, form="priority")] = Field(default="", examples=["100"])
    """A number, for which a PriorityClass is created, or the name of an existing one."""
    preemptionPolicy: Literal["PreemptLowerPriority", "Never"] = Field(
        default="PreemptLowerPriority", examples=["Never"]
    )
    """With `Never`, pods that find no room wait, instead of preempting pods of a lower priority. It is part of the
    PriorityClass that is created; an existing one, named by `priority`, has its own. `kueue` and `kai` cannot."""
    schedulerName: str = Field(default="", examples=["bin-packing"])
    """The profile of the scheduler's configuration that places the pods, `spec.schedulerName`; by default its first
    one."""
    queue: str = Field(default="", examples=["team-a"])
    """The queue in which the jobs wait, if the scheduler has queues."""
    gang: bool = Field(default=False, examples=["true"])
    """All workers of a job get a node, or none does, if the scheduler supports gangs; the default one still places them
    one by one."""
    topology: Together = Field(default_factory=Together, examples=["{required: rack}"])
    """Where each gang has to be together, by the scheduler itself: `native`, `volcano`, `kueue`, `kai`."""
    disruption: Literal["", "all", "single"] = Field(default="", examples=["all"])
    """Whether a gang's pods are preempted `all` together or each by itself, if it can: `native`."""
    duration: DurationField | None = Field(default=None, examples=["10m"])
    """How long each pod runs; by default without end."""
    labels: Labels = Field(default_factory=dict, examples=["{app: training}"])
    """Further labels of the pods."""
    annotations: Annotations = Field(default_factory=dict, examples=["{example.com/note: text}"])
    """Further annotations of the pods."""

    @model_validator(mode="after")
    def _fits(self) -> Self:
        wrong: list[Problem] = []
        if self.replay is not None:
            described = [name for name in DESCRIBING if name in self.model_fields_set]
            message = "has no effect with replay, which decides what comes when"
            wrong = [problem((name,), message, "leave it out") for name in described]
            if wrong:
                raise malformed(wrong)
            return self
        if self.manifest:
            wrong += [
                problem((name,), "has no effect with manifest, which describes the objects", "leave it out")
                for name in GENERATED
                if name in self.model_fields_set
            ]
        elif self.replace:
            wrong.append(problem(("replace",), "has no effect without manifest", "leave it out"))
        if self.kind in ("Pod", "Deployment") and self.duration is not None:
            remedy = "write kind: Job, or leave the duration out"
            wrong.append(problem(("duration",), f"is not for a {self.kind}, whose pods have no end", remedy))
        if self.duration is not None and self.arrival.trace is not None and self.arrival.trace.stay:
            message = "has no effect with arrival.trace.stay, by which no job ends"
            wrong.append(problem(("duration",), message, "leave one of them out"))
        wrong += self._of_gangs_and_classes()
        if self.arrival.trace is not None and "jobs" in self.model_fields_set:
            wrong.append(problem(("jobs",), "is decided by the trace", "leave it out, or write arrival.trace.limit"))
        if wrong:
            raise malformed(wrong)
        return self

    def _of_gangs_and_classes(self) -> Iterator[Problem]:
        for name, setting in (("topology", self.topology.required), ("disruption", self.disruption)):
            if setting and not self.gang:
                yield problem((name,), "is of a gang, and this workload is none", "write gang: true")
        if self.topology.slices and not self.topology.required:
            yield problem(("topology", "slices"), "are within one place, which required names", "write required, too")
        if isinstance(self.priority, str) and self.priority and "preemptionPolicy" in self.model_fields_set:
            message = "is that of the PriorityClass, which priority names"
            yield problem(("preemptionPolicy",), message, "leave it out, or write a number as priority")
