"""Start the plugin; Pulumi's engine runs this through ``provider/pulumi-resource-kumulus``."""

import asyncio
import sys

from kumulus.host import open_files
from kumulus.plugin.serving import serve
from kumulus.provider.garbage import collect_rarely

if __name__ == "__main__":
    collect_rarely()
    # The clusters of a stack may be made at once, each by some two hundred connections.
    open_files.allow()
    asyncio.run(serve(sys.argv[1:]))
