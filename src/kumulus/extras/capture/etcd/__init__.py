"""Reads objects from a snapshot of etcd, without running etcd: only the file is read.

    bolt.py       the file: pages and trees of bbolt, treated as hostile input
    snapshot.py   which objects are in it, as of its last revision

docs/decisions/etcd-snapshots.md says why it is done this way.
"""
