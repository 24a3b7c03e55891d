"""Schedulers beside the cluster's own: started as local processes, and the objects that declare workloads for each.

A folder for each, with its descriptor; `registry` names them, and is the place to ask for one. `process` starts one
against a cluster, `workloads` has gangs and queues in the words of each. What a user should read is a `SchedulerError`.
"""

from kumulus.schedulers.errors import SchedulerError
from kumulus.schedulers.registry import NAMES

__all__ = ["NAMES", "SchedulerError"]
