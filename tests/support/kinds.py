"""CustomResourceDefinitions made for a test, and removed after it."""

from collections.abc import Collection, Iterator
from contextlib import contextmanager
from typing import Any

from tests.support.api import Api, Object

CRDS = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
# A CRD that is deleted while the API server sets up its storage is tried again at growing intervals, with the condition
# "storage is (re)initializing", for up to some minutes: operator-framework/operator-controller#1437.
REMOVAL_S = 420.0
"""Seconds that the removal of a CRD may take."""


def crd(name: str, *fields: str, scope: str = "Cluster", **metadata: Any) -> Object:
    """The definition of a kind, by its plural name and group, with these string fields in its spec."""
    plural, _, group = name.partition(".")
    schema = {"type": "object", "properties": {field: {"type": "string"} for field in fields}}
    version = {
        "name": "v1",
        "served": True,
        "storage": True,
        "schema": {"openAPIV3Schema": {"type": "object", "properties": {"spec": schema}}},
    }
    return {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": name, **metadata},
        "spec": {
            "group": group,
            "scope": scope,
            "names": {"plural": plural, "singular": plural[:-1], "kind": plural[:-1].title()},
            "versions": [version],
        },
    }


def there(api: Api, names: Collection[str]) -> set[str]:
    """The names among these whose CRDs the cluster has."""
    return {each["name"] for each in api.metadata(CRDS)}.intersection(names)


@contextmanager
def without(api: Api, names: Collection[str]) -> Iterator[None]:
    """Wait until the cluster has none of these CRDs, and remove them afterwards."""
    # A test before this one may have failed while they were still being removed.
    until_gone(api, names)
    yield
    for name in there(api, names):
        api.delete(f"{CRDS}/{name}")
    until_gone(api, names)


def until_gone(api: Api, names: Collection[str]) -> None:
    """Wait until none of these CRDs is left."""
    api.until(CRDS, lambda found: not set(names).intersection(found), timeout=REMOVAL_S)
