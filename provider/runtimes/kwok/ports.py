"""Local ports: see :mod:`host.ports`."""

from host.ports import Claims, NoFreePort, in_use

__all__ = ["Claims", "NoFreePort", "in_use"]
