"""How each scheduler is started: its programs, its configuration, and what the cluster has to have for it."""
