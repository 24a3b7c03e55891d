"""From what the watches report to numbers. Pure functions and plain state, but for `listening`, which watches."""
