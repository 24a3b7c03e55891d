"""Schedulers next to the cluster's own: started as local processes, and the objects that declare workloads for each.

Each has a package with its descriptor; `registry` lists them and returns one by name. `process` starts one against a
cluster; `workloads` declares gangs and queues in the format of each. Errors for the user are `SchedulerError`s.
"""

from kumulus.extras.schedulers.errors import SchedulerError
from kumulus.extras.schedulers.registry import NAMES

__all__ = ["NAMES", "SchedulerError"]
