"""Sessions whose terminal tmux has: what could only go wrong there. All else is in the conformance checks."""

from __future__ import annotations

import contextlib
import json
import os
import pty
import re
import select
import shlex
import shutil
import signal
import statistics
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import psutil
import pytest

import leaks
from holders import bare, private
from rounds import DEADLINE, alive, rounds, until, until_state
from session_magics import (
    Command,
    Exited,
    Lost,
    Registry,
    Running,
    Session,
    StartFailed,
    UsageMistake,
)
from session_magics.backends import Start
from session_magics.backends.choice import abandoned
from session_magics.backends.native import NativeBackend
from session_magics.backends.tmux import TmuxBackend
from session_magics.environment import environment
from session_magics.holder import gate, processes, tmux, trees
from session_magics.listing import Observer
from session_magics.store.records import read_spec, spec_bytes
from session_magics.verbs.actions import Verbs
from session_magics.verbs.parser import parse_verb

pytestmark = [
    pytest.mark.skipif(shutil.which("tmux") is None, reason="needs tmux"),
    pytest.mark.skipif(sys.platform != "linux", reason="finds processes through /proc"),
]

QUICK = rounds(40, 1000)
LIMIT = DEADLINE  # seconds for what takes milliseconds
OWN_MOST = 1.4 * 2**20  # bytes of a holder beyond an interpreter that does nothing
PYTHON = (sys.executable, "-I", "-S", "-u", "-c")
STUBBORN = "import signal, time\nsignal.signal(signal.SIGHUP, signal.SIG_IGN)\nprint('ready')\ntime.sleep(1000)"


@pytest.fixture
def registry(root: Path) -> Iterator[Registry]:
    opened = Registry(root, backend="tmux")
    yield opened
    opened.stop_all(now=True)


def run(session: Session) -> tuple[int, int]:
    """Holder and program."""
    record = session._store.run(session.id)
    assert record
    return record.holder, record.pid


def server_of(session: Session) -> psutil.Process:
    """The tmux server, which is the parent of the pane's process, and that of the program."""
    server = psutil.Process(run(session)[1]).parents()[1]
    assert server.name().startswith("tmux"), server
    return server


def ask(session: Session, *words: str) -> str:
    """What tmux answers, asked as a person in another terminal would."""
    argv = ["tmux", "-S", str(session.directory / "tmux"), *words]
    return subprocess.run(argv, check=True, capture_output=True, text=True, env=plain()).stdout.strip()


def plain() -> dict[str, str]:
    return {key: value for key, value in os.environ.items() if key not in ("TMUX", "TMUX_PANE")}


def gone(*processes_: psutil.Process) -> None:
    left = leaks.outlived(processes_, LIMIT)
    assert not left


def cmdline(process: psutil.Process) -> list[str]:
    with contextlib.suppress(psutil.Error):
        return process.cmdline()
    return []


def kill(pid: int) -> None:
    """SIGKILL, and wait until nothing of the process is left but its name."""
    tick = processes.start_tick(pid)
    os.kill(pid, signal.SIGKILL)
    until(lambda: not alive(pid, tick))


# --------------------------------------------------------------------- bytes


@pytest.mark.timeout(rounds(60, 600))
def test_a_program_that_ends_at_once_loses_no_byte(registry: Registry) -> None:
    """SEEDS B13."""
    for number in range(QUICK):
        size = (1, 60, 5000, 70_000)[number % 4]
        text = f"{number:05d}" + "x" * size
        code = f"import os; os.write(1, b'{number:05d}' + b'x' * {size}); os._exit({number % 256})"
        session = registry.start("quick", Command((*PYTHON, code)))
        assert session.wait(LIMIT) == number % 256
        assert session.output() == text.encode()


def test_all_output_is_in_the_log_and_only_the_last_lines_in_tmux(registry: Registry) -> None:
    session = registry.start("many", Command(("sh", "-c", "seq 50000; echo done; sleep 1000")))
    session.wait_for("done", LIMIT)
    assert session.output() == b"".join(b"%d\r\n" % number for number in range(1, 50001)) + b"done\r\n"
    assert 0 < int(ask(session, "display", "-p", "#{history_size}")) <= tmux.HISTORY_LINES


