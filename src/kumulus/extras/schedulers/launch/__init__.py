"""How each scheduler is started: its programs, its configuration, and the objects it needs in the cluster."""
