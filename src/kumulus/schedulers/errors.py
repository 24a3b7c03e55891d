"""What can go wrong with a scheduler, worded for the user."""

from __future__ import annotations


class SchedulerError(Exception):
    """A scheduler cannot be had, started or used. The first line says what is wrong and where, the rest what to do."""
