"""The fake GPU operator, as local processes alongside a cluster of the runtime kwok."""
