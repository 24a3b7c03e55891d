"""Whether a cluster has Kubernetes' own API for workloads switched on, for groups and for Jobs."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from kumulus.extras.schedulers.errors import SchedulerError
from kumulus.extras.schedulers.native.workloads import VERSION, bind, disrupt, gang
from kumulus.kube.errors import tolerating

if TYPE_CHECKING:
    from kumulus.kube import Client

_ASKED = "kumulus-asks"
_REMEDY = "Write kwok: {workloads: native} in the stack file, with Kubernetes 1.37 or later"


async def require(client: Client) -> None:
    """See :attr:`kumulus.extras.schedulers.descriptor.Scheduler.require`.

    Raises:
        SchedulerError: it is not, or not all of it.
    """
    served: dict[str, Any] = {}
    with tolerating(404):
        served = await client.get(f"/apis/{VERSION}")
    if not any(each["name"] == "podgroups" for each in served.get("resources", ())):
        raise SchedulerError(f"native: the cluster does not serve {VERSION}\n  {_REMEDY}")
    template = {"spec": {"restartPolicy": "Never", "containers": [{"name": "c", "image": "none"}]}}
    job = {
        "apiVersion": "batch/v1",
        "kind": "Job",
        "metadata": {"name": _ASKED},
        "spec": {"template": template},
    }
    asked = gang([job], _ASKED, 1, "")
    bind(asked, "kubernetes.io/hostname")
    disrupt(asked, "all")
    # An API server drops fields whose feature gate is off, without a word.
    answer = await client.request(
        "POST", "/apis/batch/v1/namespaces/default/jobs", params={"dryRun": "All"}, body=asked[0]
    )
    wanted, found = asked[0]["spec"]["scheduling"], answer["spec"].get("scheduling") or {}
    if dropped := [field for field in wanted if field not in found]:
        raise SchedulerError(f"native: the cluster drops {', '.join(dropped)} of a Job's scheduling\n  {_REMEDY}")
