"""Lines 39 to 41 and 43: who else is on the machine gets nothing, whatever is sent or named; see also line 42."""

from __future__ import annotations

import contextlib
import os
import random
import re
import socket
import stat
import struct
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

import holders
from holders import MB, descriptors, holder, memory
from rounds import DEADLINE, rounds, until, until_gone
from session_magics import Command, Registry, Session, UsageMistake, run_cell
from session_magics.holder import server, wire
from session_magics.testing import FakeBackend
from terminals import attached

BACKENDS = ("native", "tmux")
DETACH = b"\x1c"
NOBODY = 65534
EXTRA = 5 * MB

pytestmark = [
    pytest.mark.skipif(sys.platform != "linux", reason="finds processes through /proc"),
    pytest.mark.timeout(120),
]


session = holders.echoing


def knock(session: Session) -> socket.socket:
    """A bare connection, with the holder's greeting still unread."""
    connection = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    connection.settimeout(DEADLINE)
    until(lambda: not connection.connect_ex(str(session.directory / "sock")))  # not at once while many others wait
    return connection


def served(session: Session, word: str = "hello") -> None:
    """An honest client gets what it asks for."""
    at = session.info().log_bytes
    session.send(word)
    until(lambda: word.encode() in session.output(at), what=lambda: session.output(at))


# ---------------------------------------------------------------- other users


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can become another user")
def test_line_39_another_user_is_neither_let_in_nor_served(session: Session, root: Path) -> None:
    everything = [root, *root.rglob("*")]
    assert len(everything) > 8
    for path in everything:
        for deed in (open_it, delete, rename):
            assert as_nobody(lambda: deed(path)) == "PermissionError", path  # noqa: B023
        assert path.exists()
    assert as_nobody(lambda: stranger(session)) == "PermissionError"
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


def open_it(path: Path) -> None:
    if path.is_socket():
        raise AssertionError("it can be seen")
    os.listdir(path) if path.is_dir() else path.read_bytes()


def delete(path: Path) -> None:
    path.rmdir() if path.is_dir() else path.unlink()


def rename(path: Path) -> None:
    path.rename(path.with_name("mine"))


def as_nobody(call: Callable[[], object]) -> str:
    """Call it in a child process of another user; the name of the exception that it ended with."""
    reading, writing = os.pipe()
    pid = os.fork()
    if not pid:
        try:
            os.setgroups([])
            os.setresgid(NOBODY, NOBODY, NOBODY)
            os.setresuid(NOBODY, NOBODY, NOBODY)
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


@pytest.mark.parametrize("backend", BACKENDS)
def test_line_39_only_the_owner_can_reach_anything(registry: Registry, root: Path, backend: str) -> None:
    program = registry.start("cat", Command(("sh", "-c", "umask; exec cat")), backend=backend)
    run_cell(registry.shell("main", lifetime="detached", rc=False), "true")
    for folder, _, files in os.walk(root):
        assert stat.S_IMODE(os.stat(folder).st_mode) == 0o700, folder
        for name in files:
            assert not stat.S_IMODE(os.stat(f"{folder}/{name}").st_mode) & 0o077, f"{folder}/{name}"
    umask = os.umask(0)
    os.umask(umask)
    program.wait_for(f"{umask:04o}", DEADLINE)  # and the program has the mask of whoever started it


STARTED = """
import os
os.umask(0)
from session_magics import Command, Registry
session = Registry(sys.argv[1]).start("cat", Command(("cat",)))
os.unlink(session.directory / "sock")
session.stop()
"""


def test_line_39_the_socket_is_never_open_to_others(root: Path, traced: Callable[..., list[str]]) -> None:
    """Not even between bind and a chmod: the mask is set before, and nothing changes a mode after."""
    calls = traced(STARTED, root, calls="umask,bind,chmod,fchmod,fchmodat")
    binds = [number for number, line in enumerate(calls) if "bind(" in line and '"sock"' in line]
    assert binds
    for at in binds:
        pid = calls[at].split()[0]
        before = [line for line in calls[:at] if line.split()[0] == pid]
        assert re.search(r"umask\(0177\)", before[-1]), before
    assert not [line for line in calls if "chmod" in line and "sock" in line]


# ---------------------------------------------------------------- rude clients


def test_line_40_pueue_619_noise_harms_nobody(session: Session) -> None:
    draw, pid = random.Random(40), holder(session)
    kinds = [wire.WATCH, wire.INPUT, wire.RESIZE, wire.RUN, wire.PROBE, b"x", b"\0", b"\xff"]
    before = memory(pid)
    for number in range(rounds(20_000, 100_000)):
        row = [draw.choice([draw.randbytes(draw.randrange(20)), b"1", b"%d" % draw.randrange(200)]) for _ in range(3)]
        frame = bytearray(wire.frame(draw.choice(kinds), *row[: draw.randrange(4)]))
        for _ in range(draw.randrange(3)):
            frame[draw.randrange(len(frame))] = draw.randrange(256)
        if frame[:1] in (wire.STOP, wire.RESTART, wire.INTERRUPT) or b"\x03" in frame:
            continue  # what asks for the end of the program may have it
        with knock(session) as connection, contextlib.suppress(ConnectionError):
            connection.sendall(frame[: draw.choice([len(frame), draw.randrange(1, len(frame) + 1)])])
        if number % 500 == 0:
            served(session, f"after {number}")
    served(session)
    assert memory(pid) - before <= EXTRA


