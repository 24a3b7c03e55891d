"""Loads that pods share (`podUsage` with `load`), kept by a local process beside a cluster of the runtime kwok."""
