"""A live cluster: its nodes and pods are observed, compared with what is wanted, and made to converge.

`pools` handles a pool's nodes, `faults` what goes wrong on them, `catalog` what is known of machines and faults. The
files next to them are about a stack's other objects, and about ownership. Once a `stop` is set, nothing new is begun.
"""
