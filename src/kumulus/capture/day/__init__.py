"""A cluster's recorded day: from an audit log, repeated captures or KWOK's recording to what was wanted, and when.

    requests.py   one request that changed something, whatever recorded it
    exports.py    the forms in which audit logs come: lines, batches, exports of EKS, GKE and AKS
    kwok.py       what `kwokctl snapshot record` writes
    series.py     captures, one after the other, by what differs between them
    reading.py    files and lines, bounded; what is bad is counted by line
    kept.py       what is kept of a workload: what schedulers read of it, and nothing else
    intent.py     from requests to steps: what users asked for, without what controllers make of it again
    pods.py       what became of the pods then, to set a replay beside it
    importing.py  the files that come of it

Used by `kumulus replay import`; the lab plays it (kumulus.lab.file.replay). docs/your-cluster.md says what it is for.
"""
