"""Approval of real sessions: what is answered, by whom, until when, and that nothing is left of it afterwards."""

from __future__ import annotations

import json
import os
import signal
import stat
import subprocess
import sys
import time
from dataclasses import dataclass, replace
from pathlib import Path

import psutil
import pytest

from agent_screens import write_agent
from held import kill, stopped
from rounds import alive, until
from session_magics import Command, Registry, Session, SessionError, UsageMistake
from session_magics.agents import audit
from session_magics.agents.approval import decide_again
from session_magics.agents.audit import read, replay
from session_magics.agents.grants import grant, revoke, revoke_all
from session_magics.agents.standing import FILE, LOCK, Standing, locked, standing
from session_magics.holder import processes

# Seconds in which an answer would have come, if one came.
NO_ANSWER = 0.8
ALLOW = ("git *", "ls *")


@dataclass(frozen=True)
class Tool:
    name: str = "claude"
    processes: tuple[str, ...] = ("claude",)
    prompts: str = "claude"


def start(real: Registry, place: Path, body: str, name: str = "a", program: str = "claude") -> Session:
    """A session in which an agent does what ``body`` says."""
    return real.start(name, Command((str(write_agent(place / f"bin-{name}", body, program)),), cwd=str(place)))


def approve(session: Session, **more: object) -> Standing:
    return grant(session, Tool(), **({"allow": ALLOW, "deny": ()} | more))  # type: ignore[arg-type]


def stands(session: Session) -> Standing:
    found = standing(session.directory)
    assert found is not None
    return found


def off(session: Session) -> str:
    """Wait until approval is off; why it is."""
    until(lambda: not stands(session).on, what=lambda: stands(session))
    return stands(session).reason


def approver(session: Session) -> psutil.Process:
    return psutil.Process(json.loads((session.directory / FILE).read_text())["pid"])


def shows(session: Session, text: str) -> None:
    until(lambda: text in session.snapshot(), what=session.snapshot)


def asks(session: Session, command: str) -> None:
    """Wait until the whole of a box about the command is shown: its rest would be taken for an answer's effect."""
    until(lambda: all(part in session.snapshot() for part in (f"Bash({command}", "╯")), what=session.snapshot)


def unanswered(session: Session) -> bool:
    """Whether nothing is typed for longer than an answer takes. The one thing that only time can show."""
    before = session.info().log_bytes
    time.sleep(NO_ANSWER)
    return session.info().log_bytes == before


def left_alone(session: Session, why: str) -> bool:
    until(lambda: why in stands(session).reason, what=lambda: (stands(session), session.snapshot()))
    return unanswered(session) and stands(session).on


def test_a_true_prompt_is_answered_by_the_key_of_the_menu(real: Registry, tmp_path: Path) -> None:
    session = start(real, tmp_path, 'ask("git status")\ntime.sleep(300)')
    assert standing(session.directory) is None
    assert approve(session).badge == "auto-approve · 50 left · 30m"
    shows(session, "got '1' for git status")
    until(lambda: stands(session).answered == 1)
    assert stands(session).badge == "auto-approve · 49 left · 30m"
    assert str(os.getpid()) in stands(session).enabled_by and stands(session).allow == ALLOW
    assert revoke(session) and off(session) == "switched off"
    assert stands(session).badge == ""


def test_what_no_rule_allows_is_left_to_the_person(real: Registry, tmp_path: Path) -> None:
    session = start(real, tmp_path, 'ask("git push")\nask("git status")\ntime.sleep(300)')
    approve(session, deny=("git push*",))
    assert left_alone(session, "denied")
    session.send("3")
    shows(session, "got '1' for git status")


def test_what_was_left_is_forgotten_when_somebody_has_answered(real: Registry, tmp_path: Path) -> None:
    session = start(real, tmp_path, 'ask("make")\ntime.sleep(300)')
    approve(session)
    until(lambda: "not allowed" in stands(session).reason, what=session.snapshot)
    session.send("3")
    until(lambda: stands(session).reason == "", what=lambda: stands(session))


def test_the_audit_log_has_all_and_replays_to_the_same(real: Registry, tmp_path: Path) -> None:
    session = start(real, tmp_path, 'ask("git status")\nverified(1)\nask("make")\ntime.sleep(300)')
    approve(session, version="2.0.1")
    assert left_alone(session, "not allowed")
    session.send("\x1b secret")
    revoke(session)
    path = session.directory / audit.FILE
    assert stat.S_IMODE(path.stat().st_mode) == stat.S_IMODE((session.directory / FILE).stat().st_mode) == 0o600
    lines = read(path).lines
    assert [line["kind"] for line in lines] == ["on", "decision", "outcome", "decision", "off"]
    _, answer, outcome, refusal, _ = lines
    assert answer["decision"]["keys"] == "1" and answer["decision"]["rule"] and answer["grant"]["version"] == "2.0.1"
    assert any("git status" in line for line in answer["sight"]["lines"])
    assert outcome["sent"] and outcome["gone"] and "got '1' for git status" in outcome["screen"]
    assert refusal["decision"]["kind"] == "refuse"
    assert "secret" not in path.read_text()
    again = replay(path, decide_again)
    assert len(again) == 2 and all(recorded == now for recorded, now in again)


