"""What the extra `journal` brings."""

from kumulus.host.extras import Extra

EXTRA = Extra(
    "journal",
    "what runs change in a cluster, put back by the next command",
    runs=("kumulus.extras.journal.runs:RUNS",),
)
