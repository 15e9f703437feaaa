"""Waiting, following, tailing and sending: true over any number of watchers, restarts and lost holders."""

from __future__ import annotations

import os
import re
import signal
import statistics
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rounds import DEADLINE, until
from session_magics import (
    Command,
    Exited,
    Lost,
    Registry,
    Session,
    SessionNotRunning,
    UsageMistake,
    WaitTimeout,
    run_cell,
)
from session_magics.backends.native import NativeBackend, NativeLink
from session_magics.news import STATE_CHECK
from session_magics.testing import FakeBackend, FakeTerminal, Signalled, script
from session_magics.text.window import WINDOW_BYTES, Window

PROJECT = str(Path(__file__).parent.parent)
GRACE = 60.0  # seconds, which no test sits out


@pytest.fixture
def real(root: Path) -> Iterator[Registry]:
    registry = Registry(root)
    yield registry
    registry.stop_all(now=True)


@pytest.fixture
def backend() -> Iterator[FakeBackend]:
    with FakeBackend() as backend:
        yield backend


@pytest.fixture
def play(root: Path, backend: FakeBackend) -> Callable[..., Session]:
    """Start a function as a session."""

    def start(program: Callable[[FakeTerminal], int | None], name: str = "one", **options: object) -> Session:
        backend._programs[name] = program
        return Registry(root, backend=backend).start(name, Command((name,)), **options)  # type: ignore[arg-type]

    return start


def python(code: str) -> Command:
    return Command((sys.executable, "-I", "-S", "-u", "-c", code))


def in_thread(work: Callable[[], object]) -> tuple[threading.Thread, list[object]]:
    """Run in a thread; its result, or what it raised, ends up in the list."""
    found: list[object] = []

    def run() -> None:
        try:
            found.append(work())
        except BaseException as error:
            found.append(error)

    thread = threading.Thread(target=run)
    thread.start()
    return thread, found


# -------------------------------------------------------------------- waiting


def test_wait_gives_the_code_or_minus_the_signal(play: Callable[..., Session]) -> None:
    def dies(_: FakeTerminal) -> int:
        raise Signalled(signal.SIGSEGV)

    assert play(script(code=3)).wait(DEADLINE) == 3
    assert play(dies, "two").wait(DEADLINE) == -signal.SIGSEGV


def test_wait_wakes_soon_after_the_exit(real: Registry) -> None:
    late = []
    for _ in range(5):
        session = real.start("one", Command(("sh", "-c", "read word")))
        thread, waited = in_thread(lambda: (session.wait(DEADLINE), time.time()))  # noqa: B023  it is joined below
        session.send("\r")
        thread.join()
        [(code, at)], state = waited, session.state()
        assert isinstance(state, Exited) and code == 0
        late.append(at - state.at)
    # Of several, as a machine may stall in one; who looks for the end from time to time is late in half of them.
    assert statistics.median(late) < STATE_CHECK / 4, late


def test_a_wait_that_times_out_leaves_the_session_as_it_is(real: Registry) -> None:
    session = real.start("one", Command(("sleep", "60")))
    began = time.monotonic()
    with pytest.raises(WaitTimeout, match=r"the end not seen within 0\.2 s; it goes on"):
        session.wait(0.2)
    with pytest.raises(WaitTimeout, match=r"'ready' not seen within 0\.2 s"):
        session.wait_for("ready", 0.2)
    assert 0.4 <= time.monotonic() - began < DEADLINE
    assert session.info().running


def test_waiting_costs_one_connection_and_next_to_no_time(real: Registry, monkeypatch: pytest.MonkeyPatch) -> None:
    connections = []
    connect = NativeBackend.connect

    def counted(self: NativeBackend, directory: Path, name: str) -> NativeLink:
        connections.append(name)
        return connect(self, directory, name)

    monkeypatch.setattr(NativeBackend, "connect", counted)
    session = real.start("one", python("import time\nfor i in range(20): print(i); time.sleep(0.05)\nprint('done')"))
    began = time.process_time()
    assert session.wait_for("^done$", DEADLINE) == "done"
    assert connections == ["one"]
    assert time.process_time() - began < 0.5, "of a second and more that it took"
    with pytest.raises(WaitTimeout):
        real.start("two", Command(("sleep", "60"))).wait(1.2)
    assert connections == ["one", "two"]


