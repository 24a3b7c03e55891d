"""Settings for every test."""

import os
import signal
import tempfile

import pytest
from hypothesis import HealthCheck, settings

pytest_plugins = ["tests.support.second_try", "tests.support.time_limit"]

# Programs are not downloaded; tests of downloads have their own mirror.
os.environ["KUMULUS_TOOLS"] = "build"

# Clusters that tests make may have more memory than users', for a quarter less CPU.
os.environ["GOGC"] = "400"

# gRPC's threads of an earlier test are nothing to a program that is started later: without this, its handlers of a fork
# write into that program's output or end it.
os.environ["GRPC_ENABLE_FORK_SUPPORT"] = "0"

# Journals of runs are kept in the user's state directory; those of tests are removed with this one.
_STATE = tempfile.TemporaryDirectory(prefix="kumulus-state-")
os.environ["XDG_STATE_HOME"] = _STATE.name

# A shell's background job inherits an ignored SIGINT and passes it on; tests of Ctrl-C need the default handler.
signal.signal(signal.SIGINT, signal.default_int_handler)

# A slow example only shows that the machine is busy.
settings.register_profile("any machine", deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("any machine")


@pytest.fixture(scope="session", autouse=True)
def _hangups() -> None:
    """What nohup started ignores SIGHUP, and so would all that tests start; what is caught here is not passed on."""
    if signal.getsignal(signal.SIGHUP) is signal.SIG_IGN:
        signal.signal(signal.SIGHUP, lambda *_: None)