def test_off_means_no_more_keys_at_once(real: Registry, tmp_path: Path) -> None:
    session = start(real, tmp_path, 'for n in range(99): ask("git show %d" % n)')
    typed = 0
    for _ in range(3):
        approve(session)
        asks(session, "git show")
        revoke(session)
        typed += stands(session).answered  # it may have come first
        asks(session, f"git show {typed})")
        session.send("1")
        typed += 1
        asks(session, f"git show {typed})")
    assert unanswered(session) and f"git show {typed})" in session.snapshot()


def test_it_goes_on_when_whoever_switched_it_on_is_killed(real: Registry, tmp_path: Path) -> None:
    session = start(
        real, tmp_path, 'while not os.path.exists("go"): time.sleep(.01)\nask("git status")\ntime.sleep(300)'
    )
    code = (
        "import os, signal, sys; sys.path[:0] = sys.argv[1:]; from session_magics import Registry;"
        "from test_grants import approve; approve(Registry().get('a')); os.kill(os.getpid(), signal.SIGKILL)"
    )
    here = Path(__file__).parent
    granting = subprocess.run([sys.executable, "-c", code, str(here), str(here.parent)], check=False)
    assert granting.returncode == -signal.SIGKILL
    (tmp_path / "go").touch()
    shows(session, "got '1' for git status")
    assert approver(session).ppid() != os.getpid() and os.getsid(approver(session).pid) != os.getsid(0)


@pytest.mark.parametrize("how", ["exit", "stop", "restart"])
def test_it_ends_with_the_program(real: Registry, tmp_path: Path, how: str) -> None:
    session = start(real, tmp_path, 'show("ready", "")\nos.read(0, 1)')
    approve(session)
    pid = approver(session).pid
    tick = processes.start_tick(pid)
    if how == "exit":
        session.send("q")
    elif how == "stop":
        session.stop()
    else:
        real.restart("a")
    told = off(session)
    assert "the program has ended" in told or (how == "restart" and told == "the program was started anew")
    until(lambda: not alive(pid, tick))


def test_it_ends_with_its_count(real: Registry, tmp_path: Path) -> None:
    session = start(real, tmp_path, 'ask("git a")\nask("git b")\nask("git c")')
    approve(session, most=2)
    assert off(session) == "all answers that were allowed are given"
    assert stands(session).left == 0
    asks(session, "git c")
    assert unanswered(session)


@pytest.mark.parametrize("modes", ["sane -echo", "sane -echo -icanon"])
def test_a_password_prompt_ends_it_and_leaves_no_text(real: Registry, tmp_path: Path, modes: str) -> None:
    """By the terminal's modes whatever the screen shows, a true box too; and by the words of the prompt."""
    asked = 'box("git secret")' if "icanon" not in modes else 'os.write(1, b"Password for git secret: ")'
    session = start(
        real, tmp_path, f"import subprocess\nsubprocess.run('stty {modes}'.split())\n{asked}\nos.read(0, 9)"
    )
    shows(session, "git secret")
    approve(session)
    assert off(session) == "the program asks for a password"
    trail = (session.directory / audit.FILE).read_text()
    assert "for a password" in trail and '"lines": []' in trail
    assert "git secret" not in trail or "icanon" in modes


def test_a_box_that_another_program_prints_gets_nothing(real: Registry, tmp_path: Path) -> None:
    session = start(real, tmp_path, 'ask("git status")', program="impostor")
    approve(session)
    assert left_alone(session, "has the terminal, and not claude")
    assert "impostor" in stands(session).reason


def test_a_box_of_an_agent_that_is_in_the_background_gets_nothing(real: Registry, tmp_path: Path) -> None:
    agent = write_agent(tmp_path, "time.sleep(300)")  # stopped as it sets the terminal
    impostor = write_agent(tmp_path, 'ask("git status")\ntime.sleep(300)', "impostor")
    session = real.start("a", Command(("bash", "-c", f"set -m; {agent} & {impostor}")))
    approve(session)
    assert left_alone(session, "impostor has the terminal, and not claude")


def test_a_program_that_does_not_read_gets_nothing(real: Registry, tmp_path: Path) -> None:
    session = start(real, tmp_path, 'box("git status")\ntime.sleep(300)')
    approve(session)
    asks(session, "git status")
    assert unanswered(session) and stands(session).answered == 0


def test_a_box_that_stays_ends_it(real: Registry, tmp_path: Path) -> None:
    session = start(real, tmp_path, 'ask("git status", taken=False)\ntime.sleep(300)')
    approve(session)
    assert off(session) == "the question was still there 1 s after its answer"


def test_the_same_question_is_answered_three_times(real: Registry, tmp_path: Path) -> None:
    session = start(real, tmp_path, 'for n in range(9):\n    verified(n)\n    ask("git status")')
    approve(session)
    assert off(session) == "the same question came 3 times"
    assert stands(session).answered == 3


