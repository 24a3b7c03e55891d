"""Schedulers beside the cluster's own: started as local processes, and the objects that declare workloads for each.

- `catalog`: which there are
- `process`: start one against a cluster, watch over it, and leave the cluster as it was found
- `workloads`: gangs and queues, in the words of each scheduler; pure functions
- `definitions`: the CustomResourceDefinitions that a scheduler's own Go module brings

Names are those of `catalog.NAMES`. Everything a user should read is a `SchedulerError`.
"""

from kumulus.schedulers.catalog import NAMES
from kumulus.schedulers.definitions import crds
from kumulus.schedulers.errors import SchedulerError

__all__ = ["NAMES", "SchedulerError", "crds"]
