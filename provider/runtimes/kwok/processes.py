"""A cluster's processes: see :mod:`host.processes`, and kwokctl's own pid files in :mod:`pidfiles`."""

from host.processes import end, listener, running
from provider.runtimes.kwok.pidfiles import correct_pid_files, ended, setting_up

__all__ = ["correct_pid_files", "end", "ended", "listener", "running", "setting_up"]
