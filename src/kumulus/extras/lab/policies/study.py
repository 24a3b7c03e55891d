"""What a policy may know besides the pod and the nodes."""

from __future__ import annotations

import random
from dataclasses import dataclass

from kumulus.extras.lab.policies.fragmentation import Fragmentation


@dataclass(frozen=True)
class Study:
    """What is the same throughout a run."""

    fragmentation: Fragmentation
    """Called with nodes, returns the fragmented milli-GPU of each, measured against the typical pods."""
    random: random.Random
    """The run's source of random numbers; the same seed draws the same numbers."""
