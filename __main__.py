"""The Pulumi program: load the stack's spec, declare the cluster, export its outputs."""

from pathlib import Path

import pulumi
from pulumi.runtime.config import get_config_env, get_config_secret_keys_env

from components.engine import end_with_engine, start_plugin, told

if __name__ == "__main__":
    end_with_engine()
    start_plugin()

# Meanwhile the plugin starts.
from components.emulated_cluster import EmulatedCluster
from spec.errors import SpecError
from spec.load import load
from spec.secrets import read_secrets

BASE = Path(__file__).resolve().parent
# Every key of the namespace, so that a misspelt one is told instead of ignored.
config = {key: value for key, value in get_config_env().items() if key.startswith("kumulus:")}
stack, key = pulumi.get_stack(), "kumulus:cluster"
secrets = read_secrets(BASE / "stacks" / f"Pulumi.{stack}.yaml", key) if key in get_config_secret_keys_env() else None
try:
    loaded = load(config, stack=stack, base=BASE, secrets=secrets)
except SpecError as error:
    raise told(str(error)) from None
for notice in loaded.notices:
    pulumi.log.warn(str(notice))

emulated = EmulatedCluster(loaded.cluster_name, loaded=loaded, base=BASE)
pulumi.export("kubeconfig", emulated.kubeconfig)
if emulated.prometheus:
    pulumi.export("prometheus", emulated.prometheus)
pulumi.export("clusterName", emulated.cluster_name)
pulumi.export("nodeCount", emulated.node_count)
pulumi.export("capacity", emulated.capacity)
if emulated.gpu_products:
    pulumi.export("gpuProducts", emulated.gpu_products)
pulumi.export("nodeGroups", emulated.node_groups)
if emulated.tenants:
    pulumi.export(
        "tenants",
        {name: {"namespace": it.namespace, "kubeconfig": it.kubeconfig} for name, it in emulated.tenants.items()},
    )
