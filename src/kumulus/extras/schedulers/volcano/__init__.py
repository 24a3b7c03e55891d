"""Volcano: batch scheduling with gangs, queues and fair shares."""

from kumulus.extras.schedulers.descriptor import Scheduler
from kumulus.extras.schedulers.volcano import launch, objects, places, workloads

SCHEDULER = Scheduler(
    name="volcano",
    runs="vc-scheduler and vc-controller-manager",
    scheduler_name="volcano",
    tools=("volcano-scheduler", "volcano-controller-manager"),
    tool_set="volcano",
    plan=launch.plan,
    gang=workloads.gang,
    bind=workloads.bind,
    places=places.places,
    never=True,
    single=workloads.single,
    queues=True,
    queue=workloads.queue,
    gangs_are="`PodGroup` of scheduling.volcano.sh",
    queues_are="`Queue`",
    api_groups=(objects.GROUP,),
    kinds=objects.KINDS,
    group_keys=objects.GROUP_ANNOTATIONS[:1],
    queue_annotations=objects.QUEUE_ANNOTATIONS,
    kept_annotations=objects.GROUP_ANNOTATIONS,
    known_keys=(
        *objects.GROUP_ANNOTATIONS,
        *objects.QUEUE_ANNOTATIONS,
        "volcano.sh/job-name",
        "volcano.sh/task-spec",
    ),
    users=("volcano", "vc-scheduler"),
)
