"""What an experiment file may say: workloads, what happens to them, and what is expected of it.

The models of `experiments/*.yaml`. They are pure: nothing here asks a cluster.
"""
