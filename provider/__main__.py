"""Start the plugin; Pulumi's engine runs this through ``provider/pulumi-resource-kumulus``."""

import asyncio
import sys

from provider.rpc import serve

if __name__ == "__main__":
    asyncio.run(serve(sys.argv[1:]))
