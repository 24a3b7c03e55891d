"""What a user reads when an experiment cannot be run, compared or shown."""

from __future__ import annotations


class LabError(Exception):
    """Why it cannot be, and what to do; one line, without a traceback."""
