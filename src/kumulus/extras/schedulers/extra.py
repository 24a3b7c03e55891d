"""What the extra `schedulers` brings."""

from kumulus.host.extras import Extra

EXTRA = Extra(
    "schedulers",
    "schedulers beside the cluster's own",
)
