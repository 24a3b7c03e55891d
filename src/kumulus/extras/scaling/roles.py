"""An autoscaler's permissions in the cluster."""

from collections.abc import Collection, Mapping

from kumulus.extras.scaling.descriptor import Manifest

READ = ("get", "list", "watch")
Rule = tuple[str, Collection[str], Collection[str]]
"""An API group, its resources, and what may be done with them."""
_GROUP = "rbac.authorization.k8s.io"


def user(name: str) -> dict[str, str]:
    """A user of the API server, as the subject of a binding."""
    return {"kind": "User", "apiGroup": _GROUP, "name": name}


def granted(name: str, rules: Collection[Rule], subject: Mapping[str, str]) -> list[Manifest]:
    """A ClusterRole, and its binding to a subject.

    Args:
        subject: to whom, as in a ClusterRoleBinding.
    """
    plain = [{"apiGroups": [group], "resources": list(kinds), "verbs": list(verbs)} for group, kinds, verbs in rules]
    role = {"apiVersion": f"{_GROUP}/v1", "kind": "ClusterRole", "metadata": {"name": name}, "rules": plain}
    binding = {
        "apiVersion": f"{_GROUP}/v1",
        "kind": "ClusterRoleBinding",
        "metadata": {"name": name},
        "roleRef": {"apiGroup": _GROUP, "kind": "ClusterRole", "name": name},
        "subjects": [dict(subject)],
    }
    return [role, binding]
