"""``%session``: every verb gives a value for Python, shows it once, and fails in one line."""

from __future__ import annotations

import json
import os
import signal
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from IPython.lib.pretty import pretty

from rounds import DEADLINE, until
from session_magics import (
    Exited,
    Registry,
    Session,
    SessionError,
    SessionExists,
    SessionInfo,
    SessionNotFound,
    SessionNotRunning,
    UsageMistake,
)
from session_magics.backends import Start
from session_magics.log import log_end
from session_magics.testing import FakeBackend, FakeTerminal, Signalled, script
from session_magics.verbs.actions import FOLLOW_CHARACTERS, Verbs
from session_magics.verbs.parser import parse_verb


class Desk:
    """Verbs over a fake backend, and what they showed while they ran."""

    def __init__(self, registry: Registry) -> None:
        self.registry = registry
        self.shown: list[str] = []
        self._verbs = Verbs(registry, self.shown.append)

    def __call__(self, line: str) -> Any:
        return self._verbs.call(parse_verb(line))


def server(terminal: FakeTerminal) -> int:
    """Prints what it is told; "quit" ends it."""
    terminal.write("Serving\n")
    while True:
        data = terminal.read()
        terminal.write(data.hex() + "\n")
        if data.startswith(b"quit"):
            return 7


def endless(terminal: FakeTerminal) -> int:
    while True:
        terminal.write("x" * 200_000 + "\n")
        terminal.pause(0.001)


@pytest.fixture
def desk(root: Path) -> Iterator[Desk]:
    programs = {
        "server": server,
        "endless": endless,
        "true": script("well\n"),
        "paint": script("\x1b[31m<red>\x1b[m plain\n"),
        "false": script(code=1),
        "plot": script("saved plot.png\n"),
    }
    with FakeBackend(programs, cells=lambda terminal, text: 0) as backend:
        yield Desk(Registry(root, backend=backend))


def test_start_gives_a_session_that_shows_as_one_line(desk: Desk) -> None:
    session = desk("start web --label team=x --wait-for Serving -- server --port 1")
    assert isinstance(session, Session)
    assert pretty(session) == f"<Session web running pid={session.info().pid}>"
    assert session.info().argv == ("server", "--port", "1") and session.info().labels == {"team": "x"}
    with pytest.raises(SessionExists):
        desk("start web server")
    assert desk.shown == []


def test_start_tells_why_a_program_was_never_ready(desk: Desk, monkeypatch: pytest.MonkeyPatch) -> None:
    start = desk.registry.backend.start

    def start_and_hear(told: Start) -> None:
        start(told)
        until(lambda: log_end(told.directory))

    monkeypatch.setattr(desk.registry.backend, "start", start_and_hear)
    with pytest.raises(SessionError, match=r"exited 0 before 'Ready' appeared.*last output: 'well'") as caught:
        desk("start one --wait-for Ready true")
    assert "\n" not in str(caught.value)
    with pytest.raises(SessionError, match=r"not seen within 0\.1 s.*last output: 'Serving'"):
        desk("start two --wait-for Ready --timeout 0.1 server")


def test_start_shell_makes_a_shell_once(desk: Desk) -> None:
    assert desk("start sh1 --shell sh --label a=b").info().shell == "sh"
    assert desk("info sh1").labels == {"a": "b"}
    with pytest.raises(SessionExists):
        desk("start sh1 --shell sh")


def test_list_is_a_list_that_shows_as_a_table(desk: Desk) -> None:
    assert pretty(desk("")) == "no sessions"
    desk("start web --label team=x server")
    desk("start done true").wait(DEADLINE)
    infos = desk("list")
    assert [type(info).__mro__.count(SessionInfo) for info in infos] == [1, 1]
    table = pretty(infos).splitlines()
    assert table[0].split()[:4] == ["NAME", "STATE", "PID", "AGE"]
    assert [line.split()[0] for line in table[1:]] == ["web", "done"]
    assert [info.name for info in desk("list --label team=x")] == ["web"]
    data = json.loads(desk("list --json"))["value"]
    assert [one["name"] for one in data] == ["web", "done"] and data[1]["state"]["text"] == "exited 0"
    assert data[1]["last_line"] == "well" and data[1]["ports"] == [] and "cpu" in data[0]


def test_every_verb_gives_json_with_one_envelope(desk: Desk) -> None:
    def value(line: str) -> Any:
        content = json.loads(desk(line))
        assert set(content) == {"ok", "value"} and content["ok"] is True
        return content["value"]

    started = value("start web --json --wait-for Serving server")
    assert started["name"] == "web" and started["state"]["kind"] == "Running"
    assert value("info web --json") == {**started, "doing": "", "parent_name": "", "children": []}
    assert [row["name"] for row in value("list --json")] == ["web"]
    assert value("tail web --json") == value("show web --json") == "Serving"
    assert value("send --json web quit") is None and value("wait web --json") == 7
    assert value("remove web --json") == ["web"]
    with pytest.raises(SessionNotFound):  # in Python an error is an error
        desk("info nope --json")


def test_a_snapshot_is_text_or_html(desk: Desk) -> None:
    desk("start paint paint").wait(DEADLINE)
    assert desk("snapshot paint") == "<red> plain"
    picture = desk("snapshot paint --html")
    assert picture.startswith("<pre") and "&lt;red&gt;</span> plain" in picture
    assert picture._repr_html_() == picture and pretty(picture) == "<red> plain"