def test_output_goes_on_when_somebody_has_closed_the_pipe(registry: Registry) -> None:
    session = registry.start("told", Command(("sh", "-c", "echo one; while read line; do echo got $line; done")))
    session.wait_for("one", LIMIT)
    ask(session, "pipe-pane", "-t", "%0")
    events = session.directory / "log.idx"
    until(lambda: b"had closed the pipe" in events.read_bytes())
    session.send("two\r")
    session.wait_for("got two", LIMIT)


def test_a_question_to_the_terminal_is_answered_once(registry: Registry) -> None:
    code = """
import os, select, sys, tty
tty.setraw(0)
os.write(1, b"\\x1b[5n\\x1b[6n")
heard, wanted = b"", len(b"\\x1b[0n\\x1b[1;1R")
while select.select([0], [], [], 20 if len(heard) < wanted else 0.5)[0]:
    heard += os.read(0, 100)
print(repr(heard))
"""
    session = registry.start("asks", Command((*PYTHON, code)))
    session.wait(2 * LIMIT)
    assert session.output().endswith(rb"b'\x1b[0n\x1b[1;1R'" + b"\n"), session.output()


# ----------------------------------------------------------------- the server


def test_a_killed_server_loses_one_session_and_leaves_nothing(registry: Registry) -> None:
    """tmux/tmux#2626: the state is never a wrong one, and the others live."""
    other = registry.start("other", Command(("sleep", "1000")))
    session = registry.start("one", Command((*PYTHON, STUBBORN)))
    session.wait_for("ready", LIMIT)
    holder, program = map(psutil.Process, run(session))
    server_of(session).kill()
    gone(holder, program)
    assert session.state() == Lost("its tmux server has ended")
    assert isinstance(other.state(), Running)
    assert not abandoned(session.directory)


def test_a_program_that_the_server_took_along_has_no_code(registry: Registry) -> None:
    session = registry.start("one", Command(("sleep", "1000")))
    assert ask(session, "kill-server") == ""
    assert until_state(session, Lost) == Lost("its tmux server has ended")
    with pytest.raises(Exception, match="tmux server"):
        session.wait(LIMIT)


@pytest.mark.parametrize("end", ["stop", "stop --all", "start", "restart", "remove"])
def test_a_program_that_outlives_its_holder_is_lost_and_can_be_ended(registry: Registry, end: str) -> None:
    session = registry.start("one", Command((*PYTHON, STUBBORN)))
    session.wait_for("ready", LIMIT)
    program, server = psutil.Process(run(session)[1]), server_of(session)
    kill(run(session)[0])
    assert session.state() == Lost("holder killed")
    assert program.is_running() and server.is_running(), "tmux holds it still"
    if end == "start":
        assert registry.start("one", Command(("sleep", "1000"))).info().running
    elif end == "restart":
        again = registry.restart("one").info()
        assert (again.running, again.generation, again.id) == (True, 2, session.id)
    elif end == "remove":
        registry.remove("one")
    elif end == "stop":
        session.stop()
    else:
        assert registry.stop_all() == ["one"]
        assert registry.stop_all() == [], "told once"
    gone(program, server)


def test_force_ends_what_has_wiped_its_environment(registry: Registry) -> None:
    session = registry.start("one", Command(("env", "-i", shutil.which("setsid") or "", "-w", *PYTHON, STUBBORN)))
    session.wait_for("ready", LIMIT)
    tree = [psutil.Process(run(session)[1]), *psutil.Process(run(session)[1]).children(recursive=True)]
    assert len(tree) == 2
    kill(run(session)[0])
    assert TmuxBackend().force(session.directory, session.id) == ()
    gone(*tree)


def test_a_holder_that_hangs_can_be_done_without(registry: Registry) -> None:
    session = registry.start("one", Command((*PYTHON, STUBBORN)))
    session.wait_for("ready", LIMIT)
    holder, program = map(psutil.Process, run(session))
    holder.suspend()
    session.stop(now=True)
    assert not program.is_running() or program.status() == psutil.STATUS_ZOMBIE
    holder.resume()
    gone(holder)
    state = session.state()
    assert isinstance(state, Exited) and state.signal in (signal.SIGTERM, signal.SIGKILL)


