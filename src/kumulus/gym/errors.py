"""What goes wrong with an environment."""


class GymError(Exception):
    """A problem's file is wrong, or an episode cannot begin or go on; the message's first line says why."""
