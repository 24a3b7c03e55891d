"""How what belongs to a tenant is marked and called in a cluster; plain Python, which the provider plugin imports."""

from __future__ import annotations

STACK_ANNOTATION = "kumulus.io/stack"
"""On what must not be taken over by another stack: ``<organization>/<project>/<stack>``, whose it is."""

TENANT_LABEL = "kumulus.io/tenant"
POD_SECURITY_LABEL = "pod-security.kubernetes.io/enforce"
"""Source: https://kubernetes.io/docs/concepts/security/pod-security-admission/."""

RUN_LABEL = "kumulus.io/experiment-run"
"""On whatever an experiment's run makes in a cluster, the run's id: what does not have it is somebody else's."""
