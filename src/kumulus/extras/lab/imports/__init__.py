"""Benchmarks of other projects as experiments: a file for each, with its nodes as a stack and its thresholds.

What an experiment cannot express is listed, never left out in silence.
"""
