"""The stack file: its pydantic models, reading and checking it, KEMU's format, and the pools made from it.

The program and the command need it once per run; the provider never imports it. Whatever reads a file raises
`SpecError` with every mistake; docstrings name it only where there is more to say.
"""
