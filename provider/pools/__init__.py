"""The nodes of a pool: observe them, compare them with what is wanted, and make them converge.

``live`` and ``compare`` are pure; ``observe``, ``converge`` and ``pods`` talk to the API server.
"""
