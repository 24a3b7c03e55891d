"""What Kumulus runs on this machine: processes found by the process table, and local ports and memory for them.

Control planes and schedulers are both started as ``<directory>/bin/<program>``, so they can be found and ended
without a record of them. This package imports only `kumulus.host`.
"""
