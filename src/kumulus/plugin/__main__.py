"""Start the plugin; Pulumi's engine runs this through ``provider/pulumi-resource-kumulus``."""

import asyncio
import sys

from kumulus.plugin.serving import serve
from kumulus.provider.garbage import look_rarely

if __name__ == "__main__":
    look_rarely()
    asyncio.run(serve(sys.argv[1:]))
