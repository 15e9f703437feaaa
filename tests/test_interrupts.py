"""Interrupts: none is lost, the foreground job alone hears them, repeating is harder, and no moment is harmful."""

from __future__ import annotations

import contextlib
import os
import re
import shutil
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from changed_holder import PATIENT, STALL, changed_holder
from conftest import LiveKernel
from live import answer, live_kernel, run_with
from rounds import DEADLINE, rounds, until
from session_magics import CellResult, Registry
from session_magics.shell import Cell

# Seconds between two presses that are two and not one.
APART = 0.4
# Seconds for which a command has been at what it does when the button is pressed.
AT_IT = 0.2
# Has a kernel start holders for which a second press is the harder one however late it comes, and tell each press that
# it has handed on.
PREPARED = """
import itertools, pathlib
from session_magics.backends import native
from session_magics.shell import Cell
native.HOLDER = pathlib.Path({holder!r})
def interrupt(cell, plain=Cell.interrupt, numbers=itertools.count(1)):
    plain(cell)
    pathlib.Path({place!r}, f"press-{{next(numbers)}}").touch()
Cell.interrupt = interrupt
"""


@pytest.fixture(scope="module")
def shared(client_loop: None, tmp_path_factory: pytest.TempPathFactory) -> Iterator[LiveKernel]:
    place = tmp_path_factory.mktemp("presses")
    with live_kernel() as live:
        prepared = PREPARED.format(holder=str(changed_holder(place, PATIENT)), place=str(live.cells.root))
        assert live.run(prepared).status == "ok"
        yield live


def press(live: LiveKernel, *, after: float = AT_IT) -> Callable[[], None]:
    """The action of pressing the stop button, a while later."""

    def interrupt() -> None:
        time.sleep(after)
        live.cells.interrupt(False)

    return interrupt


def presses(live: LiveKernel, count: int) -> Callable[[], None]:
    """The action of pressing it again and again, each time when the one before was handed on to the command."""

    def handed_on() -> int:
        return len(list(live.cells.root.glob("press-*")))

    def interrupts() -> None:
        for _ in range(count):
            before = handed_on()
            press(live, after=APART)()
            until(lambda: handed_on() > before)  # noqa: B023

    return interrupts


# ------------------------------------------------------------------ one press


def state_kept(live: LiveKernel, name: str) -> str:
    return live.run(f"%%sh_session {name}\necho $V $PWD; f; jobs | grep -c Running").text


@pytest.mark.parametrize(
    ("name", "job", "programs"),
    [
        ("program", "sleep 600", {"sleep 600"}),
        ("pipeline", "sleep 600 | cat", {"sleep 600", "cat"}),
        ("loop", "while :; do :; done", set()),
        ("subshell", "(sleep 600)", {"sleep 600"}),
        ("shell", "bash -c 'sleep 600; :'", {"sleep 600"}),
        ("read", "read x", set()),
        ("wait", "wait", set()),
    ],
)
def test_a_press_ends_the_foreground_job_and_nothing_else(
    shared: LiveKernel, name: str, job: str, programs: set[str]
) -> None:
    shared.run(f"%%sh_session {name}\nV=1; cd /usr; f() {{ echo F; }}; sleep 600 &")
    known = {pid for pid, _ in shared.cells.tagged()}
    before = state_kept(shared, name)

    def press_once_started() -> None:
        until(lambda: programs <= {line.strip() for pid, line in shared.cells.tagged() if pid not in known})
        press(shared)()

    outcome = run_with(shared, f"%%sh_session {name} --out text\necho go; {job}", ("go", press_once_started))
    assert outcome.error == f"CellInterrupted: the command in session '{name}' was interrupted"
    assert len(outcome.record.error["traceback"]) == 1
    assert shared.run("print(_exit_code, text.strip())").text == "130 go\n"
    assert state_kept(shared, name) == before == "1 /usr\nF\n1\n"


def test_an_interrupted_cell_is_a_keyboard_interrupt_for_python(shared: LiveKernel) -> None:
    code = (
        "try: get_ipython().run_cell_magic('sh_session', 'caught', 'echo go; sleep 600')\n"
        "except KeyboardInterrupt as error: print(type(error).__name__)"
    )
    assert run_with(shared, code, ("go", press(shared))).text == "go\n\nCellInterrupted\n"
    assert shared.run("%%sh_session caught\necho next").text == "next\n"