def test_a_stop_leaves_nothing_of_the_tree_below_the_pane(registry: Registry) -> None:
    code = "setsid sleep 1000 & (sleep 1000 &) ; trap '' TERM; echo ready; sleep 1000; sleep 1000"
    session = registry.start("tree", Command(("sh", "-c", code)))
    session.wait_for("ready", LIMIT)
    holder, server = psutil.Process(run(session)[0]), server_of(session)
    pids = list[int]()

    def grown() -> bool:
        pids[:] = trees.carrying(f"SESSION_MAGICS_SESSION={session.id}".encode())
        return len(pids) == 4

    until(grown, what=pids)
    tree = [psutil.Process(pid) for pid in pids]
    session.stop(0.2)
    gone(*tree, holder, server)
    assert sorted(os.listdir(session.directory)) == sorted(
        ["alive", "exit", "log.00000000000000000000", "log.idx", "run.json", "spec.json"]
    )


def test_a_background_child_does_not_delay_the_end(registry: Registry) -> None:
    session = registry.start("one", Command(("sh", "-c", "trap '' HUP; sleep 1000 & exit 3")))
    state = until_state(session, Exited)
    assert isinstance(state, Exited) and (state.code, state.background) == (3, True)
    session.stop(now=True)
    assert session.state() == Exited(3, None, state.at)


def test_a_restart_by_policy_has_a_new_server_and_goes_on_with_the_log(registry: Registry) -> None:
    session = registry.start("again", Command(("sh", "-c", "echo run; sleep 0.1; exit 1")), restart="on-failure")
    until(lambda: session.info().generation >= 2)
    session.wait_for(r"run\s+run", LIMIT)
    session.stop()
    until(lambda: not abandoned(session.directory))


def test_a_session_of_a_kernel_ends_with_it(root: Path) -> None:
    code = """
import sys
from session_magics import Command, Registry
session = Registry(backend="tmux").start("mine", Command(("sleep", "1000")), lifetime="kernel")
print(session._store.run(session.id).pid, flush=True)
sys.stdin.read()
"""
    with subprocess.Popen([sys.executable, "-c", code], stdin=-1, stdout=-1, cwd=Path(__file__).parents[1]) as kernel:
        assert kernel.stdin and kernel.stdout
        program = psutil.Process(int(kernel.stdout.readline()))
        server = program.parents()[1]
        kernel.kill()
    gone(program, server)
    until(lambda: not list((root / "sessions").iterdir()))


def test_a_socket_that_was_deleted_comes_back(registry: Registry) -> None:
    """tmux/tmux#1036, #2222, #4057."""
    session = registry.start("one", Command(("sleep", "1000")), size=(24, 80))
    os.unlink(session.directory / "tmux")
    session.resize(30, 100)
    until(lambda: (session.directory / "tmux").exists())
    until(lambda: ask(session, "display", "-p", "#{window_height}x#{window_width}") == "30x100")


def test_many_resizes_end_with_the_last(registry: Registry) -> None:
    session = registry.start("one", Command(("sleep", "1000")))
    with session.link() as link:
        for rows in range(10, 60):
            link.resize(rows, 2 * rows)
    until(lambda: ask(session, "display", "-p", "#{window_height}x#{window_width}") == "59x118")
    assert session.info().size == (59, 118)


# ---------------------------------------------------------------------- people


@contextlib.contextmanager
def attached(command: str) -> Iterator[tuple[int, int]]:
    """A real terminal with a person's command in it: its descriptor and the pid."""
    pid, fd = pty.fork()
    if pid == 0:
        os.execvpe("sh", ["sh", "-c", f"exec {command}"], plain() | {"TERM": "xterm", "LC_ALL": "C.UTF-8"})
    try:
        yield fd, pid
    finally:
        with contextlib.suppress(ProcessLookupError):
            os.kill(pid, signal.SIGKILL)
        os.waitpid(pid, 0)
        os.close(fd)


def read_until(fd: int, wanted: bytes) -> bytes:
    seen = b""
    deadline = time.monotonic() + LIMIT
    while wanted not in seen:
        assert select.select([fd], [], [], max(0.0, deadline - time.monotonic()))[0], seen
        seen += os.read(fd, 65536)
    return seen


