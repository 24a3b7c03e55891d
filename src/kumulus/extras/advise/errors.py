"""What keeps a fleet from being advised."""


class Unadvisable(Exception):
    """There is no fleet to advise; the message says why and what to do."""