def test_a_pattern_is_found_over_pieces_and_after_much_output(play: Callable[..., Session]) -> None:
    def program(terminal: FakeTerminal) -> None:
        for piece in ("Serv", "ing on \x1b[1m80", "00\x1b[0m\n", "x" * 3_000_000, "\nat l", "ast\n"):
            terminal.write(piece)
            terminal.pause(0.02)
        terminal.pause()

    session = play(program)
    assert session.wait_for(r"Serving on \d{4}", DEADLINE) == "Serving on 8000"
    assert session.wait_for("^at last$", DEADLINE) == "at last"
    assert session.wait_for("Serving", DEADLINE) == "Serving", "what is kept is looked at from its start"


def test_a_pattern_that_never_came_is_told_with_the_end(play: Callable[..., Session]) -> None:
    session = play(script("hello\n", code=4))
    with pytest.raises(SessionNotRunning, match="exited 4 before 'ready' appeared"):
        session.wait_for("ready", DEADLINE)
    for pattern in ("(", "a{99999999999}", "(" * 5000):
        with pytest.raises(UsageMistake, match="no regular expression"):
            session.wait_for(pattern)


def test_a_pattern_that_any_output_matches_is_refused(play: Callable[..., Session]) -> None:
    session = play(script("hello\n\nworld|"))
    for pattern in ("|", "", "a*", "^", "$", "(x|)"):
        with pytest.raises(UsageMistake, match="matches any output"):
            session.wait_for(pattern)
    with pytest.raises(UsageMistake, match=r"write \\\| for"):
        session.wait_for("|")
    assert session.wait_for(r"\|", DEADLINE) == "|" and session.wait_for("^$", DEADLINE) == ""


@given(st.lists(st.binary(min_size=1, max_size=40), max_size=12), st.integers(0, 400))
def test_a_window_finds_what_is_there_however_it_is_cut(pieces: list[bytes], at: int) -> None:
    data = b"\n".join(piece.replace(b"\x1b", b"").replace(b"\r", b"").replace(b"\b", b"") for piece in pieces)
    data = data[:at] + b"\nneedle-17;\n" + data[at:]
    window = Window(re.compile(r"^needle-\d+;$", re.M))
    found = [match for start in range(0, len(data), 7) if (match := window.feed(data[start : start + 7]))]
    assert found[:1] == ["needle-17;"]


def test_a_window_keeps_little() -> None:
    window = Window(re.compile("never"))
    for _ in range(100):
        assert window.feed(b"line of text\n" * 5000) is None
    assert len(window._kept) <= WINDOW_BYTES


# ------------------------------------------------------------------ following


def test_two_processes_follow_and_send_at_once(real: Registry) -> None:
    code = "import sys, tty\ntty.setraw(0)\nprint('ready')\nfor _ in range(200): sys.stdout.write(sys.stdin.read(1))"
    session = real.start("one", python(code))
    session.wait_for("ready", DEADLINE)
    child = (
        f"import sys; sys.path.insert(0, {PROJECT!r})\nfrom session_magics import Registry\n"
        f"import threading\ns = Registry({str(real.store.root)!r}).get('one')\nfollowed = s.follow(0)\n"
        "def send():\n  for _ in range(100): s.send('b')\n"
        "t = threading.Thread(target=send)\nt.start()\nprint(b''.join(followed).hex())\nt.join()"
    )
    other = subprocess.Popen([sys.executable, "-c", child], stdout=subprocess.PIPE, text=True)
    thread, mine = in_thread(lambda: b"".join(session.follow(0)))
    for _ in range(100):
        session.send("a")
    theirs = bytes.fromhex(other.communicate(timeout=GRACE)[0].strip())
    thread.join()
    assert mine == [theirs] == [session.output()]
    assert (theirs.count(b"a") - 1, theirs.count(b"b")) == (100, 100)  # "ready" has an a


def test_follow_and_wait_go_through_restarts(real: Registry) -> None:
    code = (
        "import os, signal, time\nsignal.signal(signal.SIGTERM, lambda *_: (os.write(1, b'bye\\n'), os._exit(3)))\n"
        "os.write(1, b'up\\n')\n"  # in one piece
    )
    session = real.start("one", python(code + "while True: time.sleep(60)"))
    session.wait_for("up", DEADLINE)
    follower, followed = in_thread(lambda: b"".join(session.follow(0)))
    waiter, waited = in_thread(lambda: session.wait(GRACE))
    for generation in (2, 3, 4):
        begin = len(session.output())
        real.restart("one", grace=GRACE)
        session.wait_for("up", DEADLINE, begin=begin)
        assert session.info().generation == generation
        assert follower.is_alive() and waiter.is_alive()
    session.stop(GRACE)
    follower.join(DEADLINE)
    waiter.join(DEADLINE)
    assert followed == [b"up\r\nbye\r\n" * 4] and waited == [3]


