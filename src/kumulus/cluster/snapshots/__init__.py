"""Snapshots of a cluster: the file of one, and what users have in a cluster saved and put back through its API.

A cluster of the runtime kwok is saved and restored in its etcd instead: see `kumulus.runtimes.kwok.snapshot`.
"""
