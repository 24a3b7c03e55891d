"""The existing runtime: a cluster that is there already, by its kubeconfig."""
