"""Kubernetes' own API for workloads: nothing is started, the cluster's own kube-scheduler places groups of pods."""

from kumulus.extras.schedulers.descriptor import OF_THE_CLUSTER, Scheduler
from kumulus.extras.schedulers.native import objects, workloads
from kumulus.extras.schedulers.native.workloads import require

SCHEDULER = Scheduler(
    name="native",
    runs="the cluster's own kube-scheduler, with Kubernetes' API for workloads",
    scheduler_name=OF_THE_CLUSTER,
    tools=("kube-scheduler",),
    plan=None,
    require=require,
    gang=workloads.gang,
    bind=workloads.bind,
    slices=workloads.slices,
    disrupt=workloads.disrupt,
    never=True,
    single=workloads.single,
    gangs_are="`scheduling` of a Job, `PodGroup` and `CompositePodGroup` of scheduling.k8s.io",
    kinds=objects.KINDS,
)
