"""Pods that are processes: the node `local` of the runtime kwok, whose pods really run.

The kubelet (:mod:`kubelet`) follows the node's pods and runs each (:mod:`running`) in namespaces of its own
(:mod:`sandbox` inside, :mod:`outside` as the kubelet has it). The API server reaches them through :mod:`egress`. What a
control plane needs for it is in :mod:`addition`; why it is so in docs/decisions/pods-as-processes.md.
"""
