"""One file for each resource, and what resources share.

``registry`` makes the resources that the protocol adapter serves, by type token.
"""
