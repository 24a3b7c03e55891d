"""Names that mark what belongs to a tenant in a cluster; plain Python, which the provider plugin imports."""

from __future__ import annotations

STACK_ANNOTATION = "kumulus.io/stack"
"""On objects that no other stack may take over: the owner, ``<organization>/<project>/<stack>``."""

TENANT_LABEL = "kumulus.io/tenant"
POD_SECURITY_LABEL = "pod-security.kubernetes.io/enforce"
"""Source: https://kubernetes.io/docs/concepts/security/pod-security-admission/."""

RUN_LABEL = "kumulus.io/experiment-run"
"""The run's id, on whatever an experiment's run makes in a cluster: anything without it belongs to somebody else."""
