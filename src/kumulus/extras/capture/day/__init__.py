"""A cluster's recorded day: from an audit log, repeated captures or KWOK's recording to what was requested, and when.

    requests.py   one request that changed something, from any kind of recording
    exports.py    the formats of audit logs: lines, batches, exports of EKS, GKE and AKS
    kwok.py       the format of `kwokctl snapshot record`
    series.py     requests from the differences between successive captures
    reading.py    files and lines, bounded; bad entries are counted, with their lines
    kept.py       what is kept of a workload: what schedulers read of it, and nothing else
    intent.py     from requests to steps: what users asked for, without objects that controllers create again
    pods.py       what happened to the recorded pods, for comparison with a replay
    importing.py  the resulting files

Used by `kumulus replay import`; the lab replays it (kumulus.extras.lab.file.workload). docs/your-cluster.md says
what it is for.
"""
