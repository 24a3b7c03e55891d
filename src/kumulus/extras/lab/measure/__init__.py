"""Turns what the watches report into numbers. Pure functions and plain state, except `listening`, which watches."""
