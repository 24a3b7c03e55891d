"""A kube-scheduler beside the cluster's own, with a configuration or a binary of the user's."""
