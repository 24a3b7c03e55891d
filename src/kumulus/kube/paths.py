"""Paths in the API of what a manifest describes."""

from collections.abc import Mapping
from typing import Any


def root(api_version: str) -> str:
    """The path of a version of an API group: `/apis/batch/v1`, `/api/v1`."""
    return f"/apis/{api_version}" if "/" in api_version else f"/api/{api_version}"


def inside(namespace: str | None) -> str:
    """The part of a path that says in which namespace an object is; empty for one in none."""
    return f"/namespaces/{namespace}" if namespace else ""


def collection(manifest: Mapping[str, Any]) -> str:
    """The collection of an object, `/apis/batch/v1/namespaces/default/jobs`, if the plural of its kind is regular."""
    kind = manifest["kind"].lower()
    return f"{root(manifest['apiVersion'])}{inside(manifest['metadata'].get('namespace'))}/{_plural(kind)}"


def _plural(kind: str) -> str:
    if kind.endswith("y") and kind[-2] not in "aeiou":
        return f"{kind[:-1]}ies"
    return f"{kind}es" if kind.endswith("s") else f"{kind}s"


def address(manifest: Mapping[str, Any]) -> str:
    """The path of an object, if the plural of its kind is regular."""
    return f"{collection(manifest)}/{manifest['metadata']['name']}"
