"""Sweeps: an experiment for every combination of what a file lists, on many processes or machines, each run once.

A cell is one combination with one seed. Its result is a file, which is written, complete, at the very end of its run; a
sweep that was killed continues with the cells that have no result.
"""
