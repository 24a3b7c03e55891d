"""Snapshots of a cluster: their files, and how users' objects are saved and restored through its API.

A cluster of the runtime kwok is saved and restored in its etcd instead: see `kumulus.extras.snapshots.kwok`.
"""
