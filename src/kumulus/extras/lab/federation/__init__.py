"""Experiments on clusters that work as one: Jobs are created on the hub, and every cluster is measured.

The members (:mod:`members`), what a run has in each cluster (:mod:`session`), the watches of all of them
(:mod:`listening`), the progress of each Job (:mod:`dispatching`), and what a timeline does to workers
(:mod:`outages`), for which a proxy cuts the hub off (:mod:`proxy`).
"""
