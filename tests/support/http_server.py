"""An HTTP server of a test's own, on this machine."""

import ssl
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any


@contextmanager
def serving(handler: type[BaseHTTPRequestHandler], tls: ssl.SSLContext | None = None, **options: Any) -> Iterator[str]:
    """Serve until the block ends; yields the address, such as ``127.0.0.1:4711``.

    Args:
        handler: answers a request; nothing of it is logged.
        tls: how to talk HTTPS; HTTP without it.
        options: of the handler, such as the ``directory`` of a ``SimpleHTTPRequestHandler``.
    """
    silent = type("Silent", (handler,), {"log_message": lambda *_: None})
    with ThreadingHTTPServer(("127.0.0.1", 0), partial(silent, **options)) as server:
        server.daemon_threads, server.block_on_close = True, False
        if tls:
            server.socket = tls.wrap_socket(server.socket, server_side=True)
        thread = threading.Thread(target=server.serve_forever, args=(0.01,), daemon=True)
        thread.start()
        try:
            yield f"127.0.0.1:{server.server_port}"
        finally:
            server.shutdown()
            thread.join()
