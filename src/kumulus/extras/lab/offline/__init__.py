"""A trace placed by a policy without a cluster: arrays in place of an API server, seconds in place of minutes."""
