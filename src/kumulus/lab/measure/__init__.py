"""From what the watches tell to numbers. Pure functions and plain state, but for `listening`, which watches."""