def test_line_40_an_honest_client_is_served_among_hundreds_that_say_nothing(session: Session) -> None:
    """Half of them have begun a frame and never end it; some go on with it, a byte at a time."""
    pid = holder(session)
    before, opened = memory(pid), descriptors(pid)
    with contextlib.ExitStack() as stack:
        slow = []
        for number in range(500):
            connection = stack.enter_context(knock(session))
            if number % 2:
                with contextlib.suppress(ConnectionError):
                    connection.sendall(wire.INPUT + struct.pack(">I", MB) + b"\0\0")
                slow.append(connection)
        for turn in range(20):
            for connection in slow:
                with contextlib.suppress(ConnectionError):
                    connection.sendall(b"z")
            served(session, f"turn {turn}")
        assert descriptors(pid) <= server.CLIENT_LIMIT + 20
        assert memory(pid) - before <= EXTRA
    until(lambda: descriptors(pid) <= opened, what=lambda: descriptors(pid))


# ----------------------------------------------------------------------- names

GOOD = ["a", "A", "0.-_", "Name", "name", "NAME", "x" * 64, "con", "nul.txt", "CVS", "names", "sessions", "a..b", "a."]
BAD = [
    *("", ".", "..", "...", ".hidden", "-a", "_a", "../x", "../../x", "a/../../x", "/etc/x", "~/x", "a/b", "a\\b"),
    *("a\0b", "a\n", "\na", "a\r", "a\tb", "\x1b[31m", "\x7f", "a\x85", "a b", " a", "a ", "x" * 65, "x" * 300),
    *("x" * 100_000, "ä", "е", "ｎａｍｅ", "na\u200bme", "name\u202e", "ﬀ", "İ", "ı", "\u212a", "😀", "a\ud800"),
    *("a@", "@a", "a@../x", "a@b@c", "a@b/c", "*", "?", "[a]", "$HOME", "`id`", "$(id)", "a;b", "a|b", "%s", "{}"),
    *("C:\\x", "a:b", "file://x", "http://x/"),
]


def test_line_41_no_name_makes_a_file_outside_of_the_root(root: Path) -> None:
    outside = root.parent
    inside, around = root / "in" / "there", root / "in"
    around.mkdir(mode=0o700)
    with FakeBackend({"true": lambda terminal: 0}) as backend:
        registry = Registry(inside, backend=backend)
        program = Command(("true",))
        files = sorted(around.rglob("*"))
        for name in BAD:
            for ask in ("start", "start of a kernel's", "remove", "restart"):
                with pytest.raises((UsageMistake, LookupError)) as caught:
                    asked(registry, ask, name)
                    pytest.fail(f"{ask} of {name!r} was done")
                assert len(str(caught.value)) < 300 and str(caught.value).isprintable(), (ask, name)
            assert sorted(around.rglob("*")) == files, name
        for name in GOOD:
            registry.start(name, program)
        assert sorted(info.name for info in registry.infos()) == sorted(GOOD)
        assert sorted(os.listdir(around)) == ["there"] and outside.exists()
        assert {path.name for path in inside.iterdir()} <= {"names", "sessions", "lock", "swept"}
        assert sorted(os.listdir(inside / "names")) == sorted(GOOD)


def asked(registry: Registry, what: str, name: str) -> None:
    match what:
        case "remove":
            registry.remove(name, force=True)
        case "restart":
            registry.restart(name)
        case _:
            registry.start(name, Command(("true",)), lifetime="detached" if what == "start" else "kernel")


# --------------------------------------------------------------------- secrets


@pytest.mark.parametrize("backend", BACKENDS)
def test_line_43_no_secret_is_stored(registry: Registry, root: Path, backend: str) -> None:
    """The words of a command are no secrets: they are what the session is, and every user's ``ps`` shows them."""
    secrets = ["env-5f2a", "typed-77b1", "shell-env-90cc", "answer-31e0", "attached-8d4f"]
    script = 'stty -echo; echo up; read one; read two; echo "${#one} ${#two} ${#TOKEN}"; read end'
    session = registry.start("keeper", Command(("sh", "-c", script), env={"TOKEN": secrets[0]}), backend=backend)
    session.wait_for("up", DEADLINE)
    session.send(secrets[1] + "\n")
    with attached("keeper") as terminal:
        terminal.told("detaches")
        terminal.type(secrets[4] + "\r")
        session.wait_for(f"{len(secrets[1])} {len(secrets[4])} {len(secrets[0])}", DEADLINE)
        terminal.type(DETACH)
        assert terminal.wait() == 0
    shell = registry.shell("main", env={"TOKEN": secrets[2]}, lifetime="detached", rc=False)
    run_cell(shell, 'test -n "$TOKEN"')
    cell = shell.cell('stty -echo; echo ask; read answer; stty echo; test -n "$answer"')
    try:
        shell.wait_for("ask", DEADLINE)
        cell.send(secrets[3].encode() + b"\n", secret=True)
        while cell.result is None:
            cell.receive(5)
        assert cell.result.returncode == 0
    finally:
        cell.close()
    session.interrupt()
    until_gone(session)  # with the records of its end
    registry.restart("main")
    for folder, _, files in os.walk(root):
        for name in files:
            path = Path(folder, name)
            if path.is_file():
                content = path.read_bytes()
                assert not [secret for secret in secrets if secret.encode() in content], path
