"""A kube-scheduler beside the cluster's own, with a configuration or a binary of the user's."""

from kumulus.schedulers.descriptor import Scheduler
from kumulus.schedulers.kube_scheduler import launch

SCHEDULER = Scheduler(
    name="kube-scheduler",
    runs="kube-scheduler, with a configuration or a binary of your own",
    scheduler_name="second-scheduler",
    tools=("kube-scheduler",),
    plan=launch.plan,
    decisions=True,
)
