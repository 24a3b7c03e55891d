"""Start the plugin; Pulumi's engine runs this through ``provider/pulumi-resource-kumulus``."""

import asyncio
import sys

from provider.garbage import look_rarely
from provider.rpc import serve

if __name__ == "__main__":
    look_rarely()
    asyncio.run(serve(sys.argv[1:]))
