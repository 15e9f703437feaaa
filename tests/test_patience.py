"""A holder's answer is waited for by who has been held up as well."""

from __future__ import annotations

import itertools
import time
from types import SimpleNamespace

import pytest

from session_magics import Command, Registry
from session_magics.backends import native


def test_time_that_has_passed_meanwhile_is_no_sign_of_a_holder_that_hangs(
    real: Registry, monkeypatch: pytest.MonkeyPatch
) -> None:
    session = real.start("a", Command(("sleep", "1000")))
    jumps = itertools.count(0, 100)
    monkeypatch.setattr(native, "time", SimpleNamespace(monotonic=lambda: time.monotonic() + next(jumps)))
    session.resize(30, 90)
    assert session.info().size == (30, 90)
