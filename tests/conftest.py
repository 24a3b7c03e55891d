"""What holds for every test."""

from __future__ import annotations

import signal

# A shell's background job inherits an ignored SIGINT and hands it on; tests that press Ctrl-C need it to be heard.
signal.signal(signal.SIGINT, signal.default_int_handler)
