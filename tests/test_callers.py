"""A cell that is asked for again under its token is not run again."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from session_magics import Registry
from session_magics.backends.native import NativeLink
from session_magics.errors import SessionBusy
from session_magics.holder import wire
from session_magics.testing.rig import outcome, receive_until


@pytest.fixture
def links(real: Registry, tmp_path: Path) -> Iterator[tuple[NativeLink, NativeLink]]:
    session = real.shell("cells", shell="bash", lifetime="detached", rc=False, cwd=str(tmp_path))
    with session.link() as one, session.link() as other:
        assert isinstance(one, NativeLink) and isinstance(other, NativeLink)
        yield one, other


UNTIL_GO = b"until [ -e go ]; do sleep 0.02; done; (exit 4)"


def asked(link: NativeLink, text: bytes, token: bytes) -> int:
    return link._post(wire.RUN, text, b"0", token)


def test_one_that_has_ended_is_told_of_again(links: tuple[NativeLink, NativeLink]) -> None:
    one, other = links
    first = outcome(one, asked(one, b"n=$((n+1)); (exit $n)", b"7"))
    assert first[3] == b"1"
    assert outcome(other, asked(other, b"n=$((n+1)); (exit $n)", b"7")) == first
    assert outcome(other, asked(other, b"n=$((n+1)); (exit $n)", b"8"))[3] == b"2"


def test_one_that_runs_tells_whoever_asked_last(links: tuple[NativeLink, NativeLink], tmp_path: Path) -> None:
    one, other = links
    first = asked(one, UNTIL_GO, b"1")
    receive_until(one, lambda: one.begun(first), "the beginning")
    again = asked(other, UNTIL_GO, b"1")
    receive_until(other, lambda: other.begun(again), "the beginning")
    (tmp_path / "go").touch()
    assert outcome(other, again)[3] == b"4"
    assert one.finished(first) is None


def test_another_is_refused_as_before(links: tuple[NativeLink, NativeLink], tmp_path: Path) -> None:
    one, other = links
    first = asked(one, UNTIL_GO, b"1")
    receive_until(one, lambda: one.begun(first), "the beginning")
    with pytest.raises(SessionBusy, match=r"until .* -e go"):
        outcome(other, asked(other, b"true", b"2"))
    (tmp_path / "go").touch()
    assert outcome(one, first)[3] == b"4"
