"""What holds for every test."""

from __future__ import annotations

import os
import signal
import tempfile

from hypothesis import HealthCheck, settings

pytest_plugins = ["tests.support.second_try", "tests.support.time_limit"]

# Nobody is asked for programs; tests of downloads have a mirror of their own.
os.environ["KUMULUS_TOOLS"] = "build"

# Journals of runs are the user's; those of tests go with them.
_STATE = tempfile.TemporaryDirectory(prefix="kumulus-state-")
os.environ["XDG_STATE_HOME"] = _STATE.name

# A shell's background job inherits an ignored SIGINT and hands it on; tests that press Ctrl-C need it to be heard.
signal.signal(signal.SIGINT, signal.default_int_handler)

# An example that is slow says what else the machine does.
settings.register_profile("any machine", deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("any machine")
