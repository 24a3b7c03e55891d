"""A team trains on a cluster that another team runs, with a namespace, a quota and a kubeconfig of its own."""

import pulumi
import pulumi_kubernetes as kubernetes

config = pulumi.Config()
platform = pulumi.StackReference(config.require("platform"))
tenant = config.require("tenant")
gpus = config.require_int("gpus")

# A secret there is a secret here: the kubeconfig is encrypted in this stack's state too.
team = platform.require_output("tenants").apply(lambda tenants: tenants[tenant])
cluster = kubernetes.Provider("platform", kubeconfig=team.apply(lambda each: each["kubeconfig"]))

GPU = "nvidia.com/gpu"
training = kubernetes.batch.v1.Job(
    "training",
    # In the kubeconfig's own namespace: more is not allowed. Without a name of its own, as another size is another Job.
    metadata={"annotations": {"pulumi.com/skipAwait": "true"}},
    spec={
        "parallelism": gpus // 8,
        "completions": gpus // 8,
        "template": {
            "metadata": {"annotations": {"pod-complete.stage.kwok.x-k8s.io/delay": "10m"}},
            "spec": {
                "restartPolicy": "Never",
                "tolerations": [{"key": "kwok.x-k8s.io/node", "operator": "Exists"}],
                "containers": [{"name": "main", "image": "train", "resources": {"limits": {GPU: 8}}}],
            },
        },
    },
    opts=pulumi.ResourceOptions(provider=cluster),
)
pulumi.export("job", training.metadata["name"])
