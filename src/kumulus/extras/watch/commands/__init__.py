"""The commands of the extra `watch`."""
