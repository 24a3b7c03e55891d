"""What pods say of the health of their devices, as a kubelet writes it."""

from typing import Any

from kumulus.nodes.faults.devices import _of_claim, _statuses

HEALTH = {("gpu.nvidia.com", "n-0", "gpu-1"): "Unhealthy", ("gpu.nvidia.com", "n-0", "gpu-0"): "Healthy"}


def result(device: str, pool: str = "n-0", request: str = "gpu") -> dict[str, str]:
    return {"driver": "gpu.nvidia.com", "pool": pool, "device": device, "request": request}


def claim(*results: dict[str, str]) -> dict[str, Any]:
    return {"status": {"allocation": {"devices": {"results": list(results)}}}}


def test_of_a_claim_only_devices_of_a_struck_node_are_told_and_parts_of_a_gpu_are_as_it_is() -> None:
    found = _of_claim(claim(result("gpu-1-mig-1g10gb-19-0"), result("gpu-1", "n-1"), result("gpu-0")), HEALTH)
    assert [(each["resourceID"], each["health"]) for each in found] == [
        ("gpu.nvidia.com/n-0/gpu-1-mig-1g10gb-19-0", "Unhealthy"),
        ("gpu.nvidia.com/n-0/gpu-0", "Healthy"),
    ]
    assert _of_claim({}, HEALTH) == _of_claim({"status": {}}, HEALTH) == []


def test_a_container_is_told_of_the_claims_and_requests_that_it_names() -> None:
    claims = {
        ("here", "p-gpus-1"): _of_claim(
            claim(result("gpu-1", request="large/one"), result("gpu-0", request="small")), HEALTH
        )
    }
    containers = [
        {"name": "all", "resources": {"claims": [{"name": "gpus"}]}},
        {"name": "large", "resources": {"claims": [{"name": "gpus", "request": "large"}]}},
        {"name": "none"},
        {"name": "unborn", "resources": {"claims": [{"name": "gpus"}]}},
    ]
    pod = {
        "metadata": {"name": "p", "namespace": "here"},
        "spec": {"containers": containers, "resourceClaims": [{"name": "gpus", "resourceClaimTemplateName": "t"}]},
        "status": {
            "resourceClaimStatuses": [{"name": "gpus", "resourceClaimName": "p-gpus-1"}],
            "containerStatuses": [{"name": name} for name in ("all", "large", "none")],
        },
    }
    told = {each["name"]: each["allocatedResourcesStatus"] for each in _statuses(pod, claims)}
    assert [each["name"] for each in told["large"]] == ["claim:gpus/large"]
    assert [each["health"] for each in told["large"][0]["resources"]] == ["Unhealthy"]
    assert [each["health"] for each in told["all"][0]["resources"]] == ["Unhealthy", "Healthy"]
    assert set(told) == {"all", "large"}
    assert _statuses({**pod, "metadata": {"name": "p", "namespace": "there"}}, claims) == []
