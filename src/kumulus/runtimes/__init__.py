"""The ways to get a control plane: a folder for each, behind the small interface of `base`, with its descriptor.

`registry` names them, and who has to know one asks there: no other place tells runtimes apart by their names. What all
of them keep on this machine is in `place` and `directories`; none knows of another.
"""
