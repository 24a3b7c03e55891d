"""The command `kumulus gym`."""
