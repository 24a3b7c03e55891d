"""What happened to nodes, jobs, pods and queues, as a list of events, and what was so at any moment of it.

One format for what a run of an experiment leaves and for what the page remembers of a live cluster: the page shows both
alike. ``document`` is the format, ``recorder`` writes it, ``moment`` reads a moment out of it.
"""
