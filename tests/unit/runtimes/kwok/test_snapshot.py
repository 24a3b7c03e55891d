"""In which order a restore writes what it puts back."""

from __future__ import annotations

from kumulus.runtimes.kwok.snapshot import _order


def test_owners_are_put_back_before_what_they_own_and_pods_last() -> None:
    keys = [b"/registry/pods/a/p", b"/registry/replicasets/a/r", b"/registry/resourceslices/s", b"/registry/minions/n"]
    keys += [b"/registry/deployments/a/d", b"/registry/namespaces/a", b"/registry/jobs/a/j", b"/registry/cronjobs/a/c"]
    ordered = [key.split(b"/")[2].decode() for key in sorted(keys, key=_order)]
    assert ordered == [
        *("namespaces", "minions", "cronjobs", "deployments", "replicasets", "jobs", "resourceslices", "pods"),
    ]
