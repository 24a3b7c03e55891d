"""Pulumi components that declare an emulated cluster; usable from any Pulumi program in Python.

Programs import the public ones from :mod:`kumulus`. They meet the provider plugin at Pulumi type tokens only and import
nothing of it. The folder stands at the top of the repository, where users of Pulumi look for components; it is a part
of the package by a link, and has no other name.
"""

if __name__ != "kumulus.components":
    # Found by the folder it stands in: a second copy of every class, which is none of the package's.
    raise ModuleNotFoundError(f"there is no module {__name__!r}; import kumulus.components", name=__name__)
