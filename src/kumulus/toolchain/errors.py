"""What can go wrong with the tools, worded for the user."""


class ToolchainError(Exception):
    """The tools cannot be made ready. The message's first line says what is wrong, the rest what to do.

    Whatever looks for a tool, or gets one, may raise it; docstrings name it only where there is more to say.
    """


class ToolMissing(ToolchainError):
    """A tool is neither on PATH in a suitable version nor built yet."""