def test_tmux_attaches_as_info_says_and_shows_the_screen(registry: Registry) -> None:
    program = ("sh", "-c", "echo on the screen; while read line; do echo got $line; done")
    session = registry.start("web.v1", Command(program), size=(20, 70))
    session.wait_for("screen", LIMIT)
    told = str(Verbs(registry, print).call(parse_verb("info web.v1")))
    command = re.search(r"^attach +(tmux .*)$", told, re.M)
    assert command and re.search(r"^backend +tmux$", told, re.M)
    with attached(command[1]) as (fd, _):
        read_until(fd, b"on the screen")
        os.write(fd, b"typed\r")
        session.wait_for("got typed", LIMIT)
        read_until(fd, b"got typed")
        assert ask(session, "display", "-p", "#{window_height}x#{window_width}") == "20x70", "who attaches only looks"
        os.write(fd, b"\x02d")
        read_until(fd, b"detached")
    assert isinstance(session.state(), Running)
    session.stop(now=True)
    assert "attach" not in str(Verbs(registry, print).call(parse_verb("info web.v1")))


def test_who_is_attached_gets_the_terminal_back_at_the_end(registry: Registry) -> None:
    session = registry.start("one", Command(("sh", "-c", "echo hello; sleep 1000")))
    with attached(shlex.join(["tmux", "-S", str(session.directory / "tmux"), "attach", "-t", "=one:"])) as (fd, _):
        read_until(fd, b"hello")
        session.stop(now=True)
        read_until(fd, b"\x1b[?1049l")


# ----------------------------------------------------------------- environment


def test_two_registries_do_not_meet(root: Path, registry: Registry) -> None:
    one = registry.start("web", Command(("sleep", "1000")))
    other = Registry(root / "other", backend="tmux")
    two = other.start("web", Command(("sleep", "1000")))
    one.stop(now=True)
    assert isinstance(two.state(), Running)
    two.stop(now=True)


ODD = ('it\'s "a" $HOME `id`', "100%H#{pid}#(id)", "ü" * 80, "semi;")


@pytest.mark.parametrize("part", ODD, ids=lambda part: part[:8])
def test_any_directory_will_do(root: Path, part: str) -> None:
    registry = Registry(root / part, backend="tmux")
    session = registry.start("one", Command(("sh", "-c", "cat")))
    session.send("hello\r")
    session.wait_for("hello", LIMIT)
    session.resize(33, 99)
    server = server_of(session)
    program = run(session)[1]
    until(lambda: os.terminal_size((99, 33)) == terminal_size(program))
    session.stop(now=True)
    gone(server)


def terminal_size(pid: int) -> os.terminal_size:
    fd = os.open(f"/proc/{pid}/fd/0", os.O_RDONLY | os.O_NOCTTY)
    try:
        return os.get_terminal_size(fd)
    finally:
        os.close(fd)


