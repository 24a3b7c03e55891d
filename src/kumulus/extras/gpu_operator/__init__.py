"""The fake GPU operator, as local processes beside a cluster of the runtime kwok."""
