"""Start the plugin; Pulumi's engine runs this through ``provider/pulumi-resource-kumulus``."""

import asyncio
import os
import sys

from kumulus.host import open_files
from kumulus.host.extras import BrokenExtra
from kumulus.provider.garbage import collect_rarely

if __name__ == "__main__":
    collect_rarely()
    # gRPC asks the user's proxy even for programs of this machine, and the plugin asks no others.
    os.environ.setdefault("no_grpc_proxy", "127.0.0.1")
    # The clusters of a stack may be made at once, each by some two hundred connections.
    open_files.allow()
    try:
        # Imported here: what an extra brings is imported with it, and may be broken.
        from kumulus.provider.plugin.serving import serve

        asyncio.run(serve(sys.argv[1:]))
    except BrokenExtra as error:
        sys.exit(f"error: {error}")
