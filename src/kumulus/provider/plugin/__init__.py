"""The plugin's program: it serves the resources of ``provider`` and the components as one Pulumi package."""