def test_a_press_reaches_the_command_behind_a_slow_start_up_file(shared: LiveKernel) -> None:
    home = shared.cells.root / "home"
    (home / ".bashrc").write_text("touch ~/begun; sleep 1; RC=whole\n")

    def press_in_it() -> None:
        until((home / "begun").exists)
        shared.cells.interrupt(True)

    presser = threading.Thread(target=press_in_it)
    presser.start()
    try:
        outcome = shared.run("%%sh_session slow\necho $RC; sleep 600")
        assert outcome.error.startswith("CellInterrupted")
        assert shared.run("%%sh_session slow\necho $RC").text == "whole\n"
    finally:
        presser.join()
        (home / ".bashrc").unlink()


def test_a_press_while_a_question_is_open_ends_the_command(shared: LiveKernel) -> None:
    outcome = run_with(shared, "%%sh_session asks\nread -p 'Name? ' x", ("‹Name? ›", press(shared)))
    assert outcome.error.startswith("CellInterrupted")
    assert "an answer that comes now is dropped" in outcome.text
    answer(shared, "late")()
    again = shared.run("%%sh_session asks\nread -p 'Name? ' x; echo [$x]", stdin=["real"])
    assert again.text == "Name? real\n[real]\n"


def test_a_program_with_a_prompt_of_its_own_is_not_asked_for_but_can_be_interrupted(shared: LiveKernel) -> None:
    """An interactive Python waits by select: whether it wants a line is not certain, so no question appears."""
    outcome = run_with(
        shared,
        "%%sh_session repl\npython3 -q",
        (">>>", press(shared, after=1.0)),
        ("KeyboardInterrupt", press(shared, after=APART)),
    )
    assert outcome.record.asked == []
    assert outcome.error.startswith("CellInterrupted")
    assert shared.run("%%sh_session repl\necho next").text == "next\n"


def test_an_interrupt_from_elsewhere_is_an_error_with_status_130(shared: LiveKernel) -> None:
    shared.run("%%sh_session elsewhere --lifetime detached\nV=1")
    session = Registry(shared.cells.env["SESSION_MAGICS_HOME"]).get("elsewhere")

    outcome = run_with(shared, "%%sh_session elsewhere\necho go; sleep 600", ("go", session.interrupt))
    assert outcome.error == "CellCommandError: exit status 130 in session 'elsewhere'"
    assert shared.run("%%sh_session elsewhere\necho $V").text == "1\n"
    assert shared.run("%session interrupt elsewhere").status == "ok"  # nothing to interrupt: harmless


def until_over(cell: Cell, limit: float = DEADLINE) -> CellResult | None:
    """Wait for the end of a cell; None if it does not come."""
    deadline = time.monotonic() + limit
    while cell.result is None and time.monotonic() < deadline:
        cell.receive(0.1)
    return cell.result


@pytest.mark.parametrize("shell", ["bash", "zsh", "dash"])
def test_an_interrupt_at_the_very_start_of_a_program_is_not_lost(root: Path, shell: str) -> None:
    """Between its fork and its exec a program has the shell's handlers, which forget what they have noted."""
    if shutil.which(shell) is None:
        pytest.skip(f"{shell} is not installed")
    session = Registry(root).shell("main", shell=shell, rc=False)
    with contextlib.closing(session.attach()) as attached:
        for round in range(rounds(60, 1000)):
            cell = attached.cell("sleep 600")
            while cell.begin is None:
                cell.receive(None)
            time.sleep(round % 30 / 10_000)
            cell.interrupt()
            result = until_over(cell)
            assert result is not None and result.returncode == 130, round
    session.stop()


# ------------------------------------------------------------------ several presses

STUBBORN = """
import os, signal, time
signal.signal(signal.SIGINT, lambda *_: os.write(1, b"got INT\\n"))
signal.signal(signal.SIGTERM, lambda *_: os.write(1, b"got TERM\\n"))
os.write(1, b"go\\n")  # in one piece
while True:
    time.sleep(0.05)
"""


def test_pressing_again_is_term_and_then_kill(shared: LiveKernel) -> None:
    shared.run(f"open('stubborn.py', 'w').write({STUBBORN!r})")
    shared.run("%%sh_session ladder\nV=1; cd /usr; f() { echo F; }; sleep 600 &")
    outcome = run_with(
        shared,
        "%%sh_session ladder\npython3 ~-/stubborn.py",
        ("go", press(shared)),
        ("got INT", press(shared, after=APART)),
        ("got TERM", press(shared, after=APART)),
    )
    assert outcome.text == "go\ngot INT\ngot TERM\nKilled\n"
    assert outcome.error.startswith("CellInterrupted")
    assert state_kept(shared, "ladder") == "1 /usr\nF\n1\n"


