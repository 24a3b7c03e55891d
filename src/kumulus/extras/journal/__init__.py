"""Record what a run changes in a cluster before it does so, so that the next command can restore it.

A run of an experiment, or of another command that changes a cluster for a while, is a process that may be killed at any
moment. Its journal is a file of its own, on the disk before the change it lists is made. The next command on that
cluster (`up`, `experiment run`, `fit`, `snapshot` or any `fault` command) finds it, sees that the run is gone, and
restores everything; or names the command that finishes it, where there is no way back. While a run is alive, no other
begins.
"""
