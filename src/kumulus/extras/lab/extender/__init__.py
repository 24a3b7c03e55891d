"""A policy in Python alongside a real kube-scheduler: an extender that a run serves, asked before each binding.

kube-scheduler filters as usual, sends the pod and the names of the remaining nodes, and gets back the node that the
policy chose, or those that it finds equally good. kube-scheduler itself binds the pod. The policy decides what
kube-scheduler does not know: which GPU of a node a pod has, and how much of it.

Source of the protocol: k8s.io/kube-scheduler/extender/v1, `ExtenderArgs` and `ExtenderFilterResult`.
"""
