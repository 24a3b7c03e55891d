"""Observe a live cluster's nodes and pods, compare them with what is wanted, make them converge, and apply faults.

`pools` handles a pool's nodes, `faults` what goes wrong on them, `live` everything as watches show it.
"""
