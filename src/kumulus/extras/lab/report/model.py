"""The report of a run, as in report.json; docs/experiment-report.schema.json is generated from these models.

It resembles KAI's result object: metadata, and results with a list of tests and their details. Differences: a
repetition that failed has an entry too, numbers are plain numbers (seconds, bytes, shares of 1), and ids are unique.
"""

from __future__ import annotations

from typing import ClassVar, Literal

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from kumulus.extras.lab.errors import LabError

SCHEMA_VERSION = 1
FILE = "report.json"
Status = Literal["success", "failure", "partial"]


class Part(BaseModel):
    """Any part of a report."""

    model_config = ConfigDict(extra="forbid")


class Inputs(Part):
    """What a run was made of."""

    files: dict[str, str] = Field(description="SHA-256 of each input file, by its name in the directory inputs/")
    workloads: str = Field(description="SHA-256 of all objects and their times: the same means the same workloads")


class Machine(Part):
    """The machine that the client ran on, and with a local cluster the cluster too."""

    cores: int
    memory_bytes: int
    load: float = Field(description="load average over a minute before the run")


class ReportedCluster(Part):
    """The cluster."""

    name: str
    version: str = Field(description="of Kubernetes")
    nodes: int
    gpus: dict[str, float] = Field(description="by product and zone, as 'product zone'")
    local: bool = Field(description="whether its processes are on the client's machine, and so were measured")


class SchedulerUsed(Part):
    """The scheduler that placed the pods."""

    name: str
    settings: dict[str, str] = Field(description="its version and flags, its limits of requests among them")
    config: str = Field(default="", description="the name of the user's own configuration or program; empty for none")
    why: bool = Field(default=False, description="whether it logged how it decides, which makes it slower")


class Metadata(Part):
    """Circumstances of a run. Two runs are comparable when those that matter are the same."""

    schema_version: int = SCHEMA_VERSION
    run_id: str
    label: str = Field(default="", description="what its user has called it")
    experiment: str
    description: str
    source: str
    expected: str
    emulation: str
    timestamp: str = Field(description="when it began, RFC 3339 in UTC")
    kumulus_commit: str
    stack: str
    seed: int
    repetitions: int
    cluster: ReportedCluster
    scheduler: SchedulerUsed
    client_settings: dict[str, dict[str, str]] = Field(
        description="limits of requests of the control plane's own clients, by component; flags as they were given"
    )
    creator: dict[str, str] = Field(description="how the client creates objects")
    machine: Machine
    inputs: Inputs
    fidelity: list[str] = Field(
        default_factory=list, description="what the run is not to be trusted for: the lines of docs/fidelity.md on it"
    )

    @property
    def called(self) -> str:
        """The run's id, with its label if it has one."""
        return f"{self.label} ({self.run_id})" if self.label else self.run_id


class Judged(Part):
    """One expectation."""

    expected: str
    holds: bool
    found: str


class Moment(Part):
    """Something that happened, in seconds from the start."""

    at: float
    what: str


class JobCount(Part):
    """The jobs of one workload at the end."""

    jobs: int
    admitted: int
    partly: int
    pending: int
    workers: int = Field(description="all of their pods")
    placed: int = Field(description="pods that have a node, or completed")


class Of(Part):
    """The pods of a queue, or of all of them, then or now."""

    pods: int
    scheduled: int
    preempted: int
    waited: dict[str, float] = Field(description="from a pod's creation to its node, seconds of the recording's time")
    cpu_peak: float = Field(description="the most CPUs that were asked for by pods on nodes at one time")
    memory_peak_gib: float = Field(description="the most memory, GiB")
    gpus_peak: float = Field(description="the most GPUs")
    cost: float | None = Field(
        default=None, description="US dollars for what the pods asked of their nodes; none where it is not known"
    )


class QueueComparison(Part):
    """What happened, compared with what would have."""

    then: Of
    now: Of


class ReplayComparison(Part):
    """A recorded day compared with its replay."""

    speed: float
    since: float = Field(description="the part that was played, in seconds of the recording")
    until: float
    all: QueueComparison
    queues: dict[str, QueueComparison] = Field(description="by queue, or by namespace of then where there was none")
    sent: int = Field(description="requests")
    late: dict[str, float] = Field(description="by how many seconds requests were behind their time")
    requests: str = Field(description="SHA-256 of all requests but evictions: two replays of one recording have one")
    refused: int
    refusals: list[str] = Field(description="the first that were refused, with what the cluster said")
    cannot: list[str] = Field(description="what cannot be compared, and why")


class PolicyUsed(Part):
    """What a policy did alongside kube-scheduler, and what the cluster came to by it, or without one."""

    policy: str = Field(default="", description="empty where there was none: all but the measures by demand, too")
    ties: str = Field(
        default="", description="whether equally good nodes go by the seed's order, or kube-scheduler draws one"
    )
    asked: int = Field(default=0, description="how often it was asked; a pod may be tried more than once")
    failed: int = Field(default=0, description="how often it raised, took too long or answered nonsense")
    failure: str = Field(
        default="", description="what it said the first time, with its traceback; empty when it did not fail"
    )
    elsewhere: int = Field(default=0, description="pods that were bound to another node than it had chosen")
    seconds: dict[str, float] = Field(default_factory=dict, description="the spread of the time that an answer took")
    split: int = Field(
        default=0, description="pods on nodes without a GPU that has enough free, where a scheduler counts by node"
    )
    cpu: float = Field(
        default=0.0, description="CPU seconds of the client for the measures by demand: each node anew that changes"
    )
    allocated_percent: dict[str, float] = Field(
        description="of all GPUs, by whole per cents of demand arrived; empty where pods end, as all measures by it"
    )
    fragmented_percent_of_all_gpus: dict[str, float]
    fragmented_percent_of_idle_gpus: dict[str, float]


