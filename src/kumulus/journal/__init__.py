"""What a run changes in a cluster: recorded before the change, and restored by the next command if need be.

A run of an experiment is a process that may be killed at any moment. Its journal is a file of its own, on the disk
before the change it lists is made. Whatever command comes next on that cluster finds it, sees that the run is gone,
and puts everything back: `up`, `experiment run` and every `fault` command.
"""
