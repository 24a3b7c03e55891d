"""Start the plugin; Pulumi's engine runs this through ``provider/pulumi-resource-kumulus``."""

import asyncio
import sys

from kumulus.plugin.serving import serve
from kumulus.provider.garbage import collect_rarely

if __name__ == "__main__":
    collect_rarely()
    asyncio.run(serve(sys.argv[1:]))
