"""The commands of the extra `advise`."""
