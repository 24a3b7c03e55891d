"""The nodes of a pool: observe them, compare them with what is wanted, and make them converge.

``observe`` is the look, ``compare`` the comparison, ``drift`` its description, and ``converge``
the change, with ``single`` for one node, ``removal``, ``slices``, ``pods`` and ``through_storage``. ``others`` and
``real`` say which nodes are not the pool's.
"""
