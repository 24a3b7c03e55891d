"""Coscheduling: kube-scheduler with scheduler-plugins' gangs."""

from kumulus.extras.schedulers import readers
from kumulus.extras.schedulers.coscheduling import launch, workloads
from kumulus.extras.schedulers.descriptor import Scheduler
from kumulus.extras.schedulers.kinds import ObjectKind
from kumulus.extras.schedulers.kube_scheduler.launch import profiles

SCHEDULER = Scheduler(
    name="coscheduling",
    runs="kube-scheduler with scheduler-plugins' Coscheduling",
    scheduler_name="coscheduling",
    tools=("scheduler-plugins",),
    tool_set="coscheduling",
    plan=launch.plan,
    gang=workloads.gang,
    never=True,
    gangs_are="`PodGroup` of scheduling.x-k8s.io",
    decisions=True,
    profiles=lambda config: profiles("coscheduling", config),
    api_groups=("scheduling.x-k8s.io",),
    kinds=(ObjectKind("PodGroup", "podgroups", "scheduling.x-k8s.io", ("v1alpha1",), job=readers.pod_group),),
    group_keys=("scheduling.x-k8s.io/pod-group",),
)
