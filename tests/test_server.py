"""The holder's socket: whoever is rude, slow or a stranger harms nobody; whoever asks properly is served."""

from __future__ import annotations

import contextlib
import hashlib
import os
import random
import select
import socket
import stat
import struct
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from rounds import alive, rounds, sessions, until
from session_magics import Command, Exited, Registry, Running, Session, SessionBusy, run_cell
from session_magics.holder import server, wire
from session_magics.holder.loop import Loop
from session_magics.holder.processes import start_tick

SERVED_WITHIN = 1.0  # seconds for an honest client
HALF_OPEN = 300

pytestmark = pytest.mark.timeout(rounds(60, 300))


@pytest.fixture
def registry(root: Path) -> Iterator[Registry]:
    with sessions(root) as opened:
        yield opened


@pytest.fixture
def session(registry: Registry) -> Iterator[Session]:
    """A program that echoes what it is sent, and has to outlive whatever the test does to its holder."""
    started = registry.start("cat", Command(("sh", "-c", "stty -echo -icanon; echo up; exec cat")))
    started.wait_for("up", 10)
    state = started.state()
    yield started
    assert started.state() == state
    assert not any(kind == "fault" for kind in kinds(started))


def kinds(session: Session) -> list[str]:
    from session_magics.log import EventReader

    return [event.kind for event in EventReader(session.directory).events()[0]]


def knock(session: Session) -> socket.socket:
    """A bare connection, with the holder's greeting still unread."""
    connection = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    connection.settimeout(5)
    until(lambda: not connection.connect_ex(str(session.directory / "sock")))  # not at once while many others wait
    return connection


def frames(connection: socket.socket) -> Iterator[tuple[bytes, list[bytes]]]:
    """What the holder says, until it hangs up."""
    decoder = wire.Decoder()
    while data := connection.recv(1 << 16):
        yield from decoder.feed(data)


def served(session: Session, word: str = "hello") -> None:
    """An honest client gets what it asks for."""
    began, at = time.monotonic(), session.info().log_bytes
    session.send(word)
    session.wait_for(word, SERVED_WITHIN, begin=at)
    assert time.monotonic() - began < SERVED_WITHIN


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


def test_pueue_619_noise_harms_nobody(session: Session) -> None:
    draw = random.Random(40)
    kinds = [wire.WATCH, wire.INPUT, wire.RESIZE, wire.INTERRUPT, wire.RUN, wire.PROBE, b"x", b"\0"]
    for number in range(rounds(2000, 20_000)):
        row = [draw.choice([draw.randbytes(draw.randrange(20)), b"1", b"%d" % draw.randrange(200)]) for _ in range(3)]
        frame = bytearray(wire.frame(draw.choice(kinds), *row[: draw.randrange(4)]))
        for _ in range(draw.randrange(3)):
            frame[draw.randrange(len(frame))] = draw.randrange(256)
        if frame[:1] in (wire.STOP, wire.RESTART, wire.INTERRUPT) or b"\x03" in frame:
            continue  # what asks for the end of the program may have it
        with knock(session) as connection, contextlib.suppress(ConnectionError):
            connection.sendall(frame[: draw.randrange(1, len(frame) + 1)])
        if number % 500 == 0:
            served(session, f"after {number}")
    served(session)


def test_an_honest_client_is_served_among_hundreds_that_say_nothing(session: Session, registry: Registry) -> None:
    record = registry.store.run(session.id)
    assert record
    with contextlib.ExitStack() as stack:
        for number in range(HALF_OPEN):
            connection = stack.enter_context(knock(session))
            if number % 2:
                with contextlib.suppress(ConnectionError):
                    connection.sendall(b"I\0\0")
        served(session)
        assert len(os.listdir(f"/proc/{record.holder}/fd")) <= server.CLIENT_LIMIT + 20
    until(lambda: len(os.listdir(f"/proc/{record.holder}/fd")) < 20)


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


@pytest.mark.skipif(rounds(1, 0) == 1, reason="waits 20 s: with SESSION_MAGICS_FULL=1")
def test_a_holder_brings_its_deleted_socket_back(registry: Registry) -> None:
    session = registry.start("cat", Command(("cat",)))
    (session.directory / "sock").unlink()
    until(lambda: (session.directory / "sock").exists(), server.SOCKET_CHECK + 5)
    session.send("hello\n")
    session.wait_for("hello", 5)


def test_only_the_owner_can_reach_anything(registry: Registry, root: Path) -> None:
    program = registry.start("cat", Command(("sh", "-c", "umask; exec cat")))
    shell = registry.shell("main", lifetime="detached", rc=False)
    run_cell(shell, "true")
    for folder, folders, files in os.walk(root):
        assert stat.S_IMODE(os.stat(folder).st_mode) == 0o700, folder
        for name in files:
            assert stat.S_IMODE(os.stat(f"{folder}/{name}").st_mode) == 0o600, f"{folder}/{name}"
        assert "sock" in files or "names" in folder or folders
    umask = os.umask(0)
    os.umask(umask)
    program.wait_for(f"{umask:04o}", 5)  # and the program has the mask of whoever started it


