"""``python -m kumulus.extras.loads.sharing SELECTIONS``, in a cluster's directory: loads shared out among ready pods.

How many containers share a load is written onto each pod that does (:data:`kumulus.kwok.usage.SHARERS`), where KWOK's
expressions find it.
"""

import asyncio
import json
import sys
from collections.abc import AsyncGenerator, Mapping, Sequence
from contextlib import aclosing
from pathlib import Path
from typing import Any

from kumulus.kube import Client, load_kubeconfig, objects
from kumulus.kube.bulk import for_each
from kumulus.kube.watch import Events, News, follow
from kumulus.kwok.usage import SHARERS, selects
from kumulus.model.lifecycles import PodSelection

_PODS = "/api/v1/pods"
_WORKERS = 8
# metrics-server reads every 15 s: a pass for each of a hundred pods that become ready would change nothing.
_PAUSE = 2.0

Pod = Mapping[str, Any]


def wanted(pods: Mapping[str, Pod]) -> dict[str, str | None]:
    """For each pod whose annotation has to be changed, by its key: the annotation's value, None for none."""
    sharing = {key for key, pod in pods.items() if _is_ready(pod)}
    count = str(sum(len(pods[key]["spec"]["containers"]) for key in sharing))
    values = {key: count if key in sharing else None for key in pods}
    written = {key: (pod["metadata"].get("annotations") or {}).get(SHARERS) for key, pod in pods.items()}
    return {key: value for key, value in values.items() if written[key] != value}


def _is_ready(pod: Pod) -> bool:
    running = (pod.get("status") or {}).get("phase") == "Running" and "deletionTimestamp" not in pod["metadata"]
    return running and objects.holds(pod, "Ready")


class Load:
    """One load, and the pods that it is for."""

    def __init__(self, client: Client, earlier: Sequence[PodSelection], selection: PodSelection) -> None:
        self._client = client
        self._earlier = earlier
        self._selection = selection
        self._changed = asyncio.Event()
        self.pods: dict[str, Pod] = {}

    async def keep(self) -> None:
        """Share it out until cancelled."""
        async with asyncio.TaskGroup() as tasks:
            tasks.create_task(self._follow())
            tasks.create_task(self._share())

    async def _follow(self) -> None:
        labels = ",".join(f"{key}={value}" for key, value in self._selection.labels.items())
        selector = {"labelSelector": labels} if labels else {}
        pods: AsyncGenerator[News[dict[str, Any]], None] = follow(self._client, _PODS, selector)
        async with aclosing(pods) as news:
            async for each in news:
                for event in each.events if isinstance(each, Events) else ():
                    self._happened(event.key, event.item if event.kind != "DELETED" else None)

    def _happened(self, key: str, pod: Pod | None) -> None:
        self.pods.pop(key, None)
        if pod and selects(self._selection, pod) and not any(selects(each, pod) for each in self._earlier):
            self.pods[key] = pod
        self._changed.set()

    async def _share(self) -> None:
        while True:
            await self._changed.wait()
            self._changed.clear()
            values = wanted(self.pods)

            async def annotate(key: str, values: Mapping[str, str | None] = values) -> None:
                namespace, _, name = key.partition("/")
                # Of this pod only: one of the same name may have followed it.
                uid = self.pods[key]["metadata"]["uid"] if key in self.pods else ""
                change = {"metadata": {"uid": uid, "annotations": {SHARERS: values[key]}}}
                await self._client.merge_patch(f"/api/v1/namespaces/{namespace}/pods/{name}", change)

            if not (await for_each(values, annotate, workers=_WORKERS, most_failures=len(values) + 1)).complete:
                # A pod that has gone meanwhile is heard of; otherwise the API server is down.
                self._changed.set()
            await asyncio.sleep(_PAUSE)


async def _keep(usages: Sequence[Mapping[str, Any]], kubeconfig: Path) -> None:
    selections = [PodSelection(each["labels"], tuple(each["namespaces"]), tuple(each["ownerKinds"])) for each in usages]
    async with Client(load_kubeconfig(kubeconfig)) as client, asyncio.TaskGroup() as tasks:
        for index, each in enumerate(usages):
            if each["shared"]:
                tasks.create_task(Load(client, selections[:index], selections[index]).keep())


if __name__ == "__main__":
    asyncio.run(_keep(json.loads(sys.argv[1]), Path("kubeconfig.yaml").absolute()))
