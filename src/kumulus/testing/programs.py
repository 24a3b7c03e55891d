"""Programs of the user's own that run alongside a cluster, such as an operator."""

import os
import shutil
import subprocess
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager

from kumulus.testing.errors import ClusterError

# As in kumulus.extras.schedulers.children: by a wrapper, since it is not safe between fork and exec where threads are.
# The process that it is tied to may have ended before it was.
_TIED = """
import ctypes, os, sys
ctypes.CDLL(None).prctl(1, 9)
if os.getppid() == int(sys.argv[1]):
    os.execvp(sys.argv[2], sys.argv[2:])
"""


@contextmanager
def running(command: Sequence[str], environment: Mapping[str, str]) -> Iterator[subprocess.Popen[bytes]]:
    """A program for as long as the block runs, and no longer than the thread that started it; its output is ours.

    Raises:
        ClusterError: there is no such program.
    """
    if shutil.which(command[0]) is None:
        raise ClusterError(f"there is no program {command[0]} that can be run; name its path, or put it on PATH")
    tied = [sys.executable, "-I", "-S", "-c", _TIED, str(os.getpid()), *command]
    with subprocess.Popen(tied, env=environment, stdin=subprocess.DEVNULL) as process:
        try:
            yield process
        finally:
            process.kill()
