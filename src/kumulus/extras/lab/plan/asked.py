"""The users of a plan's jobs, and what the jobs' pods ask for."""

from __future__ import annotations

from kumulus.extras.lab.extender.reading import pod_of
from kumulus.extras.lab.file.load import Loaded
from kumulus.extras.lab.file.model import Experiment
from kumulus.extras.lab.plan.plan import Plan
from kumulus.extras.lab.plan.recorded import USER_LABEL
from kumulus.extras.lab.plan.stream import pods_recorded
from kumulus.extras.lab.policies import Pod
from kumulus.model.claims import Demand, demands
from kumulus.model.manifests import expected_pods, pod_templates


def pods_planned(plan: Plan, product_label: str) -> list[Pod]:
    """What the pods of a plan ask for, with an entry for each pod, named after its job.

    Args:
        plan: what is created.
        product_label: the node label that says which GPUs a node has.
    """
    found: list[Pod] = []
    known = claims_planned(plan)
    for job in plan.jobs:
        for each in job.objects:
            templates = list(pod_templates(each))
            for template in templates:
                pod = pod_of(job.name, template["spec"], product_label, known)
                found += [pod] * max(1, expected_pods(each) // len(templates))
    return found


def pods_typical(loaded: Loaded, plan: Plan) -> list[Pod]:
    """The pods to be expected, with an entry for each: those of the traces, or of the plan if there is no trace."""
    return pods_recorded(loaded) or pods_planned(plan, loaded.experiment.productLabel)


def claims_planned(plan: Plan) -> dict[str, Demand]:
    """What each ResourceClaimTemplate of a plan's setup and its jobs' manifests asks for, by its name."""
    return demands([*plan.setup, *(each for job in plan.jobs for each in job.objects)])


def users_planned(plan: Plan, experiment: Experiment) -> dict[str, str]:
    """The user of each job that has one: the trace's, else the queue of its workload or of the recording."""
    queues = {each.name: each.queue for each in experiment.workloads}
    recorded = {job: queue for replay in plan.replays.values() for job, queue in replay.queues.items()}
    found = {}
    for job in plan.jobs:
        labels = [template.get("metadata", {}).get("labels") or {} for template in pod_templates(list(job.objects))]
        named = next((each[USER_LABEL] for each in labels if USER_LABEL in each), "")
        if user := named or recorded.get(job.name, "") or queues.get(job.workload, ""):
            found[job.name] = user
    return found
