"""Loads that pods share (`podUsage` with `load`), kept by a local process alongside a cluster of the runtime kwok."""
