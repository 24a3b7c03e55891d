"""Emulated clusters for agents: a server of the Model Context Protocol, on the official SDK (docs/agents.md).

Programs that reason ask it for clusters for tests, look into them, break nodes, and measure. Above everything else:
`kumulus.testing` has the clusters, `extras` what can be asked of them.
"""