def test_a_shell_that_takes_no_interrupt_is_restarted_and_says_what_is_lost(shared: LiveKernel) -> None:
    shared.run("%%sh_session stuck\ncd /usr; export KEPT=1; LOST=1")
    outcome = run_with(
        shared,
        "%%sh_session stuck\ntrap '' INT TERM; echo go; while :; do :; done",
        ("go", presses(shared, 3)),
    )
    told = "the shell was killed by signal 9; it was restarted in /usr with its exported environment, but lost its"
    assert told in outcome.error
    assert told in outcome.text
    assert shared.run("%%sh_session stuck\necho $PWD $KEPT $LOST").text == "/usr 1\n"


CLEANING = """python3 -c '
import time
print("go", flush=True)
try: time.sleep(600)
except KeyboardInterrupt: time.sleep(0.3); print("cleaned")'"""


def test_a_storm_of_presses_is_one_press(shared: LiveKernel) -> None:
    shared.run("%%sh_session storm\nV=1; cd /usr; f() { echo F; }; sleep 600 &")

    def storm() -> None:
        for _ in range(10):
            press(shared, after=0.01)()

    same = shared.run(f"from session_magics import foreground as f; print(f.SAME_PRESS); f.SAME_PRESS = {STALL}").text
    try:
        outcome = run_with(shared, f"%%sh_session storm\n{CLEANING}", ("go", storm))
        assert outcome.error.startswith("CellInterrupted")
        assert outcome.text == "go\ncleaned\n"
        assert state_kept(shared, "storm") == "1 /usr\nF\n1\n"
    finally:
        shared.run(f"f.SAME_PRESS = {same}")


# ------------------------------------------------------------------ at any moment

# In an IPython without a kernel: an interrupt between two cells can hit ipykernel in the middle of a reply, and then
# it is its messages that are torn.
AT_ANY_MOMENT = """
import os, random, signal, sys, threading, time
from IPython.core.interactiveshell import InteractiveShell
from IPython.core.error import UsageError
from session_magics import CellCommandError

rounds, sessions, latest, presses = int(sys.argv[1]), sys.argv[2], float(sys.argv[3]), int(sys.argv[4])
ip = InteractiveShell.instance()
ip.run_line_magic("load_ext", "session_magics")
chance = random.Random(rounds)
hit = 0

def press(moment):
    time.sleep(moment)
    for _ in range(presses):
        os.kill(os.getpid(), signal.SIGINT)
        time.sleep(0.01 if presses > 1 else 0)
    pressed.append(True)

for number in range(rounds):
    name = f"new{number}" if sessions == "new" else "one"
    body = chance.choice(["true", "echo hi", "sleep 0.01", "(exit 3)", "seq 300", "sleep 0.01 & wait", "sleep 0.02"])
    options = chance.choice(["", "", "--get V", "--set number", "--out text", "--bg"])
    ip.user_ns["number"] = number
    pressed, settled = [], False
    presser = threading.Thread(target=press, args=[chance.uniform(0, latest)])
    while not settled:  # join and is_alive do not stand being interrupted
        try:
            if not pressed and not presser.ident:
                presser.start()
                ip.run_cell_magic("sh_session", f"{name} {options}", "V=1; " + body)
            while not pressed:
                time.sleep(0.005)
            settled = True
        except CellCommandError:
            pass
        except KeyboardInterrupt:
            hit += 1
    while True:
        try:
            ip.run_cell_magic("sh_session", f"{name} --out check", f"echo {number} $V")
            break
        except UsageError as error:
            assert "--bg" in options and "is busy" in str(error), error
            time.sleep(0.005)
    assert ip.user_ns["check"] in (f"{number} 1\\n", f"{number}\\n"), (number, body, options, ip.user_ns["check"])
    if sessions == "new":
        ip.run_line_magic("session", f"stop {name} --now")
print("hit", hit, file=sys.stderr)
"""


@pytest.mark.parametrize(
    ("rounds", "sessions", "latest", "presses"),
    [(60, "one", 0.02, 1), (60, "one", 0.004, 1), (15, "new", 0.12, 1), (10, "one", 0.02, 10)],
    ids=["usual", "early", "start", "storm"],
)
def test_an_interrupt_at_any_moment_leaves_the_next_cell_right(
    root: Path, tmp_path: Path, rounds: int, sessions: str, latest: float, presses: int
) -> None:
    words = [sys.executable, "-c", AT_ANY_MOMENT, str(rounds), sessions, str(latest), str(presses)]
    environment = os.environ | {"IPYTHONDIR": str(tmp_path), "HOME": str(tmp_path)}
    done = subprocess.run(words, stdin=subprocess.DEVNULL, capture_output=True, text=True, env=environment)
    assert done.returncode == 0, done.stderr[-2000:]
    [hit] = re.findall(r"^hit (\d+)$", done.stderr, re.M)
    assert int(hit) >= rounds * 0.9  # hardly one was swallowed; only one that came while a command failed may be
