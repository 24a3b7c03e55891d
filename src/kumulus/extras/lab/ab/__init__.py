"""Two ways of scheduling, A and B, run in turn on one cluster until it is decided which one is better."""