def test_the_callers_tmux_is_ignored_and_the_programs_is_its_own(
    registry: Registry, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TMUX", "/nowhere/tmux,1,0")
    monkeypatch.setenv("TMUX_PANE", "%77")
    monkeypatch.setenv("TMUX_TMPDIR", "/nowhere")
    session = registry.start("env", Command(("sleep", "1000"), env={"A b": "c;\n#{pid}"}))
    program = run(session)[1]
    env = processes.read_file(f"/proc/{program}/environ").split(b"\0")
    found = dict(os.fsdecode(one).split("=", 1) for one in env if one)
    assert found.pop("TMUX").startswith(f"{session.directory}/tmux,")
    assert found.pop("TMUX_PANE") == "%0"
    wanted = environment({"A b": "c;\n#{pid}"}, session_id=session.id, shell=False)
    assert found == {name: value for name, value in wanted.items() if name not in ("TMUX", "TMUX_PANE")}
    assert sorted(os.listdir(f"/proc/{program}/fd")) == ["0", "1", "2"]
    ignored = re.search(r"^SigIgn:\s(\w+)$", Path(f"/proc/{program}/status").read_text(), re.M)
    assert ignored and int(ignored[1], 16) & 0x7FFFFFFF == 0, "but for 32 and 33, which the C library keeps for itself"


@pytest.fixture
def fake_tmux(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The only tmux on the path, to be written by the test."""
    (tmp_path / "tmux").touch()
    monkeypatch.setenv("PATH", str(tmp_path))
    return tmp_path / "tmux"


@pytest.mark.parametrize("said", ["tmux 3.1c", "tmux 2.9a", "tmux 1.8", "screen 4.9", ""])
def test_a_tmux_that_is_too_old_is_refused_in_one_line(root: Path, fake_tmux: Path, said: str) -> None:
    fake_tmux.write_text(f"#!/bin/sh\necho '{said}'\n")
    fake_tmux.chmod(0o755)
    with pytest.raises(UsageMistake, match=r"3\.2 or newer is needed") as caught:
        Registry(root).start("one", Command(("/bin/true",)), backend="tmux")
    assert "\n" not in str(caught.value)
    assert Registry(root).infos() == []
    with pytest.raises(StartFailed, match=r"3\.2 or newer"):
        Registry(root, backend=TmuxBackend()).start("one", Command(("/bin/true",)))


def test_a_missing_tmux_is_told_and_auto_does_without(
    root: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(UsageMistake, match="no tmux on this machine"):
        Registry(root, backend="tmux").start("one", Command(("/bin/true",)))
    assert Registry(root).start("one", Command(("/bin/true",))).wait(LIMIT) == 0


def test_a_tmux_that_fails_leaves_nothing(root: Path, fake_tmux: Path) -> None:
    fake_tmux.write_text('#!/bin/sh\n[ "$1" = -V ] && echo tmux next-3.4 && exit\necho no room >&2\nexit 1\n')
    fake_tmux.chmod(0o755)
    with pytest.raises(StartFailed, match="tmux: no room"):
        Registry(root, backend="tmux").start("one", Command(("/bin/true",)))


def test_a_server_whose_holder_was_killed_while_it_started_goes(root: Path) -> None:
    words = [sys.executable, "-I", "-S", gate.__file__, "program"]
    argv = [
        "tmux",
        "-S",
        str(root / "tmux"),
        "-f",
        os.devnull,
        "start-server",
        ";",
        "set",
        "-g",
        "remain-on-exit",
        "on",
    ]
    subprocess.run([*argv, ";", "new-session", "-d", "--", *words], check=True, cwd=root, env=plain())
    until(lambda: not [one for one in psutil.process_iter() if str(root / "tmux") in " ".join(cmdline(one))])


def test_a_program_whose_holder_was_killed_while_it_started_is_ended(
    root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    registry = Registry(root, backend="tmux")
    session = registry.start("one", Command((*PYTHON, STUBBORN)))
    session.wait_for("ready", LIMIT)
    program, server = psutil.Process(run(session)[1]), server_of(session)
    kill(run(session)[0])

    def fail(*_: object) -> None:
        raise StartFailed("one", "the holder ended at once")

    monkeypatch.setattr(NativeBackend, "start", fail)
    with pytest.raises(StartFailed):
        TmuxBackend().start(Start(read_spec(str(session.directory)), session.directory, {}))
    gone(program, server)


def test_the_interpreter_may_lie_in_any_directory(
    root: Path, registry: Registry, monkeypatch: pytest.MonkeyPatch
) -> None:
    place = root / "it's #{pid} %H #(id)"
    place.mkdir()
    (place / "python").symlink_to(os.path.realpath(sys.executable))
    monkeypatch.setattr(sys, "executable", str(place / "python"))
    session = registry.start("one", Command(("sh", "-c", "echo whole; exit 4")))
    assert (session.wait(LIMIT), session.output()) == (4, b"whole\r\n")


# --------------------------------------------------------------------- choosing


def test_the_record_says_who_holds_a_session(root: Path, registry: Registry) -> None:
    held = registry.start("held", Command(("sleep", "1000")))
    plain_one = registry.start("plain", Command(("sleep", "1000")), backend="native")
    shell = registry.shell("main", lifetime="detached", rc=False)
    assert [info.backend for info in Registry(root).infos()] == ["tmux", "native", "native"]
    rows = json.loads(Verbs(registry, print).call(parse_verb("list --json")))  # type: ignore[arg-type]
    assert [row["backend"] for row in rows["value"]] == ["tmux", "native", "native"]
    for session in (held, plain_one, shell):
        Registry(root).get(session.name).stop(now=True)  # which prefers the other
    assert not abandoned(held.directory)


def test_a_record_without_a_backend_is_native(registry: Registry) -> None:
    session = registry.start("old", Command(("true",)), backend="native")
    record = json.loads(spec_bytes(read_spec(str(session.directory))))
    assert record.pop("backend") == "native"
    (session.directory / "spec.json").write_text(json.dumps(record))
    assert (session.info().backend, session.info().argv) == ("native", ("true",))


def test_a_backend_that_is_not_to_be_had_is_refused(registry: Registry) -> None:
    with pytest.raises(UsageMistake, match="auto, native, tmux"):
        registry.start("one", Command(("true",)), backend="screen")
    with pytest.raises(UsageMistake, match="auto, native, tmux"):
        Registry(registry.store.root, backend="screen")
    with pytest.raises(UsageMistake, match="tmux holds no shells"):
        parse_verb("start main --shell bash --backend tmux")
    assert registry.infos() == []


def test_verbs_start_with_what_is_preferred_and_what_is_asked_for(root: Path) -> None:
    registry = Registry(root)
    verbs = Verbs(registry, print, backend="tmux")
    verbs.call(parse_verb("start one -- sleep 1000"))
    verbs.call(parse_verb("start two --backend native -- sleep 1000"))
    verbs.call(parse_verb("start main --shell bash"))
    assert [info.backend for info in registry.infos()] == ["tmux", "native", "native"]
    registry.stop_all(now=True)


LISTENER = "import socket, time; s = socket.create_server(('', 0)); print(s.getsockname()[1]); time.sleep(1000)"


def test_a_list_shows_what_the_program_uses(registry: Registry) -> None:
    session = registry.start("server", Command((*PYTHON, LISTENER)))
    port = int(session.wait_for(r"^\d+\s", LIMIT))
    (row,) = Observer().rows(registry.infos())
    assert row.usage and row.usage.ports == (port,) and row.usage.memory > 2**20


def test_a_session_that_was_started_in_another_is_not_ended_with_it(root: Path, registry: Registry) -> None:
    code = """
from session_magics import Command, Registry
Registry(backend="tmux").start("inner", Command(("sleep", "1000")))
print("started", flush=True)
import time
time.sleep(1000)
"""
    place = str(Path(__file__).parents[1])
    outer = registry.start("outer", Command((sys.executable, "-c", code), cwd=place))
    outer.wait_for("started", 2 * LIMIT)
    inner = registry.get("inner")
    program = psutil.Process(run(inner)[1])
    kill(run(inner)[0])  # its server is now below the holder of the outer one
    outer.stop(now=True)
    assert program.is_running() and program.status() != psutil.STATUS_ZOMBIE
    inner.stop()
    gone(program)


def test_a_pane_whose_own_process_is_killed_is_lost(registry: Registry) -> None:
    session = registry.start("one", Command((*PYTHON, STUBBORN)))
    session.wait_for("ready", LIMIT)
    program, server = psutil.Process(run(session)[1]), server_of(session)
    kill(program.ppid())
    assert until_state(session, Lost) == Lost("what waited for its program in tmux was killed")
    gone(program, server)


def test_a_program_that_is_suspended_by_a_key_goes_on(registry: Registry) -> None:
    """As natively, where the system does not let a program be stopped that nobody could continue."""
    session = registry.start("one", Command(("sh", "-c", "echo ready; while read line; do echo got $line; done")))
    session.wait_for("ready", LIMIT)
    session.send(b"\x1a")
    session.send("more\r")
    session.wait_for("got more", LIMIT)


def test_a_holder_of_a_pane_is_small(registry: Registry) -> None:
    for number in range(10):
        registry.start(f"s{number}", Command(("sleep", "1000")))
    own = [private(run(registry.get(info.name))[0]) for info in registry.infos()]
    assert statistics.mean(own) - bare() <= OWN_MOST
