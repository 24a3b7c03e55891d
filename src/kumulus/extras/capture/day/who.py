"""Who made a request: a user, a controller that would do so again, a scheduler, or a node.

Kubernetes' own components are recognized by their user names, or, if all have the same one, as under kwokctl, by the
program's name in the user agent. Source: k8s.io/kubernetes cmd/kube-controller-manager,
plugin/pkg/auth/authorizer/rbac.
"""

from __future__ import annotations

from kumulus.extras.capture.day.requests import Request

_CONTROL = "kube-controller-manager"
_ACCOUNT = "system:serviceaccount:kube-system:"
# Controllers that delete pods because of the state of their nodes, or because the pods have ended.
_FOLLOWING = ("taint-eviction-controller", "pod-garbage-collector", "node-controller", "node-lifecycle-controller")
_SCHEDULERS = ("kube-scheduler", "volcano", "vc-scheduler", "yunikorn", "kai-scheduler", "koord-scheduler")
_NODES = ("kubelet", "kwok")


def by_control(request: Request) -> bool:
    """Whether one of Kubernetes' own controllers made the request."""
    return (
        _CONTROL in request.user
        or (request.user.startswith(_ACCOUNT) and request.user.endswith("-controller"))
        or request.user == f"{_ACCOUNT}generic-garbage-collector"
        or request.program.startswith(_CONTROL)
    )


def by_scheduler(request: Request) -> bool:
    """Whether a scheduler made the request: its deletions are preemptions."""
    user = request.user.rpartition(":")[2]
    return any(user.startswith(each) or request.program.startswith(each) for each in _SCHEDULERS)


def followed(request: Request) -> bool:
    """Whether the request followed from the state of the pod or its node: from a node or a controller for nodes."""
    if request.user.startswith("system:node:") or request.program.startswith(_NODES):
        return True
    return any(request.user.endswith(each) or request.program.endswith(each) for each in _FOLLOWING)
