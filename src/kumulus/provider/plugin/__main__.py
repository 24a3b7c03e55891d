"""Start the plugin; Pulumi's engine runs this through ``provider/pulumi-resource-kumulus``."""

import asyncio
import gc
import os
import resource
import sys
from contextlib import suppress

from kumulus.host.extras import BrokenExtra


def collect_rarely() -> None:
    """Freeze the objects loaded so far, and collect cycles a hundredth as often as Python does by default.

    Reference counting frees a request's objects; with thousands of requests, collections took a tenth of the plugin's
    time (docs/performance.md).
    """
    gc.freeze()
    gc.set_threshold(50_000, 20, 20)


ENOUGH = 65_536
"""More than a hundred clusters' connections, in a table that costs nothing until it is used."""


def allow_open_files(enough: int = ENOUGH) -> int:
    """Raise this process's limit of open files as far as its user may, and not beyond `enough`; returns the limit.

    Most systems begin with 1,024 for the sake of programs that use select(2), which this one does not, and allow far
    more: Go's programs do the same. Programs that are started later inherit the limit.
    """
    now, most = resource.getrlimit(resource.RLIMIT_NOFILE)
    wanted = enough if most == resource.RLIM_INFINITY else min(most, enough)
    if now == resource.RLIM_INFINITY or now >= wanted:
        return now
    # A system may allow less than it says, as macOS does.
    with suppress(ValueError, OSError):
        resource.setrlimit(resource.RLIMIT_NOFILE, (wanted, most))
    return resource.getrlimit(resource.RLIMIT_NOFILE)[0]


if __name__ == "__main__":
    collect_rarely()
    # gRPC asks the user's proxy even for programs of this machine, and the plugin asks no others.
    os.environ.setdefault("no_grpc_proxy", "127.0.0.1")
    # The engine gives plugins the token of a login to Pulumi Cloud, since 3.247; what this one starts would inherit it.
    os.environ.pop("PULUMI_ACCESS_TOKEN", None)
    # The clusters of a stack may be made at once, each by some two hundred connections.
    allow_open_files()
    try:
        # Imported here: what an extra brings is imported with it, and may be broken.
        from kumulus.provider.plugin.serving import serve

        asyncio.run(serve(sys.argv[1:]))
    except BrokenExtra as error:
        sys.exit(f"error: {error}")
