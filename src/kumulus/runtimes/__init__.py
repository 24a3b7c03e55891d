"""The ways to get a control plane: a folder for each, behind the small interface of `base`, with its descriptor.

`registry` names them, and is the only place to ask for one: nothing else distinguishes runtimes by their names. What
all of them keep on this machine is in `place` and `directories`; none knows of another.
"""