def test_a_screen_that_never_rests_is_answered_when_the_box_does(real: Registry, tmp_path: Path) -> None:
    body = 'box("git status")\nwhile not select.select([0], [], [], .2)[0]: os.write(1, b"\\a")\nshow("done", "")'
    session = start(real, tmp_path, body + "\ntime.sleep(300)")
    approve(session)
    shows(session, "done")


def test_a_stopped_approver_is_revoked(real: Registry, tmp_path: Path) -> None:
    session = start(real, tmp_path, 'show("ready", "")\ntime.sleep(300)')
    approve(session)
    process = approver(session)
    with stopped(process.pid):
        assert revoke(session)  # which waits for ``PATIENCE`` and ``KILLED`` at most
        assert not locked(session.directory)
    assert stands(session) == replace(stands(session), on=False, reason="its process was killed")


def test_one_switch_for_all(real: Registry, tmp_path: Path) -> None:
    made = [start(real, tmp_path, 'show("ready", "")\ntime.sleep(300)', name) for name in ("a", "b", "c")]
    for session in made[:2]:
        approve(session)
    assert revoke_all(made) == ("a", "b")
    assert not any(locked(session.directory) for session in made)
    assert revoke_all(made) == ()


def test_a_new_grant_replaces_the_old_one(real: Registry, tmp_path: Path) -> None:
    session = start(real, tmp_path, 'show("ready", "")\ntime.sleep(300)')
    approve(session)
    first = approver(session).pid
    tick = processes.start_tick(first)
    assert approve(session, most=7).left == 7
    assert not alive(first, tick) and approver(session).pid != first


def test_a_killed_one_can_be_switched_on_again(real: Registry, tmp_path: Path) -> None:
    session = start(real, tmp_path, 'show("ready", "")\ntime.sleep(300)')
    approve(session)
    kill(approver(session).pid)
    assert off(session) == "its process was killed"
    assert not revoke(session)
    assert approve(session).on


def test_mistakes(real: Registry, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    session = start(real, tmp_path, 'show("ready", "")\ntime.sleep(300)')
    with pytest.raises(UsageMistake, match="no known tool"):
        grant(session, None, allow=ALLOW)
    with pytest.raises(UsageMistake, match="questions of shell are not known"):
        grant(session, Tool("shell", ("bash",), ""), allow=ALLOW)
    for wrong in ({"minutes": 0}, {"minutes": 1e9}, {"minutes": float("nan")}, {"most": 0}, {"allow": ()}):
        with pytest.raises(UsageMistake):
            approve(session, **wrong)
    with monkeypatch.context() as inside, pytest.raises(UsageMistake, match="cannot approve itself"):
        inside.setenv("SESSION_MAGICS_SESSION", session.id)
        approve(session)
    session.stop()
    with pytest.raises(UsageMistake, match="is not running"):
        approve(session)
    assert standing(session.directory) is None


def test_why_it_did_not_come_up_is_told(real: Registry, tmp_path: Path) -> None:
    session = start(real, tmp_path, 'show("ready", "")\ntime.sleep(300)')
    (session.directory / LOCK).mkdir()
    with pytest.raises(SessionError, match=r"could not be switched on: .*directory"):
        approve(session)


def test_it_rests_while_nothing_happens(real: Registry, tmp_path: Path) -> None:
    session = start(real, tmp_path, 'show("ready", "")\ntime.sleep(300)')
    approve(session)
    process = approver(session)

    def rests() -> bool:
        woken, used = process.num_ctx_switches().voluntary, sum(process.cpu_times()[:2])
        time.sleep(1)
        return process.num_ctx_switches().voluntary - woken <= 4 and sum(process.cpu_times()[:2]) - used < 0.1

    until(rests)
    assert process.memory_info().rss < 40e6


def test_a_flood_costs_it_little(real: Registry, tmp_path: Path) -> None:
    session = start(real, tmp_path, 'while True: show(*["one of many lines " * 4] * 22); time.sleep(.002)')
    approve(session)
    process, began = approver(session), time.monotonic()
    time.sleep(3)
    passed = time.monotonic() - began
    assert process.num_ctx_switches().voluntary < 100 * passed
    assert sum(process.cpu_times()[:2]) < 0.1 * passed  # with its first rendering; without a pause it is all there is


def test_nothing_of_the_session_that_switches_it_on_counts_for_it(real: Registry, tmp_path: Path) -> None:
    session = start(real, tmp_path, 'show("ready", "")\ntime.sleep(300)')
    here = Path(__file__).parent
    code = (
        "import sys; sys.path[:0] = sys.argv[1:]; from session_magics import Registry;"
        "from test_grants import approve; print(approve(Registry().get('a')).badge)"
    )
    other = real.start("other", Command((sys.executable, "-c", code, str(here), str(here.parent))))
    assert other.wait(20) == 0
    other.stop()
    process = approver(session)
    assert stands(session).on and alive(process.pid, processes.start_tick(process.pid))
    assert "SESSION_MAGICS_SESSION" not in process.environ()
