"""Pulumi components that declare an emulated cluster; usable from any Pulumi program in Python.

Programs import the public ones from :mod:`kumulus`, or from the folder `components` at the top of the repository, which
has the same classes. They refer to the provider plugin only by Pulumi type tokens and import nothing from it.

Each takes `resource_name`, its name in the stack, the arguments that its `…Args` describes, and `opts`, Pulumi's
resource options. If an argument is wrong, it raises `pulumi.RunError`, with each one's path and what to write instead.
"""
