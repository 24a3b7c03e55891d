"""The media types of the Kubernetes API's bodies."""

JSON = "application/json"
MERGE_PATCH = "application/merge-patch+json"
PROTOBUF = "application/vnd.kubernetes.protobuf"
STRATEGIC_MERGE_PATCH = "application/strategic-merge-patch+json"
METADATA_ONLY = "application/json;as=PartialObjectMetadataList;g=meta.k8s.io;v=v1,application/json"
"""Of the objects of a list their metadata only."""
