"""What a change costs, as Pulumi's own output has it."""

from __future__ import annotations

from typing import Any

import pytest
import yaml

from tests.support.project import Project

pytestmark = pytest.mark.e2e


def cluster(replicas: int) -> dict[str, Any]:
    placement = [{"availabilityZone": "us-central1-a", "replicas": replicas}]
    return {"nodeGroups": [{"name": "g", "instanceType": "e2-standard-4", "placement": placement}]}


def test_a_preview_says_what_a_resize_costs_for_an_hour(project: Project) -> None:
    own = {"regions": {"us-central1": {"onDemand": {"e2-standard-4": 0.25}}}}
    (project.directory / "prices.yaml").write_text(yaml.safe_dump(own))
    project.write_stack(cluster(2), stack="dev", prices="prices.yaml")
    said = project.preview().text
    assert "+$0.50/h" in said, said
    project.up()
    project.write_stack(cluster(5), stack="dev", prices="prices.yaml")
    said = project.preview().text
    assert "+$0.75/h" in said, said
    project.destroy()
