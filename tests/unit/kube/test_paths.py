"""Where the API has the objects of manifests."""

from __future__ import annotations

import pytest

from kumulus.kube.paths import address


@pytest.mark.parametrize(
    ("version", "kind", "namespace", "path"),
    [
        ("v1", "Namespace", None, "/api/v1/namespaces/a"),
        ("v1", "Secret", "kueue-system", "/api/v1/namespaces/kueue-system/secrets/a"),
        ("batch/v1", "Job", "default", "/apis/batch/v1/namespaces/default/jobs/a"),
        ("karpenter.kwok.sh/v1alpha1", "KWOKNodeClass", None, "/apis/karpenter.kwok.sh/v1alpha1/kwoknodeclasses/a"),
    ],
)
def test_an_object_is_in_the_collection_of_its_kind(version: str, kind: str, namespace: str | None, path: str) -> None:
    metadata = {"name": "a", **({"namespace": namespace} if namespace else {})}
    assert address({"apiVersion": version, "kind": kind, "metadata": metadata}) == path
