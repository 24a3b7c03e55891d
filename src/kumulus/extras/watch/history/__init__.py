"""What happened to nodes, jobs, pods and queues, as a list of events, and their state at any moment.

A run of an experiment and the page's memory of a live cluster have the same format, so that the page shows both alike.
``document`` is the format, ``recorder`` writes it, ``moment`` reads the state at a moment.
"""
