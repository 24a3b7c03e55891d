"""The Pulumi provider plugin "kumulus": the resources Cluster and NodePool.

``rpc`` adapts Pulumi's provider protocol, ``resources`` holds one file per resource (check, diff, create, read,
update, delete), ``pools`` knows how a pool's nodes are observed and made to converge, ``runtimes`` how a control
plane is had. Only ``rpc``, ``values`` and ``engine`` know of gRPC.
"""

VERSION = "0.1.0"
