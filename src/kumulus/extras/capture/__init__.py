"""A user's own cluster as files: what a scheduler sees of it, and a clone of it.

    kinds.py, grammar.py, fields.py  what is read, and what is kept of each kind; reducing and renaming follow from it
    live.py, dumps.py, snapshot.py   reading a cluster, untrusted YAML and JSON, a snapshot of etcd
    writing.py, putting.py           the files of a capture, and creating their objects in a clone
    following.py                     keeping a clone up to date
    probe.py, dry.py, fit.py         whether a workload fits, and which change would make all of its pods fit
    day/                             a recorded day of a cluster

Used by `kumulus capture`, `clone`, `fit` and `translate`; docs/your-cluster.md says what they are for.
"""
