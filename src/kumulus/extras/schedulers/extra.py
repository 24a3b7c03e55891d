"""What the extra `schedulers` brings."""

from kumulus.host.extras import Extra

EXTRA = Extra(
    "schedulers",
    "additional schedulers",
    resources=("kumulus.extras.schedulers.resource:HyperNodes",),
    schedulers={
        "kube-scheduler": "kumulus.extras.schedulers.kube_scheduler:SCHEDULER",
        "native": "kumulus.extras.schedulers.native:SCHEDULER",
        "coscheduling": "kumulus.extras.schedulers.coscheduling:SCHEDULER",
        "volcano": "kumulus.extras.schedulers.volcano:SCHEDULER",
        "kueue": "kumulus.extras.schedulers.kueue:SCHEDULER",
        "kai": "kumulus.extras.schedulers.kai:SCHEDULER",
        "yunikorn": "kumulus.extras.schedulers.yunikorn:SCHEDULER",
    },
)
