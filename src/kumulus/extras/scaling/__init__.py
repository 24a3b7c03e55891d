"""Autoscalers of nodes, as local processes: how each is started, and what it needs in the cluster."""
