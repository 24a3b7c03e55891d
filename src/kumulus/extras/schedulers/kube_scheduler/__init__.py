"""A kube-scheduler alongside the cluster's own, with the user's configuration or binary."""

from kumulus.extras.schedulers.descriptor import Scheduler
from kumulus.extras.schedulers.kube_scheduler import launch

SCHEDULER = Scheduler(
    name="kube-scheduler",
    runs="kube-scheduler, with a configuration or a binary of your own",
    scheduler_name="second-scheduler",
    tools=("kube-scheduler",),
    plan=launch.plan,
    never=True,
    decisions=True,
    users=("kube-scheduler",),
    profiles=lambda config: launch.profiles("kube-scheduler", config),
)
