"""The commands of the extra `capture`."""
