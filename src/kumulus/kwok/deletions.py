"""A policy by which a kwok-controller deletes only what is being deleted.

KWOK 0.8.0 deletes pods and nodes by name, without a UID (pkg/kwok/controllers, deleteResource). A pod that was made
under the name of a deleted one, as those of StatefulSets and of training jobs are, would be deleted too.
"""

from __future__ import annotations

import json
from typing import Any

from kumulus.model.interruptions import RECLAIM_ANNOTATION

API_VERSION = "admissionregistration.k8s.io/v1"
POLICY, BINDING = "ValidatingAdmissionPolicy", "ValidatingAdmissionPolicyBinding"
# Of nodes, KWOK itself ends those whose machine is reclaimed (kumulus.kwok.base_stages.node_reclaimed).
_ALLOWED = (
    "has(oldObject.metadata.deletionTimestamp) || (has(oldObject.metadata.annotations) && "
    f"{json.dumps(RECLAIM_ANNOTATION)} in oldObject.metadata.annotations)"
)


def manifests(name: str, user: str) -> list[dict[str, Any]]:
    """The policy, and its binding.

    Args:
        name: of both.
        user: as whom the kwok-controller asks the API server.
    """
    rule = {"apiGroups": [""], "apiVersions": ["v1"], "operations": ["DELETE"], "resources": ["pods", "nodes"]}
    policy = {
        "failurePolicy": "Fail",
        "matchConstraints": {"resourceRules": [rule]},
        "matchConditions": [
            {"name": "by-kwok-controller", "expression": f"request.userInfo.username == {json.dumps(user)}"}
        ],
        "validations": [
            {"expression": _ALLOWED, "message": "nobody has deleted this: KWOK means one of that name before"}
        ],
    }
    return [
        {"apiVersion": API_VERSION, "kind": kind, "metadata": {"name": name}, "spec": spec}
        for kind, spec in ((POLICY, policy), (BINDING, {"policyName": name, "validationActions": ["Deny"]}))
    ]
