"""The stack file: what it may say, as pydantic models; reading and checking it; KEMU's format, and pools made from it.

Needed once per run by the program and the command; the provider never imports it.
"""