class OfUser(Part):
    """What a user, or a queue, had."""

    pods: int
    scheduled: int
    waited: dict[str, float] = Field(
        description="from the creation of a job's first pod until all of its workers had a node for good, seconds"
    )
    slowdown: dict[str, float] = Field(
        description="of completed jobs, the time that they took over the time that they take if they never wait"
    )
    hours: float = Field(description="GPU-hours that the user's pods had; CPU-hours where no pod wants a GPU")
    part: float = Field(description="of the hours asked for, from creation on; 1 when no pod ever waited")
    share: float = Field(description="of the hours of all users")


class ByUser(Part):
    """What users had, compared with each other."""

    of: str = Field(description="what hours and shares are of: gpus, or cpus")
    users: dict[str, OfUser] = Field(description="by name; pods without a user are not among them")
    shares: dict[str, list[float]] = Field(
        description="of what all users had, by moments t in seconds; users past the ninth are together `others`"
    )


class OfWorker(Part):
    """What a worker of a federation did."""

    jobs: int = Field(description="Jobs of which pods have begun on it")
    completed: int = Field(description="Jobs of which pods have completed on it")
    pods: int = Field(description="pods that were seen on it")
    scheduled: int = Field(description="pods of them that got a node")
    nodes: int = Field(description="at the end")
    allocated: dict[str, float] = Field(description="shares of `gpus`, `cpu` and `memory` requested at the end")
    peak: dict[str, float] = Field(description="the greatest such shares at one time")
    dispatched: dict[str, float] = Field(
        description="of its Jobs, seconds from creation on the hub until a worker had admitted it, as the hub knew"
    )


class ByCluster(Part):
    """What the clusters of a federation did, and where each Job was."""

    hub: str
    workers: dict[str, OfWorker]
    jobs: dict[str, list[str]] = Field(
        description="by Job, the workers on which its pods have begun, in this order; those that began nowhere are not "
        "in it"
    )
    lost: list[str] = Field(
        description="Jobs that have neither completed, nor wait in the hub's queue, nor have a pod that lives"
    )


class Details(Part):
    """What a repetition came to."""

    ended: str = Field(description="why it ended")
    speed: float = Field(
        default=1.0, description="how many times faster than recorded its traces were played; 1 if not all alike"
    )
    measures: dict[str, float] = Field(description="by the names of docs/experiments.md")
    not_measured: dict[str, tuple[float, float | None]] = Field(
        default_factory=dict,
        description="measures of which too little was heard, with the least and the most that they may be; null is no "
        "upper bound",
    )
    allocation: dict[str, float] = Field(description="GPUs allocated at the end by 'product zone'")
    free_gpus: dict[str, float] = Field(description="GPUs free at the end, by product")
    jobs: dict[str, JobCount] = Field(description="by workload")
    pending_by_reason: dict[str, int]
    victims: dict[str, int] = Field(
        default_factory=dict, description="pods that the scheduler evicted for others, by their PodGroup"
    )
    timeline: list[Moment]
    bindings: list[list[float]] = Field(
        description="seconds, the API server's count since the start, the watch's count"
    )
    policy: PolicyUsed | None = Field(
        default=None, description="of runs with a policy, and of traces whose pods ask for GPUs and stay"
    )
    series: dict[str, list[float]] = Field(description="samples by column; t are seconds")
    users: ByUser | None = Field(default=None, description="of runs whose jobs have users or queues")
    clusters: ByCluster | None = Field(default=None, description="of runs on the hub of a federation")
    replays: dict[str, ReplayComparison] = Field(
        default_factory=dict, description="of each workload that is a recorded day: what happened, and what would have"
    )


class Test(Part):
    """One repetition."""

    # Not a test for pytest, which collects classes of this name.
    __test__: ClassVar[bool] = False

    id: str
    test_name: str
    status: Status
    thresholds: list[Judged]
    details: Details


class Results(Part):
    """All repetitions."""

    status: Status
    error: str = Field(default="", description="why the run ended early; empty when it did not")
    tests: list[Test]


class Report(Part):
    """A run."""

    metadata: Metadata
    results: Results

    def lean(self) -> Report:
        """Its measures and circumstances, without what is of single moments, pods, jobs or users."""
        less: dict[str, object] = {"allocation": {}, "free_gpus": {}, "jobs": {}, "pending_by_reason": {}}
        less |= {"victims": {}, "timeline": [], "bindings": [], "series": {}, "replays": {}}
        less |= {"policy": None, "users": None, "clusters": None}
        tests = [
            test.model_copy(update={"details": test.details.model_copy(update=less)}) for test in self.results.tests
        ]
        return self.model_copy(update={"results": self.results.model_copy(update={"tests": tests})})


def report_of(content: str | bytes, name: str) -> Report:
    """The report that a file has."""
    try:
        return Report.model_validate_json(content)
    except ValidationError as error:
        first = error.errors(include_url=False)[0]
        what = ": ".join(filter(None, (".".join(map(str, first["loc"])), first["msg"])))
        raise LabError(f"{name} is no report of an experiment: {what}; run the experiment again") from None
