"""This machine: how Kumulus is installed, the user's project, processes, ports, memory, files written whole.

Control planes and schedulers are both started as ``<directory>/bin/<program>``, so they can be found and ended
without a record of them. All but `lifetime`, `machine` and `processes` needs only the standard library: the command
uses it before anything is installed, and programs do while they start.
"""
