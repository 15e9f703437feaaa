"""Ctrl-C while a block collects it: counted, and raised at its end if nobody took it."""

from __future__ import annotations

import os
import signal
import threading

import pytest

import leaks
from session_magics.interrupts import noticed


def test_interrupts_are_counted_and_not_raised() -> None:
    handler = signal.getsignal(signal.SIGINT)
    with noticed() as interrupts:
        assert interrupts.take() == 0
        for _ in range(3):
            os.kill(os.getpid(), signal.SIGINT)
        assert interrupts.take() == 3
    assert signal.getsignal(signal.SIGINT) == handler


def test_an_interrupt_that_nobody_took_is_raised_at_the_end() -> None:
    before, handler = leaks.descriptors(), signal.getsignal(signal.SIGINT)
    reached = False
    with pytest.raises(KeyboardInterrupt), noticed():
        os.kill(os.getpid(), signal.SIGINT)
        reached = True
    assert reached
    assert signal.getsignal(signal.SIGINT) == handler
    assert leaks.descriptors() == before


def test_a_block_in_a_block_goes_on_with_what_came_before() -> None:
    with noticed() as outer:
        os.kill(os.getpid(), signal.SIGINT)
        with noticed() as inner:
            os.kill(os.getpid(), signal.SIGINT)
            assert inner.take() == 2
            os.kill(os.getpid(), signal.SIGINT)
        assert outer.take() == 1


def test_a_thread_leaves_the_handler_alone() -> None:
    handler, seen = signal.getsignal(signal.SIGINT), []

    def run() -> None:
        with noticed() as interrupts:
            seen.append((signal.getsignal(signal.SIGINT), interrupts.take()))

    thread = threading.Thread(target=run)
    thread.start()
    thread.join()
    assert seen == [(handler, 0)]
