"""What the extra `federation` brings."""

from kumulus.host.extras import Extra

EXTRA = Extra(
    "federation",
    "clusters that work as one, by Kueue",
    additions=("kumulus.extras.federation.addition:ADDITION",),
    folders=("kueue",),
    stack_sections={"federation": "kumulus.extras.federation.section:FederationSpec"},
    tools={"federation": ("kueue",)},
    resources=(
        "kumulus.extras.federation.resource:FederationWorker",
        "kumulus.extras.federation.resource:FederationHub",
    ),
)