def test_attachments_show_as_a_table_as_a_page_and_as_json(desk: Desk, tmp_path: Path) -> None:
    desk(f"start one --cwd {tmp_path} plot").wait(DEADLINE)
    assert desk("attachments one") == [] and pretty(desk("attachments one")) == "no attachments"
    (tmp_path / "plot.png").write_bytes(b"\x89PNG")
    found = desk("attachments one")
    assert isinstance(found, list) and [one.name for one in found] == ["plot.png"]
    assert pretty(found).splitlines()[0].split() == ["NAME", "SIZE", "TYPE", "MODIFIED", "PATH"]
    assert '<img src="data:image/png;base64,iVBORw==" ' in found._repr_html_()
    [row] = json.loads(desk("attachments one --json"))["value"]
    path = os.path.realpath(tmp_path / "plot.png")
    assert row == {"path": path, "name": "plot.png", "size": 4, "mime": "image/png", "modified": found[0].modified}


def test_info_is_a_session_info_that_shows_as_lines(desk: Desk) -> None:
    desk("start web --label team=x server 'a b'")
    info = desk("info web")
    assert isinstance(info, SessionInfo) and info.running
    lines = dict(line.split(None, 1) for line in pretty(info).splitlines())
    assert lines["name"] == "web" and lines["state"] == "running" and lines["labels"] == "team=x"
    assert lines["program"] == "server 'a b'" and lines["size"] == "24x80" and "generation 1" in lines["started"]


def test_tail_and_snapshot_are_text(desk: Desk) -> None:
    desk("start one true").wait(DEADLINE)
    assert desk("tail one") == "well" and desk("snapshot one") == "well"


def test_tail_f_shows_what_comes_until_the_end(desk: Desk) -> None:
    session = desk("start web --wait-for Serving server")
    thread = threading.Thread(target=desk, args=("tail web -f",))
    thread.start()
    until(lambda: desk.shown)
    session.send("a")
    until(lambda: "61\n" in "".join(desk.shown))
    session.send("quit")
    thread.join(DEADLINE)
    assert "".join(desk.shown) == "Serving\n61\n71756974\n"


def test_tail_f_ends_at_an_interrupt_and_the_session_goes_on(desk: Desk) -> None:
    desk("start web --wait-for Serving server")

    def press() -> None:
        until(lambda: desk.shown)
        os.kill(os.getpid(), signal.SIGINT)

    thread = threading.Thread(target=press)
    thread.start()
    assert desk("tail web -f") is None
    thread.join()
    assert desk("info web").running


def test_tail_f_is_bounded(desk: Desk) -> None:
    desk("start big endless")
    assert desk("tail big -f -n 1") is None
    shown = "".join(desk.shown)
    assert FOLLOW_CHARACTERS < len(shown) < FOLLOW_CHARACTERS + 500_000 and "%session tail big -f goes on" in shown


def test_send_types_text_and_keys(desk: Desk) -> None:
    session = desk("start web --wait-for Serving server")
    assert desk("send web a b") is None
    session.wait_for("6120620d", DEADLINE)
    desk("send web --no-enter --key C-c --key Up")
    session.wait_for("031b5b41", DEADLINE)
    desk("start sh1 --shell sh")
    with pytest.raises(UsageMistake, match="no command runs in session 'sh1'"):
        desk("send sh1 hello")


def test_wait_gives_the_status_or_the_text(desk: Desk) -> None:
    session = desk("start web server")
    assert desk("wait web Serv.*") == "Serving"
    session.send("quit")
    assert desk(f"wait web --timeout {DEADLINE:g}") == 7
    with pytest.raises(SessionNotRunning):
        desk("wait web never")


def test_interrupt_and_resize(desk: Desk) -> None:
    session = desk("start web --wait-for Serving server")
    assert desk("resize web 40x120") is None and session.info().size == (40, 120)
    assert desk("interrupt web") is None
    assert session.wait(DEADLINE) == -signal.SIGINT


def test_stop_stops_nothing_when_one_name_is_unknown(desk: Desk) -> None:
    first = desk("start a server")
    desk("start b server")
    with pytest.raises(SessionNotFound):
        desk("stop a b nope")
    assert first.info().running
    assert desk("stop a b a --now") == ["a", "b"]
    assert isinstance(first.state(), Exited)
    desk("start c server")
    assert desk("stop --all") == ["c"] and desk("stop --all") == []


def test_remove_removes_nothing_when_one_name_is_wrong(desk: Desk) -> None:
    desk("start a true").wait(DEADLINE)
    desk("start b server")
    for line, error in (("remove a nope", SessionNotFound), ("remove a b", SessionExists)):
        with pytest.raises(error):
            desk(line)
        assert desk.registry.find("a") is not None
    assert desk("remove a b --force") == ["a", "b"]
    assert desk("list") == []


def test_restart_gives_the_session(desk: Desk) -> None:
    desk("start web server")
    session = desk("restart web")
    assert isinstance(session, Session) and session.info().generation == 2


def test_doctor_says_what_is_here_and_what_is_wrong(desk: Desk) -> None:
    desk("start web server")
    with pytest.raises(SessionError):
        desk("start bad missing-program")
    report = desk("doctor")
    lines = dict(line.split(None, 1) for line in report.splitlines())
    assert {"package", "python", "root", "shells", "tmux", "trial", "sessions", "trouble"} <= set(lines)
    assert "a session started, printed and ended" in lines["trial"]
    assert "missing-program" in lines["trouble"] and lines["sessions"] == "1 failed to start, 1 running"


def test_signals_that_a_fake_program_takes_are_its_own_affair(desk: Desk) -> None:
    def polite(terminal: FakeTerminal) -> int:
        try:
            terminal.pause()
        except Signalled as signalled:
            return signalled.number
        return 0

    desk.registry.backend._programs["polite"] = polite  # type: ignore[attr-defined]
    desk("start p polite")
    desk("stop p")
    assert desk("wait p") == signal.SIGTERM
