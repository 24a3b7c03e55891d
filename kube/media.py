"""The media types of the Kubernetes API's bodies."""

JSON = "application/json"
MERGE_PATCH = "application/merge-patch+json"
PROTOBUF = "application/vnd.kubernetes.protobuf"
STRATEGIC_MERGE_PATCH = "application/strategic-merge-patch+json"
