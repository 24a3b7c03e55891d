"""Programs of the user's own that run alongside a cluster, such as an operator."""

import os
import shutil
import subprocess
import threading
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress

from kumulus.host import processes
from kumulus.testing.errors import ClusterError, ProgramEnded

_STDERR = 2
_SHOWN_LINES, _KEPT_BYTES = 5, 4096
_COPIED_WITHIN_S = 0.5


class Program(subprocess.Popen[bytes]):
    """A program that runs; its output is ours, and the last lines of its standard error are remembered."""

    def __init__(self, command: Sequence[str], environment: Mapping[str, str]) -> None:
        self._name = command[0]
        self._signalled = False
        self._last_bytes = b""
        read_end, write_end = os.pipe()
        try:
            super().__init__(processes.tied(command), env=environment, stdin=subprocess.DEVNULL, stderr=write_end)
        except BaseException:
            os.close(read_end)
            raise
        finally:
            os.close(write_end)
        # A daemon: what the program has started may have the pipe open for longer than this process runs.
        self._copying = threading.Thread(target=self._copy, args=(read_end, os.dup(_STDERR)), daemon=True)
        self._copying.start()

    def send_signal(self, sig: int) -> None:
        """As of :class:`subprocess.Popen`; a program that the test ends, also by `kill`, does not end by itself."""
        self._signalled = True
        super().send_signal(sig)

    def raise_if_failed(self, meanwhile: str = "") -> None:
        """Raise an error if it has ended by itself with an exit code other than 0.

        Args:
            meanwhile: what was going on, for the error.

        Raises:
            ProgramEnded: it has.
        """
        if self._signalled or not self.poll():
            return
        self.wait_until_copied()
        lines = self._last_bytes.decode(errors="replace").splitlines()[-_SHOWN_LINES:]
        shown = "".join(f"\n  {line}" for line in lines)
        said = f"its last lines:{shown}" if lines else "it wrote nothing to its standard error"
        raise ProgramEnded(f"{self._name} ended by itself with exit code {self.returncode}{meanwhile}; {said}")

    def wait_until_copied(self) -> None:
        """Wait, for a moment at most, until all that it wrote has been copied; for one that has ended."""
        self._copying.join(_COPIED_WITHIN_S)

    def _copy(self, source: int, to: int) -> None:
        with open(source, "rb", buffering=0) as theirs, open(to, "wb", buffering=0) as ours:
            while some := theirs.read(65536):
                self._last_bytes = (self._last_bytes + some)[-_KEPT_BYTES:]
                with suppress(OSError):
                    ours.write(some)


@contextmanager
def running(command: Sequence[str], environment: Mapping[str, str], among: list[Program]) -> Iterator[Program]:
    """A program for as long as the block runs, and no longer than the thread that started it; its output is ours.

    Args:
        among: the programs that run; this one is among them for as long as the block runs.
    """
    if shutil.which(command[0]) is None:
        raise ClusterError(f"there is no program {command[0]} that can be run; name its path, or put it on PATH")
    with Program(command, environment) as process:
        among.append(process)
        try:
            yield process
            process.raise_if_failed()
        except ProgramEnded:
            raise
        except BaseException as error:  # of the block, as of a failed test
            if (code := process.poll()) is not None:
                error.add_note(f"{command[0]} had ended by itself before, with exit code {code}")
            raise
        finally:
            among.remove(process)
            process.kill()
            process.wait_until_copied()
