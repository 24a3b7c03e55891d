"""The command `kumulus cluster`."""
