"""What KWOK is told: its stages for nodes and pods, and its metrics of nodes, as manifests.

Pure functions; nothing here meets a cluster.
"""
