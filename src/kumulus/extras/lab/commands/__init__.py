"""The commands of the extra `lab`."""
