"""Turns what the watches report into numbers. Pure functions and plain state, except `listening`, which watches.

`cluster` is a cluster's name among several that are measured together, and empty if there is only one.
"""
