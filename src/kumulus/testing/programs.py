"""Programs of the user's own that run alongside a cluster, such as an operator."""

import shutil
import subprocess
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager

from kumulus.host import processes
from kumulus.testing.errors import ClusterError


@contextmanager
def running(command: Sequence[str], environment: Mapping[str, str]) -> Iterator[subprocess.Popen[bytes]]:
    """A program for as long as the block runs, and no longer than the thread that started it; its output is ours.

    Raises:
        ClusterError: there is no such program.
    """
    if shutil.which(command[0]) is None:
        raise ClusterError(f"there is no program {command[0]} that can be run; name its path, or put it on PATH")
    with subprocess.Popen(processes.tied(command), env=environment, stdin=subprocess.DEVNULL) as process:
        try:
            yield process
        except BaseException as error:  # a failed test's, too
            if (code := process.poll()) is not None:
                error.add_note(f"{command[0]} had ended by itself before, with exit code {code}")
            raise
        finally:
            process.kill()
