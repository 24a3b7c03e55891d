"""Programs of the user's own that run alongside a cluster, such as an operator."""

import os
import shutil
import subprocess
import threading
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress

from kumulus.host import processes
from kumulus.testing.errors import ClusterError, ProgramEnded

_STDERR, _LINES, _KEPT_BYTES, _PATIENCE = 2, 5, 4096, 0.5


class Program(subprocess.Popen[bytes]):
    """A program that runs; its output is ours, and the last lines of its standard error are remembered."""

    def __init__(self, command: Sequence[str], environment: Mapping[str, str]) -> None:
        self._called, self._signalled, self._said = command[0], False, b""
        ours, its = os.pipe()
        try:
            super().__init__(processes.tied(command), env=environment, stdin=subprocess.DEVNULL, stderr=its)
        except BaseException:
            os.close(ours)
            raise
        finally:
            os.close(its)
        # What the program has started may have it open for longer than the program, or this process, runs.
        self._copying = threading.Thread(target=self._copy, args=(ours, os.dup(_STDERR)), daemon=True)
        self._copying.start()

    def send_signal(self, sig: int) -> None:
        """As of :class:`subprocess.Popen`; a program that the test ends, also by `kill`, does not end by itself."""
        self._signalled = True
        super().send_signal(sig)

    def require(self, meanwhile: str = "") -> None:
        """Require that it has not ended by itself with an error, which the error says with what was going on."""
        if self._signalled or not self.poll():
            return
        self.settle()
        last = [f"\n  {line}" for line in self._said.decode(errors="replace").splitlines()[-_LINES:]]
        said = f"its last lines:{''.join(last)}" if last else "it wrote nothing to its standard error"
        raise ProgramEnded(f"{self._called} ended by itself with exit code {self.returncode}{meanwhile}; {said}")

    def settle(self) -> None:
        """Wait, for a moment at most, until all that it wrote has been copied; for one that has ended."""
        self._copying.join(_PATIENCE)

    def _copy(self, source: int, to: int) -> None:
        with open(source, "rb", buffering=0) as its, open(to, "wb", buffering=0) as ours:
            while some := its.read(65536):
                self._said = (self._said + some)[-_KEPT_BYTES:]
                with suppress(OSError):
                    ours.write(some)


@contextmanager
def running(command: Sequence[str], environment: Mapping[str, str], among: list[Program]) -> Iterator[Program]:
    """A program for as long as the block runs, and no longer than the thread that started it; its output is ours.

    Args:
        among: those that run; it is one of them for as long as the block runs.
    """
    if shutil.which(command[0]) is None:
        raise ClusterError(f"there is no program {command[0]} that can be run; name its path, or put it on PATH")
    with Program(command, environment) as process:
        among.append(process)
        try:
            yield process
            process.require()
        except ProgramEnded:
            raise
        except BaseException as error:  # a failed test's, too
            if (code := process.poll()) is not None:
                error.add_note(f"{command[0]} had ended by itself before, with exit code {code}")
            raise
        finally:
            among.remove(process)
            process.kill()
            process.settle()
