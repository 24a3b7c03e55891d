"""A live cluster: its nodes and pods observed, compared with what is wanted, made to converge; faults laid over them.

`pools` is a pool's nodes, `faults` what goes wrong on them, `live` what watches show of all of them.
"""
