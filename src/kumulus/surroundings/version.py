"""Kumulus' version: of the package, and of its provider plugin, which programs ask Pulumi's engine for."""

VERSION = "0.1.0"
EARLIER: tuple[str, ...] = ()
"""The versions released before: states that they left name their plugin, and this one's looks after what they made."""
