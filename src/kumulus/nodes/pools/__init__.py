"""The nodes of a pool: observe them, compare them with what is wanted, and make them converge.

``single`` does it for one node, ``through_storage`` for many new ones; ``others`` says which nodes are not the pool's.
"""
