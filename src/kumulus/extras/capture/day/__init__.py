"""A cluster's recorded day: from an audit log, repeated captures or KWOK's recording to what was requested, and when.

Used by `kumulus replay import`; the lab replays it (kumulus.extras.lab.file.workload). docs/your-cluster.md says
what it is for.
"""
