"""Line 31: a holder that cannot be reached is no death, can be reached again, and makes no second session."""

from __future__ import annotations

import contextlib
import re
import sys
from pathlib import Path

import pytest

from holders import holder
from others import ran, without
from rounds import DEADLINE, alive, rounds, until
from session_magics import Command, Lost, Registry, Session, SessionError
from session_magics.backends import native
from session_magics.errors import SessionExists
from session_magics.holder import server
from session_magics.holder.processes import start_tick
from session_magics.holder.trees import carrying

pytestmark = [
    pytest.mark.skipif(sys.platform != "linux", reason="finds processes through /proc"),
    pytest.mark.timeout(120),
]

QUICK_CHECK = 0.2
HOLDER_THAT_LOOKS_OFTEN = """
import os, runpy, sys
package = type(sys)("session_magics")
package.__path__ = [{package!r}]
sys.modules["session_magics"] = package
from session_magics.holder import server
server.SOCKET_CHECK = {seconds}
runpy.run_path({holder!r}, run_name="__main__")
"""


@pytest.fixture
def patient(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> float:
    """Seconds until a holder has found that its socket is gone; without --full it looks a hundred times as often."""
    if rounds(0, 1):
        return server.SOCKET_CHECK + DEADLINE
    path = tmp_path / "holder.py"
    package = str(Path(native.HOLDER).parents[1])
    text = HOLDER_THAT_LOOKS_OFTEN.format(package=package, seconds=QUICK_CHECK, holder=str(native.HOLDER))
    path.write_text(text)
    monkeypatch.setattr(native, "HOLDER", path)
    return QUICK_CHECK + DEADLINE


def reads_and_writes(session: Session) -> None:
    at = session.info().log_bytes
    session.send("hello\r")
    session.wait_for("hello", DEADLINE, begin=at)


@pytest.mark.parametrize("how", ["deleted", "renamed", "replaced by a file"])
def test_line_31_a_socket_that_is_gone_comes_back(registry: Registry, patient: float, how: str) -> None:
    session = registry.start("cat", Command(("cat",)))
    before, path, pid = session.state(), session.directory / "sock", holder(session)
    path.unlink() if how == "deleted" else path.rename(session.directory / "elsewhere")
    if how == "replaced by a file":
        path.touch()
    with pytest.raises((SessionExists, SessionError)):
        registry.start("cat", Command(("cat",)))
    until(lambda: answers(session), patient)
    reads_and_writes(session)
    assert (session.state(), holder(session)) == (before, pid)


def answers(session: Session) -> bool:
    with contextlib.suppress(SessionError), session.link():
        return True
    return False


def test_line_31_a_directory_that_was_renamed_is_no_second_session(registry: Registry) -> None:
    session = registry.start("cat", Command(("cat",)))
    before, pid = session.state(), holder(session)
    tick = start_tick(pid)
    aside = session.directory.with_name("aside")
    session.directory.rename(aside)
    assert session.state() == Lost("its directory is gone")
    with pytest.raises(SessionError, match="its directory is gone"):
        session.send("x")
    aside.rename(session.directory)
    assert (session.state(), holder(session)) == (before, pid)
    reads_and_writes(session)
    session.directory.rename(aside)
    again = registry.start("cat", Command(("cat",)))  # the old one cannot be reached: it is ended first
    assert not carrying(f"SESSION_MAGICS_SESSION={session.id}".encode())
    until(lambda: not alive(pid, tick))
    reads_and_writes(again)


# Run without the right to pass by modes, which root has.
WITHOUT_ACCESS = """
from session_magics import *
from session_magics.errors import *
registry = Registry(sys.argv[1])
session = registry.start("cat", Command(("sh", "-c", "echo up; exec cat")))
session.wait_for("up", 20)
before = session.state()
for path in (session.directory / "sock", session.directory):
    mode = path.stat().st_mode & 0o777
    path.chmod(0)
    told = []
    for ask in (lambda: session.send("x"), lambda: session.resize(10, 20),
                lambda: registry.start("cat", Command(("cat",))), lambda: registry.remove("cat")):
        try:
            ask()
            raise SystemExit(f"{path.name}: something was done")
        except SessionError as error:
            told.append(str(error))
    state = session.state()
    print(path.name, type(state).__name__, told)
    path.chmod(mode)
    assert session.state() == before
    session.send("hello\\r")
    session.wait_for("hello", 20)
session.stop()
"""


def test_line_31_a_session_without_access_is_left_alone_and_says_so(root: Path) -> None:
    told = ran(WITHOUT_ACCESS, root, before=without("dac_override", "dac_read_search")).splitlines()
    assert len(told) == 2
    assert re.match(r"sock Running .*Permission denied.*running", told[0]), told[0]
    assert re.search(r" Unknown .*Permission denied", told[1]), told[1]
