"""The commands of the extra `scaling`."""
