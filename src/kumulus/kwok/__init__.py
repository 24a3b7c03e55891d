"""KWOK's manifests: stages of nodes, lifecycles and faults, pods' statuses and usage, its controllers.

Pure functions from the model to manifests; nothing here contacts a cluster or reads a file. KWOK documents its stages
at https://kwok.sigs.k8s.io/docs/user/stages-configuration/; comments say where its code is the source.
"""
