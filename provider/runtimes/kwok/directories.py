"""Where clusters live on this machine: room for one more, kept private, and what is wrong with a place."""

from __future__ import annotations

import errno

from provider.errors import ProviderError
from provider.runtimes.kwok import kwokctl
from provider.runtimes.kwok.layout import Layout

_NEEDED_BYTES = 1 << 30


def prepare_home(layout: Layout) -> None:
    """Make the directory that clusters are in.

    Raises:
        ProviderError: it cannot be made, or its disk is full.
    """
    try:
        # A home that is there already, such as /srv, keeps its mode: each cluster's directory is private anyway.
        layout.home.mkdir(mode=0o700, parents=True, exist_ok=True)
        layout.directory.parent.mkdir(mode=0o700, exist_ok=True)
        free = kwokctl.free_bytes(layout.home)
    except OSError as error:
        raise ProviderError(os_error(error, layout)) from None
    if free < _NEEDED_BYTES:
        raise ProviderError(
            f"no disk space: {free / 2**20:,.0f} MiB free at {layout.home}, a control plane needs "
            f"{_NEEDED_BYTES / 2**20:,.0f} MiB; free some, or set KUMULUS_HOME to a directory on another disk"
        )


def keep_private(layout: Layout) -> None:
    """Keys and kubeconfigs are for their owner only, whatever kwokctl's own modes are."""
    for path in [layout.kubeconfig, layout.kwok_file, *(layout.directory / "pki").glob("*")]:
        path.chmod(0o600)
    layout.directory.chmod(0o700)


def os_error(error: OSError, layout: Layout) -> str:
    """An error of the file system in words, with the remedy."""
    if error.errno == errno.ENOSPC:
        return f"no disk space left at {layout.home}; free some, or set KUMULUS_HOME to a directory on another disk"
    reason = error.strerror or str(error) or type(error).__name__
    return f"{error.filename or layout.directory}: {reason}; KUMULUS_HOME can name another directory"
