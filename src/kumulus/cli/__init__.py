"""The `kumulus` command: one file per subcommand, named in registry.py and imported when it is called.

The commands that set things up run on a bare Python; those marked `venv` in the registry run in the virtual environment
and may use its packages. This is the highest layer: nothing imports it.
"""
