"""The holder's socket: whoever is rude, slow or a stranger harms nobody; whoever asks properly is served."""

from __future__ import annotations

import contextlib
import os
import select
import socket
import stat
import struct
from collections.abc import Iterator
from pathlib import Path

import pytest

import holders
from rounds import DEADLINE, alive, rounds, sessions, until
from session_magics import Command, Exited, Registry, Running, Session
from session_magics.holder import server, wire
from session_magics.holder.loop import Loop
from session_magics.holder.processes import start_tick

HALF_OPEN = 300

pytestmark = pytest.mark.timeout(rounds(60, 300))


@pytest.fixture
def registry(root: Path) -> Iterator[Registry]:
    with sessions(root) as opened:
        yield opened


session = holders.echoing


def knock(session: Session) -> socket.socket:
    """A bare connection, with the holder's greeting still unread."""
    connection = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    connection.settimeout(DEADLINE)
    until(lambda: not connection.connect_ex(str(session.directory / "sock")))  # not at once while many others wait
    return connection


def frames(connection: socket.socket) -> Iterator[tuple[bytes, list[bytes]]]:
    """What the holder says, until it hangs up."""
    decoder = wire.Decoder()
    while data := connection.recv(1 << 16):
        yield from decoder.feed(data)


def served(session: Session, word: str = "hello") -> None:
    """An honest client gets what it asks for."""
    at = session.info().log_bytes
    session.send(word)
    session.wait_for(word, DEADLINE, begin=at)


def test_the_first_frame_tells_version_holder_and_features(session: Session, registry: Registry) -> None:
    record = registry.store.run(session.id)
    assert record
    with knock(session) as connection:
        kind, fields = next(frames(connection))
    assert kind == wire.HELLO
    assert fields == [b"%d" % wire.VERSION, b"%d" % record.holder, *wire.FEATURES]


def test_an_unknown_kind_is_answered_and_harms_nothing(session: Session) -> None:
    with knock(session) as connection:
        said = frames(connection)
        next(said)
        connection.sendall(wire.frame(b"?", b"17", b"what") + wire.frame(wire.RESIZE, b"18", b"30", b"90"))
        assert next(said) == (wire.ERROR, [b"17", b"unknown-kind", b"?"])
        assert next(said) == (wire.OK, [b"18"])
    served(session)


@pytest.mark.parametrize(
    "rude",
    [
        b"R" + struct.pack(">I", wire.MAX_FRAME + 1),
        b"\xff" * 100,
        wire.frame(wire.INPUT),
        wire.frame(wire.STOP, b"1", b"soon"),
        wire.frame(wire.STOP, b"1", b"nan"),
        wire.frame(wire.RESIZE, b"1", b"70000", b"80"),
        wire.frame(wire.RESIZE, b"1", b"-1", b"80"),
        wire.frame(wire.RESIZE, b"1", b"0", b"80"),
        wire.frame(wire.RESIZE, b"1", b"24", b"2001"),
        wire.frame(wire.WATCH, b"x", b"y"),
        b"I" + struct.pack(">I", 6) + b"\0\0\0\x09ab",
    ],
)
def test_what_is_no_request_is_told_so_and_hung_up_on(session: Session, rude: bytes) -> None:
    with knock(session) as connection:
        connection.sendall(rude)
        heard = list(frames(connection))
    assert [kind for kind, _ in heard] == [wire.HELLO, wire.ERROR]
    assert heard[1][1][1] == b"bad-frame"
    served(session)


def test_a_client_that_asks_keeps_its_place_among_those_that_say_nothing(session: Session) -> None:
    with session.link() as link, contextlib.ExitStack() as stack:
        link.resize(20, 70)
        for _ in range(server.CLIENT_LIMIT + 20):
            stack.enter_context(knock(session))
        link.resize(21, 71)


def test_a_client_that_never_reads_is_hung_up_on(session: Session) -> None:
    with knock(session) as connection:
        connection.settimeout(0.5)
        frame = wire.frame(b"?", b"1" * 1000) * 100
        with contextlib.suppress(TimeoutError, ConnectionError):
            for _ in range(server.OUT_LIMIT // len(frame) * 4):
                connection.sendall(frame)
        poll = select.poll()
        poll.register(connection, 0)
        until(lambda: poll.poll(0))
    served(session)


def test_clients_that_come_and_go_leave_no_descriptor(session: Session, registry: Registry) -> None:
    record = registry.store.run(session.id)
    assert record
    before = len(os.listdir(f"/proc/{record.holder}/fd"))
    for _ in range(200):
        knock(session).close()
    served(session)
    until(lambda: len(os.listdir(f"/proc/{record.holder}/fd")) <= before)


# ---------------------------------------------------------------- the socket's file


@pytest.fixture
def place(root: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(root)
    return root


def test_a_socket_that_was_deleted_comes_back(place: Path) -> None:
    loop = Loop()
    listening = server.Server(loop, lambda *_: None)
    try:
        for spoil in (lambda: os.unlink("sock"), lambda: os.rename("sock", "elsewhere"), lambda: None):
            spoil()
            listening._check()
            with socket.socket(socket.AF_UNIX) as connection:
                connection.connect("sock")
            assert stat.S_IMODE(os.stat("sock").st_mode) == 0o600
    finally:
        listening.close()
        loop.close()
    assert not os.path.exists("sock")


# ---------------------------------------------------------------- input


def test_input_to_what_has_ended_is_refused(registry: Registry) -> None:
    from session_magics import SessionNotRunning

    session = registry.start("over", Command(("sh", "-c", "trap '' HUP; sleep 1000 & exit 0")))
    session.wait(DEADLINE)
    assert isinstance(session.state(), Exited)
    with pytest.raises(SessionNotRunning):
        session.send("x")


def test_a_session_whose_directory_was_removed_can_still_be_ended(registry: Registry) -> None:
    import shutil

    session = registry.start("lost", Command(("sleep", "1000")))
    state, record = session.state(), registry.store.run(session.id)
    assert isinstance(state, Running)
    assert record
    tick = start_tick(state.pid)
    shutil.rmtree(session.directory)
    os.kill(record.holder, 15)
    until(lambda: not alive(record.holder, record.holder_tick))
    assert not alive(state.pid, tick)
