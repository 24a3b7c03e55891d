"""What the extra `loads` brings."""

from kumulus.host.extras import Extra

EXTRA = Extra(
    "loads",
    "loads that pods share, on the runtime kwok",
    additions=("kumulus.extras.loads.addition:ADDITION",),
)
