"""Kueue for a cluster, and clusters that work as one through it (MultiKueue).

What a stack file says of it is in :mod:`section`, what Pulumi declares of that in :mod:`joined`. How its manifests are
adapted where it is a local process (:mod:`manifests`), its configuration as a component of a control plane
(:mod:`component`), the objects that make a hub and its workers (:mod:`federation`), and how these are compared with the
cluster's and applied (:mod:`declared`). How an experiment starts its own Kueue is in
:mod:`kumulus.extras.schedulers.kueue`.
"""
