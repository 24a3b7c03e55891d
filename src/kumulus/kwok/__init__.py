"""What KWOK is given, as manifests: stages of nodes, lifecycles and faults, pods' statuses and usage, its controllers.

Pure functions from the model to manifests; nothing here meets a cluster or reads a file. KWOK documents its stages at
https://kwok.sigs.k8s.io/docs/user/stages-configuration/; what was read in its code is said where it matters.
"""