def test_wait_goes_through_restarts_by_policy(play: Callable[..., Session]) -> None:
    tries = []

    def program(terminal: FakeTerminal) -> int:
        tries.append(1)
        terminal.write(f"try {len(tries)}\n")
        return 0 if len(tries) == 3 else 1

    session = play(program, restart="on-failure")
    assert session.wait(DEADLINE) == 0
    assert session.output() == b"try 1\ntry 2\ntry 3\n"


def test_a_lost_holder_ends_follow_and_wait_at_once_and_is_never_zero(real: Registry) -> None:
    session = real.start("one", Command(("sh", "-c", "echo up; exec sleep 60")))
    session.wait_for("up\n", DEADLINE)
    run = real.store.run(session.id)
    assert run is not None
    follower, followed = in_thread(lambda: b"".join(session.follow(0)))
    waiter, waited = in_thread(lambda: session.wait(GRACE))
    patterns, found = in_thread(lambda: session.wait_for("never", GRACE))
    os.kill(run.holder, signal.SIGKILL)
    for thread in (follower, waiter, patterns):
        thread.join(DEADLINE)
        assert not thread.is_alive()
    assert followed == [b"up\r\n"]
    assert isinstance(waited[0], SessionNotRunning) and isinstance(found[0], SessionNotRunning)
    assert session.state() == Lost("holder killed")
    session.stop(now=True)  # its program has lost the terminal, and goes by the cookie


def test_a_holder_lost_in_process_is_told_the_same_way(play: Callable[..., Session], backend: FakeBackend) -> None:
    session = play(lambda terminal: terminal.pause())
    waiter, waited = in_thread(lambda: session.wait(GRACE))
    backend.lose(session.id)
    waiter.join(DEADLINE)
    assert isinstance(waited[0], SessionNotRunning) and session.state() == Lost("holder killed")


def test_a_follower_that_leaves_gives_everything_back(real: Registry) -> None:
    session = real.start("one", Command(("sh", "-c", "echo up; exec sleep 60")))
    before = len(os.listdir("/proc/self/fd"))
    for _ in session.follow(0):
        break
    until(lambda: len(os.listdir("/proc/self/fd")) == before)


# ------------------------------------------------------------------ the screen


def test_tail_is_what_a_person_would_read(play: Callable[..., Session]) -> None:
    output = "one\n\x1b[31mtwo\x1b[0m\nthree\u2028still three\n 10%\r 50%\r100%\nlast"
    session = play(script(output))
    session.wait(DEADLINE)
    assert session.tail(3) == "three\u2028still three\n100%\nlast"
    assert session.tail(100) == "one\ntwo\nthree\u2028still three\n100%\nlast"
    assert session.tail(0) == ""
    done = play(script("a\nb\n"), "two")
    done.wait(DEADLINE)
    assert done.tail(1) == "b"


def test_snapshot_is_the_screen_in_its_size(play: Callable[..., Session]) -> None:
    session = play(script("\x1b[2J\x1b[2;3Hhere\x1b[1;1Hthere"), size=(5, 20))
    session.wait(DEADLINE)
    assert session.snapshot() == "there\n  here"


# ----------------------------------------------------------------------- input


def test_send_to_an_idle_shell_says_that_nobody_reads_it(real: Registry) -> None:
    session = real.shell("main", rc=False)
    with pytest.raises(UsageMistake, match=r"no command runs in session 'main'.*%%sh_session main"):
        session.send("echo hello\r")
    thread, results = in_thread(
        lambda: run_cell(session, "read answer; echo got $answer", asker=None, timeout=DEADLINE)
    )
    until(lambda: session.command() is not None)
    assert session.command() == "read answer; echo got $answer"
    session.send("yes\r")
    thread.join(DEADLINE)
    assert not isinstance(results[0], BaseException), results
    assert b"got yes" in session.output()
    assert session.command() is None


def test_sending_to_what_has_ended_says_how_it_ended(play: Callable[..., Session]) -> None:
    session = play(script(code=2))
    session.wait(DEADLINE)
    with pytest.raises(SessionNotRunning, match="exited 2"):
        session.send("x")
    with pytest.raises(SessionNotRunning):
        session.interrupt()
    with pytest.raises(UsageMistake):
        session.resize(0, 80)


def test_the_repr_is_one_line_with_name_state_and_pid(real: Registry) -> None:
    session = real.start("one", Command(("sleep", "60"), env={"SECRET": "x"}))
    assert repr(session) == f"<Session one running pid={session.info().pid}>"
    session.stop(now=True)
    assert re.fullmatch(r"<Session one (killed by signal \d+|exited \d+)>", repr(session))
