"""Kueue: Jobs queued by quota before the cluster's own scheduler places their pods."""

from kumulus.extras.schedulers.descriptor import Scheduler
from kumulus.extras.schedulers.kueue import launch, objects, workloads

SCHEDULER = Scheduler(
    name="kueue",
    runs=(
        "Kueue's controller with all its webhooks; "
        "it admits Jobs, and the cluster's own scheduler then places their pods"
    ),
    scheduler_name=workloads.SCHEDULER_NAME,
    tools=("kueue",),
    tool_set="kueue",
    plan=launch.plan,
    gang=workloads.gang,
    bind=workloads.bind,
    slices=workloads.slices,
    single=workloads.single,
    queues=True,
    queue=workloads.queue,
    needed_queue=workloads.DEFAULT_QUEUE,
    gangs_are="a Job is one",
    queues_are="`ClusterQueue`, `LocalQueue`",
    api_groups=(objects.GROUP,),
    kinds=objects.KINDS,
    group_keys=("kueue.x-k8s.io/pod-group-name",),
    queue_labels=("kueue.x-k8s.io/queue-name",),
    known_keys=objects.KEYS,
)
