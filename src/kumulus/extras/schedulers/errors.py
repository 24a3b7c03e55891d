"""Errors about a scheduler, worded for the user."""


class SchedulerError(Exception):
    """A scheduler is missing or unusable. The first line says what is wrong and where, the rest what to do."""
