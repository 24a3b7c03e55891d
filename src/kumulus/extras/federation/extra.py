"""What the extra `federation` brings."""

from kumulus.host.extras import Extra

EXTRA = Extra(
    "federation",
    "clusters that work as one, by Kueue",
)
