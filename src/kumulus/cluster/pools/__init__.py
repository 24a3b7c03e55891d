"""The nodes of a pool: observe them, compare them with what is wanted, and make them converge.

``live``, ``compare`` and ``drift`` are pure; ``afterwards``, ``observe``, ``converge``, ``single``, ``removal``,
``slices`` and ``pods`` talk to the API server.
"""
