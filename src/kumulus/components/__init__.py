"""Pulumi components that declare an emulated cluster; usable from any Pulumi program in Python.

Programs import the public ones from :mod:`kumulus`, or from the folder `components` at the top of the repository, which
has the same classes. They refer to the provider plugin only by Pulumi type tokens and import nothing from it.
"""