@pytest.mark.skipif(os.geteuid() != 0, reason="needs two users")
def test_another_user_is_neither_let_in_nor_served(session: Session, root: Path) -> None:
    assert as_nobody(lambda: stranger(session)) == "PermissionError"
    assert as_nobody(lambda: os.listdir(root)) == "PermissionError"
    for folder in (root, root / "sessions", session.directory, session.directory / "sock"):
        os.chmod(folder, 0o777)  # what the modes should have kept out
    try:
        assert as_nobody(lambda: stranger(session)) in ("Refused", "ConnectionResetError")
    finally:
        for folder in (root, root / "sessions", session.directory):
            os.chmod(folder, 0o700)
    served(session)


class Refused(Exception):
    """The holder hung up without a word."""


def stranger(session: Session) -> None:
    """Connect and wait for a greeting."""
    with socket.socket(socket.AF_UNIX) as connection:
        connection.connect(str(session.directory / "sock"))
        if not connection.recv(1):
            raise Refused


def as_nobody(call: object) -> str:
    """Call it in a child process of another user; the name of the exception that it ended with."""
    reading, writing = os.pipe()
    pid = os.fork()
    if not pid:
        try:
            os.setgroups([])
            os.setgid(65534)
            os.setuid(65534)
            call()
            os.write(writing, b"let in")
        except BaseException as error:
            os.write(writing, type(error).__name__.encode())
        finally:
            os._exit(0)
    os.close(writing)
    os.waitpid(pid, 0)
    with open(reading, "rb") as answer:
        return answer.read().decode()


# ---------------------------------------------------------------- input

# Reads a known number of bytes in raw mode and tells their hash.
READER = """
import hashlib, os, sys, termios, tty
tty.setraw(0)
print("ready", flush=True)
left, seen = int(sys.argv[1]), hashlib.sha256()
while left:
    data = os.read(0, left)
    seen.update(data)
    left -= len(data)
print("hash", seen.hexdigest(), flush=True)
os.read(0, 1)
"""


@pytest.mark.parametrize("size", [1, 1000, 4096, 5000, 65_537, 1024 * 1024])
def test_thurbox_651_a_raw_reader_gets_every_byte(registry: Registry, size: int) -> None:
    session = registry.start("reader", Command((sys.executable, "-I", "-S", "-c", READER, str(size))))
    session.wait_for("ready", 10)
    data = random.Random(size).randbytes(size)
    session.send(data)
    assert session.wait_for("hash [0-9a-f]{64}", 20) == f"hash {hashlib.sha256(data).hexdigest()}"


def test_a_program_that_does_not_read_makes_its_senders_busy_and_gets_no_half_message(registry: Registry) -> None:
    size, gate = 700_000, registry.store.root / "gate"
    os.mkfifo(gate)
    code = READER.replace("left, seen", f"open({str(gate)!r}).read()\nleft, seen")
    session = registry.start("deaf", Command((sys.executable, "-I", "-S", "-c", code, str(size + 5))))
    session.wait_for("ready", 10)
    first = random.Random(1).randbytes(size)
    session.send(first)
    began = time.monotonic()
    with pytest.raises(SessionBusy):
        session.send(b"y" * size)
    assert time.monotonic() - began < 1
    assert "ready" in session.tail()
    gate.write_text("go")
    sent = 0
    while not sent:
        with contextlib.suppress(SessionBusy):
            session.send(b"last!")
            sent = 5
    assert session.wait_for("hash [0-9a-f]{64}", 20) == f"hash {hashlib.sha256(first + b'last!').hexdigest()}"


def test_input_to_what_has_ended_is_refused(registry: Registry) -> None:
    from session_magics import SessionNotRunning

    session = registry.start("over", Command(("sh", "-c", "trap '' HUP; sleep 1000 & exit 0")))
    session.wait(timeout=10)
    assert isinstance(session.state(), Exited)
    with pytest.raises(SessionNotRunning):
        session.send("x")


def test_no_secret_is_stored(registry: Registry, root: Path) -> None:
    secrets = ["env-5f2a", "typed-77b1", "shell-env-90cc", "cell-set-1234"]
    session = registry.start(
        "keeper",
        Command(("sh", "-c", 'stty -echo; echo up; read line; echo "${#line} ${#TOKEN}"'), env={"TOKEN": secrets[0]}),
    )
    session.wait_for("up", 10)
    session.send(secrets[1] + "\n")
    session.wait_for(f"{len(secrets[1])} {len(secrets[0])}", 10)
    shell = registry.shell("main", env={"TOKEN": secrets[2]}, lifetime="detached", rc=False)
    run_cell(shell, 'test -n "$TOKEN"')
    registry.restart("main")
    for folder, _, files in os.walk(root):
        for name in files:
            path = Path(folder, name)
            if path.is_file():
                content = path.read_bytes()
                assert not [secret for secret in secrets if secret.encode() in content], path


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
