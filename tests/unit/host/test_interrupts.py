"""What takes `kill` as Ctrl-C, also where it cannot: in another thread than the main one."""

from __future__ import annotations

import signal
from concurrent.futures import ThreadPoolExecutor

import pytest

from kumulus.host.interrupts import like_ctrl_c


def _handlers() -> list[object]:
    with like_ctrl_c():
        return [signal.getsignal(number) for number in (signal.SIGTERM, signal.SIGHUP)]


def test_a_kill_is_taken_as_ctrl_c_in_the_block_only() -> None:
    before = signal.getsignal(signal.SIGTERM)
    with pytest.raises(KeyboardInterrupt), like_ctrl_c():
        signal.raise_signal(signal.SIGTERM)
    assert signal.getsignal(signal.SIGTERM) == before


def test_in_another_thread_the_block_just_runs() -> None:
    with ThreadPoolExecutor(1) as workers:
        assert workers.submit(_handlers).result() == [signal.getsignal(signal.SIGTERM), signal.getsignal(signal.SIGHUP)]
