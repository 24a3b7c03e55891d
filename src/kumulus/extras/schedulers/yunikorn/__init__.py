"""YuniKorn: applications, gangs held by placeholders, hierarchical queues."""

from kumulus.extras.schedulers.descriptor import Scheduler
from kumulus.extras.schedulers.yunikorn import launch, objects, workloads

SCHEDULER = Scheduler(
    name="yunikorn",
    runs="YuniKorn's core and shim",
    scheduler_name="yunikorn",
    tools=("yunikorn",),
    tool_set="yunikorn",
    plan=launch.plan,
    gang=workloads.gang,
    never=True,
    single=workloads.single,
    queues=True,
    gangs_are="task groups, held by placeholder pods",
    queues_are="in `queues.yaml`, or made as they are named",
    kinds=objects.KINDS,
    queue_labels=("queue",),
    users=("yunikorn",),
)
