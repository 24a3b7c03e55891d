"""What an experiment file may say: workloads, what happens to them, and what is expected of it.

The models of `experiments/*.yaml`. They are pure: nothing here asks a cluster.
"""

KEPT_AS = "baseline.json"
"""What a run's inputs call the run that it is compared with."""
