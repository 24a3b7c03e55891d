"""A policy in Python beside a real kube-scheduler: an extender that a run serves, asked before each binding.

kube-scheduler filters as ever, sends the pod and the names of the nodes that are left, and gets back the one that the
policy chose, or those that it thinks equally good. It binds by itself. The policy's part is what kube-scheduler does
not know: which GPU of a node a pod has, and how much of it.

Source of the protocol: k8s.io/kube-scheduler/extender/v1, `ExtenderArgs` and `ExtenderFilterResult`.
"""
