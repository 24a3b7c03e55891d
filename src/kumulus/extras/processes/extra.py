"""What the extra `processes` brings."""

from kumulus.host.extras import Extra

EXTRA = Extra(
    "processes",
    "pods that are processes of this machine, on the runtime kwok",
    additions=("kumulus.extras.processes.addition:ADDITION",),
    folders=("local",),
)
