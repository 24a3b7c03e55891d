"""Pulumi components that declare an emulated cluster; usable from any Pulumi program in Python.

Programs import the public ones from :mod:`kumulus`. They refer to the provider plugin only by Pulumi type tokens and
import nothing from it. The folder is at the top of the repository, where users of Pulumi look for components; a symlink
makes it part of the package, under no other name.
"""

if __name__ != "kumulus.components":
    # Imported by its folder: that would make a second copy of every class, unrelated to the package's.
    raise ModuleNotFoundError(f"there is no module {__name__!r}; import kumulus.components", name=__name__)
