"""The audit policy for a log that has what a replay needs, and little else."""

from __future__ import annotations

POLICY = """\
# What a replay needs of an API server's audit log: kube-apiserver --audit-policy-file, --audit-log-path.
apiVersion: audit.k8s.io/v1
kind: Policy
omitStages: [RequestReceived, ResponseStarted]
omitManagedFields: true
rules:
  - level: None
    verbs: [get, list, watch]
  # When pods got a node, ran and ended.
  - level: Request
    verbs: [create, update, patch]
    resources:
      - {group: "", resources: [pods/binding, pods/status, pods/eviction]}
  - level: None
    resources:
      - {group: "", resources: [nodes/status, "*/status"]}
      - {group: apps, resources: ["*/status"]}
      - {group: batch, resources: ["*/status"]}
  # What was asked for, as the server took it; of nodes their cordons.
  - level: RequestResponse
    verbs: [create, update, patch]
    resources:
      - {group: "", resources: [pods, nodes, namespaces, resourcequotas, limitranges]}
      - {group: apps}
      - {group: batch}
      - {group: policy}
      - {group: scheduling.k8s.io}
      - {group: kueue.x-k8s.io}
      - {group: scheduling.volcano.sh}
  - level: Metadata
    verbs: [delete, deletecollection]
    resources:
      - {group: "", resources: [pods, nodes, namespaces, resourcequotas, limitranges]}
      - {group: apps}
      - {group: batch}
      - {group: policy}
  - level: Metadata
    verbs: [create]
    resources:
      - {group: autoscaling}
      - {group: "", resources: [persistentvolumeclaims]}
      - {group: resource.k8s.io, resources: [resourceclaimtemplates]}
  - level: None
"""
