"""Who made a request: a user, a controller that would do so again, a scheduler, or a node.

Users' names are those of Kubernetes' own components; where all of them have the same, as under kwokctl, the program's
name in the user agent tells. Source: k8s.io/kubernetes cmd/kube-controller-manager, plugin/pkg/auth/authorizer/rbac.
"""

from __future__ import annotations

from kumulus.capture.day.requests import Request

_CONTROL = "kube-controller-manager"
_ACCOUNT = "system:serviceaccount:kube-system:"
# Those that delete pods because of what became of their nodes, or because they have ended.
_FOLLOWING = ("taint-eviction-controller", "pod-garbage-collector", "node-controller", "node-lifecycle-controller")
_SCHEDULERS = ("kube-scheduler", "volcano", "vc-scheduler", "yunikorn", "kai-scheduler", "koord-scheduler")
_NODES = ("kubelet", "kwok")


def by_control(request: Request) -> bool:
    """Whether a controller of Kubernetes' own made it."""
    return (
        _CONTROL in request.user
        or (request.user.startswith(_ACCOUNT) and request.user.endswith("-controller"))
        or request.user == f"{_ACCOUNT}generic-garbage-collector"
        or request.program.startswith(_CONTROL)
    )


def by_scheduler(request: Request) -> bool:
    """Whether a scheduler made it: its deletions are preemptions."""
    user = request.user.rpartition(":")[2]
    return any(user.startswith(each) or request.program.startswith(each) for each in _SCHEDULERS)


def followed(request: Request) -> bool:
    """Whether it followed from what became of the pod or its node: by the node, or by who looks after nodes."""
    if request.user.startswith("system:node:") or request.program.startswith(_NODES):
        return True
    return any(request.user.endswith(each) or request.program.endswith(each) for each in _FOLLOWING)
