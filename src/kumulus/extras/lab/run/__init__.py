"""One run from its start to its end: creating, the timeline, when it is over, and leaving the cluster as it was."""
