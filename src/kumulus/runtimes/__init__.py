"""The ways to get a control plane: a folder for each, behind the small interface of `base`, with its descriptor.

`registry` lists them, and is the only place to ask for one: nothing else distinguishes runtimes by their names. What
all of them store on this machine is in `place` and `directories`; no runtime knows of another.
"""
