"""What is said before a shared cluster is taken down."""

from __future__ import annotations

from pathlib import Path

from kumulus.cli.beforehand import require_no_tenants, tenants_refusal


def test_what_the_teams_have_is_named_with_both_ways_on() -> None:
    said = tenants_refusal("platform", {"research": [f"Job j{n}" for n in range(5)], "search": ["Service web"]})
    assert said.splitlines() == [
        "platform is shared, and other stacks have something in it: their own destroy needs this cluster",
        "  research: Job j0, Job j1, Job j2 and 2 more",
        "  search: Service web",
        "  First, in each team's project: pulumi destroy",
        "  To take platform down all the same: add --with-tenants; the teams then write",
        "  PULUMI_K8S_DELETE_UNREACHABLE=true pulumi destroy",
    ]


def test_a_cluster_that_cannot_be_asked_keeps_nobody_from_taking_it_down(tmp_path: Path) -> None:
    require_no_tenants("platform", tmp_path / "nowhere.yaml")
