"""Kumulus' surroundings: how it is installed, the user's Pulumi project, where the engine looks for the plugin.

Files are written here, too, so that neither a kill nor a power loss leaves half of one.

The command uses this package before anything is installed, and programs while they start, so it needs only the
standard library, and nothing of the rest of Kumulus.
"""
