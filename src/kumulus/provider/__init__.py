"""The Pulumi provider plugin "kumulus": Cluster, NodePool, Fault and the other resources of ``resources.registry``.

``rpc`` adapts Pulumi's provider protocol, ``resources`` holds one file per resource (check, diff, create, read, update,
delete). The packages below do the work on a cluster. Only ``rpc``, ``values`` and ``engine`` know of gRPC.
"""
