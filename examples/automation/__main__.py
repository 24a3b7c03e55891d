"""A cluster of 100 nodes, an experiment on it, and the end of both: one Python program, by Pulumi's Automation API."""

import os
from pathlib import Path
from typing import Any

import pulumi
from pulumi import automation

from kumulus import Experiment, KwokCluster, KwokNodeGroup

HERE = Path(__file__).resolve().parent
CAPACITY = {"cpu": 96, "memory": "1360Gi", "pods": 110, "nvidia.com/gpu": 8}
EXPERIMENT: dict[str, Any] = {
    "name": "automation",
    "workloads": [{"name": "training", "jobs": 50, "workers": 2, "requests": {"nvidia.com/gpu": 8}}],
    "expect": [{"measure": "pods.pending", "equals": 0}],
}


def fleet() -> None:
    """The stack's program, a function of this one."""
    cluster = KwokCluster("automation")
    KwokNodeGroup("a100", cluster=cluster, zones={"use1": 50, "use2": 50}, capacity=CAPACITY)
    pulumi.export("kubeconfig", cluster.kubeconfig)


def main() -> None:
    """Bring the cluster up, run the experiment, and take the cluster down, whatever comes of the experiment."""
    options = automation.LocalWorkspaceOptions(
        work_dir=str(HERE), env_vars={"PULUMI_CONFIG_PASSPHRASE": os.environ.get("PULUMI_CONFIG_PASSPHRASE", "")}
    )
    stack = automation.create_or_select_stack("lab", project_name="automation", program=fleet, opts=options)
    try:
        kubeconfig = stack.up(on_output=print).outputs["kubeconfig"].value
        report = Experiment(EXPERIMENT).run(kubeconfig, results=HERE / ".kumulus" / "experiments", say=print)
        print(f"the experiment: {report['results']['status']}")
    finally:
        stack.destroy(on_output=print)
        stack.workspace.remove_stack("lab")
        print("the stack is removed as well")


if __name__ == "__main__":
    main()
