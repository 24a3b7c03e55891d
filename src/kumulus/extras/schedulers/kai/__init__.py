"""KAI: gangs, queues in two levels with shares and limits, places of a topology, fractions of GPUs."""

from kumulus.extras.schedulers.descriptor import Scheduler
from kumulus.extras.schedulers.kai import launch, objects, workloads

SCHEDULER = Scheduler(
    name="kai",
    runs="KAI's scheduler, binder and podgrouper",
    scheduler_name=workloads.SCHEDULER_NAME,
    tools=("kai-scheduler", "kai-binder", "kai-podgrouper", "kai-crds"),
    tool_set="kai",
    plan=launch.plan,
    gang=workloads.gang,
    bind=workloads.bind,
    single=workloads.single,
    queues=True,
    queue=workloads.queue,
    counted=tuple(workloads.COUNTED),
    needed_queue=workloads.DEFAULT_QUEUE,
    gangs_are="`PodGroup` of scheduling.run.ai",
    queues_are="`Queue` below a `Queue`",
    api_groups=(objects.GROUP, "kai.scheduler"),
    kinds=objects.KINDS,
    group_keys=("pod-group-name",),
    queue_labels=("kai.scheduler/queue",),
    users=("kai-scheduler",),
)
