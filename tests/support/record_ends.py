"""Record how pods end on a real kubelet, for the comparison with emulated ones.

    python -m tests.support.engine python -m tests.support.record_ends

Makes a kind cluster of the node image that `make kind-image` makes, takes a pod of each owner through each way of being
deleted (ends_of_pods.py), and writes tests/data/kubelet/ends-of-pods.json. Takes four minutes.
"""

import asyncio
import sys
import tempfile
from dataclasses import replace
from pathlib import Path

from kumulus.extras.kind_image import image
from kumulus.runtimes.base import RecordedControlPlane, WantedControlPlane
from kumulus.runtimes.kind.kind_config import EMPTY
from kumulus.runtimes.kind.runtime import KindRuntime
from kumulus.toolchain import pins
from tests.support import ends_of_pods
from tests.support.api import Api
from tests.support.ends_of_pods import CLASSES, GPU, NODES, OWNERS, PRIORITIES, WAYS, Place, Recording, fields
from tests.support.pods import PODS
from tests.support.said import Said

_LABEL = "kubelet"
_RUNS = {"image": "kumulus/hello:node", "imagePullPolicy": "Never"}
_COMPLETES = {"image": f"registry.k8s.io/kwok/kwok:v{pins.load().tool('kwok').version}", "args": ["--version"]}
_CONFIG = {**EMPTY, "nodes": [{"role": "control-plane"}, {"role": "worker", "labels": {"end": _LABEL}}]}
# Of a process that is the first of its container, the kernel keeps a SIGTERM that it does not handle.
_SPEC = {"shareProcessNamespace": True}


def main() -> None:
    """Make the cluster, record, and take it down."""
    runtime = KindRuntime()
    with tempfile.TemporaryDirectory() as home:
        wanted = WantedControlPlane(
            "kumulus-ends", "the tests", home, "", {"nodeImage": image.ensure().name, "kindConfig": _CONFIG}
        )
        observed = asyncio.run(runtime.create(wanted, Said(on_status=print), asyncio.Event()))
        try:
            found = _recording(Api(Path(observed.kubeconfig)))
        finally:
            asyncio.run(runtime.delete(RecordedControlPlane.of(wanted, observed), Said()))
    found.write()


def _recording(api: Api) -> Recording:
    place = Place(api, _LABEL, _RUNS, _SPEC)
    api.until("/api/v1/namespaces/default/serviceaccounts", lambda found: "default" in found)
    (node,) = api.until(
        NODES, lambda found: any(map(ends_of_pods.is_ready, found.values())), labelSelector=f"end={_LABEL}"
    ).values()
    path = f"{NODES}/{node['metadata']['name']}"
    api.merge(f"{path}/status", {"status": {"capacity": {GPU: "8"}}})
    api.until(NODES, lambda found: any(GPU in each["status"]["allocatable"] for each in found.values()))
    for name, value in PRIORITIES.items():
        api.create(CLASSES, {"metadata": {"name": name}, "value": value})
    info = node["status"]["nodeInfo"]
    made = Recording([], {}, {}, {key: info[key] for key in ("kubeletVersion", "containerRuntimeVersion")})
    for way, delete in WAYS.items():
        for owner in OWNERS:
            print(f"{way} of {owner}", file=sys.stderr, flush=True)
            pod = place.running(owner)
            version = api.version(PODS)
            made.note(f"running {owner}", pod)
            made.fields["running"] = sorted(fields(pod["status"]))
            delete(place, pod)
            seen = ends_of_pods.life_after(api, pod, version)
            if not ends_of_pods.is_removed_at_once(way, pod):
                made.note(f"{way} of {owner}", seen[-1])
            api.merge(path, {"spec": {"taints": None}})
            place.remove_all()
    pod = replace(place, container=_COMPLETES).completed()
    made.note("completed Job", pod)
    made.fields["completed"] = sorted(fields(pod["status"]))
    return made


if __name__ == "__main__":
    main()
