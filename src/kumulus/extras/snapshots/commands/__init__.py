"""The commands of the extra `snapshots`."""
