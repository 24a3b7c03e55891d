"""What Kumulus finds itself in: how it is installed, the user's Pulumi project, where the engine looks for the plugin.

Files are written here, too, so that neither a kill nor a loss of power leaves half of one.

The command asks here before anything is installed, and programs while they start: the standard library is all that is
needed, and nothing of the rest of the package.
"""
