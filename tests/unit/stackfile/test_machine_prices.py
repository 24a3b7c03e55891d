"""The prices that a cluster's Prometheus is given."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import yaml

from kumulus.extras.watch import monitoring
from kumulus.runtimes.kwok import configuration
from kumulus.stackfile.kwok_options import machine_prices
from kumulus.stackfile.load import load


def group(name: str, zone: str, **fields: Any) -> dict[str, Any]:
    return {"name": name, "placement": [{"availabilityZone": zone, "replicas": 1}], **fields}


def test_each_kind_of_machine_has_its_price_once_and_what_has_none_is_left_out(tmp_path: Path) -> None:
    (tmp_path / "prices.yaml").write_text(yaml.safe_dump({"regions": {"*": {"onDemand": {"rack": 9.5}}}}))
    spot = {"metadata": {"labels": {"cloud.google.com/gke-spot": "true"}}}
    own = {"capacity": {"cpu": "8", "memory": "8Gi", "pods": "110"}}
    groups = [
        group("a", "us-central1-a", instanceType="e2-standard-4"),
        group("b", "us-central1-b", instanceType="e2-standard-4"),
        group("c", "us-central1-a", instanceType="e2-standard-4", nodeTemplate=spot),
        group("rack", "here", nodeTemplate=own),
        group("other", "here", nodeTemplate=own),
    ]
    scaler = {"name": "karpenter", "zones": ["us-central1-a"], "instanceTypes": ["e2-standard-8"]}
    loaded = load({"cluster": {"nodeGroups": groups, "autoscaler": scaler}, "prices": "prices.yaml"}, "dev", tmp_path)
    found = machine_prices(loaded)
    assert [(each["instanceType"], each["region"], each["capacityType"]) for each in found] == [
        ("e2-standard-4", "us-central1", "on-demand"),
        ("e2-standard-4", "us-central1", "spot"),
        ("e2-standard-8", "us-central1", "on-demand"),
        ("rack", "", "on-demand"),
    ]
    assert found[-1]["hourly"] == 9.5
    assert found[0]["hourly"] > found[1]["hourly"]


def test_other_prices_restart_prometheus_alone_and_are_told() -> None:
    price = {"instanceType": "x", "region": "", "capacityType": "on-demand", "hourly": 1.0}
    before = {"observability": {}, "prices": [price]}
    after = {"observability": {}, "prices": [{**price, "hourly": 2.0}]}
    then, now = configuration.parts(before), configuration.parts(after)
    assert {name for name in then if then[name] != now[name]} == {"prometheus"}
    assert configuration.fingerprint(before) != configuration.fingerprint(after)
    assert "with other prices of machines" in monitoring.repriced(before, after)[0]
    assert monitoring.repriced(before, before) == monitoring.repriced({}, after) == []
