"""Workloads for the plugin Coscheduling: a PodGroup of scheduling.x-k8s.io for a gang; there are no queues.

Source: scheduler-plugins.sigs.k8s.io/docs/plugins/coscheduling.
"""

from kumulus.extras.schedulers import templates
from kumulus.extras.schedulers.templates import Manifest

SCHEDULER_NAME = "coscheduling"
_GROUP = "scheduling.x-k8s.io/pod-group"


def gang(members: list[Manifest], name: str, minimum: int, queue: str) -> list[Manifest]:
    """See :func:`kumulus.extras.schedulers.workloads.gang`."""
    templates.require_together(members, name, minimum)
    group = {
        "apiVersion": "scheduling.x-k8s.io/v1alpha1",
        "kind": "PodGroup",
        "metadata": {"name": name, "namespace": templates.namespace(members[0])},
        # Without minResources, as in the plugin's own examples: it would compare them with the free resources of all
        # nodes together, including nodes that the gang's pods cannot use.
        "spec": {"minMember": minimum},
    }
    for member in members:
        for template, _ in templates.templates(member):
            templates.annotate(template, labels={_GROUP: name})
    templates.assign(members, SCHEDULER_NAME)
    return [group, *members]
