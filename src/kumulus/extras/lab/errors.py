"""What a user reads when an experiment cannot be run, compared or shown."""


class LabError(Exception):
    """Says why this is so and what to do; printed without a traceback."""
