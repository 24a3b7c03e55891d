"""Kueue beside a cluster, and clusters that work as one through it (MultiKueue).

What its manifests become where it is a local process (:mod:`manifests`), its configuration as a part of a control plane
(:mod:`component`), the objects that make a hub and its workers (:mod:`federation`), and these compared with what is
there and made so (:mod:`declared`). How an experiment starts one for itself is in :mod:`kumulus.schedulers.kueue`.
"""
