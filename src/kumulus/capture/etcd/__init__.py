"""Objects out of a snapshot of etcd, without an etcd: a file is read, and nothing else is.

    bolt.py       the file: pages and trees of bbolt, treated as hostile input
    snapshot.py   which objects are in it, as of its last revision

docs/decisions/etcd-snapshots.md says why it is done so.
"""
