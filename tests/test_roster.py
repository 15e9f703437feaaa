"""The table's side of the kernel: rows while somebody looks, and what the buttons do."""

from __future__ import annotations

import threading
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import pytest

from rounds import DEADLINE, until
from session_magics import Command, Registry, Session
from session_magics.display import roster as module
from session_magics.display.roster import Roster
from session_magics.listing import Observer


class Table:
    """A TableFace with one view, "v"."""

    def __init__(self, registry: Registry, labels: Mapping[str, str] | None = None) -> None:
        self.messages: list[Mapping[str, Any]] = []
        self.stills: list[str] = []
        self.opened: list[str] = []
        rows = Observer().rows(registry.infos(labels or {}))
        self.roster = Roster(registry, labels or {}, self, rows)

    def post(self, content: Mapping[str, Any], buffers: Sequence[bytes] = ()) -> None:
        self.messages.append(content)

    def renew(self, still: str) -> None:
        self.stills.append(still)

    def open_terminal(self, session: Session) -> str:
        self.opened.append(session.name)
        return f"model of {session.name}"

    def say(self, kind: str, **content: object) -> None:
        self.roster.receive({"t": kind, "view": "v", **content})

    def rows(self) -> list[Mapping[str, Any]]:
        return next((list(one["rows"]) for one in reversed(self.messages) if one["t"] == "rows"), [])

    def row(self, name: str) -> Mapping[str, Any]:
        return next((row for row in self.rows() if row["name"] == name), {})

    def id(self, name: str) -> str:
        until(lambda: self.row(name))
        return str(self.row(name)["id"])

    def notices(self) -> str:
        return " ".join(one["text"] for one in self.messages if one["t"] == "notice")


@pytest.fixture
def table(real: Registry) -> Iterator[Table]:
    made = Table(real)
    yield made
    made.roster.close()


def watchers() -> int:
    return sum(thread.name == "session table" for thread in threading.enumerate())


def test_rows_come_while_somebody_looks(real: Registry, table: Table, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "EVERY", 0.02)
    real.start("web", Command(("sh", "-c", "echo well; read x"), cwd="/"), labels={"crew": "a"})
    assert not table.messages and not watchers()
    table.say("seen", seen=True)
    until(lambda: table.row("web").get("last") == "well")
    row = table.row("web")
    assert (row["state"], row["directory"], row["labels"], row["program"]) == (
        "running", "/", {"crew": "a"}, "sh -c 'echo well; read x'",
    )  # fmt: skip
    assert row["memory"] > 0 and row["cpu"] >= 0 and row["busy"] == "" and row["pid"] == real.get("web").info().pid
    table.say("seen", seen=False)
    until(lambda: not watchers())


def test_a_view_that_falls_silent_is_measured_for_no_more(table: Table, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "EVERY", 0.02)
    monkeypatch.setattr(module, "SILENCE", 0.2)
    table.say("seen", seen=True)
    until(lambda: not watchers())
    table.say("seen", seen=True)
    count = len(table.messages)
    until(lambda: len(table.messages) > count)


def test_a_second_view_gets_its_rows_at_once(table: Table, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "EVERY", 3600)
    table.say("seen", seen=True)
    until(lambda: len(table.messages) == 1)
    table.roster.receive({"t": "seen", "view": "w", "seen": True})
    until(lambda: len(table.messages) == 2)


def test_only_labelled_sessions_are_in_a_table_of_a_label(real: Registry) -> None:
    real.start("a", Command(("sleep", "100")), labels={"crew": "a"})
    real.start("b", Command(("sleep", "100")), labels={"crew": "b"})
    table = Table(real, {"crew": "b"})
    table.say("seen", seen=True)
    until(table.rows)
    assert [row["name"] for row in table.rows()] == ["b"]
    table.roster.close()


def test_stop_restart_and_remove(real: Registry, table: Table) -> None:
    session = real.start("web", Command(("sh", "-c", "trap '' TERM; echo up; while :; do sleep 1; done")))
    session.wait_for("up", DEADLINE)
    table.say("seen", seen=True)
    table.say("stop", id=table.id("web"), now=False)
    until(lambda: table.row("web").get("busy") == "stopping")
    table.say("stop", id=table.id("web"), now=True)  # in a hurry
    until(lambda: table.row("web").get("state") == "exited" and not table.row("web")["busy"])
    table.say("restart", id=table.id("web"))
    until(lambda: table.row("web").get("state") == "running")
    assert real.get("web").info().generation == 2
    table.say("remove", id=table.id("web"))
    until(lambda: "still" in table.notices() or "running" in table.notices())
    real.get("web").stop(now=True)
    table.say("remove", id=table.id("web"))
    until(lambda: table.messages[-1]["t"] == "rows" and not table.rows())


def test_a_session_that_is_gone_is_told_of(table: Table) -> None:
    table.say("stop", id="no-such", now=False)
    until(lambda: "no-such" in table.notices())
    table.say("show", id="no-such")
    assert table.notices().count("no-such") >= 2


def test_show_opens_a_terminal_for_the_view_that_asked(real: Registry, table: Table) -> None:
    real.start("web", Command(("sleep", "100")))
    table.say("seen", seen=True)
    table.say("show", id=table.id("web"))
    shown = next(one for one in table.messages if one["t"] == "shown")
    assert (shown["view"], shown["id"], shown["model"]) == ("v", table.id("web"), "model of web")
    assert table.opened == ["web"]


def test_the_text_in_the_notebook_follows_the_states(
    real: Registry, table: Table, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "EVERY", 0.02)
    monkeypatch.setattr(module, "STILL_EVERY", 0.0)
    real.start("web", Command(("sleep", "100")))
    table.say("focus", on=True)
    table.say("seen", seen=True)
    until(table.rows)
    real.get("web").stop(now=True)
    until(lambda: table.row("web")["state"] == "exited")
    assert table.stills == []  # who types would lose the place
    table.say("focus", on=False)
    until(lambda: table.stills)
    assert "killed by signal" in table.stills[-1]


def test_close_ends_the_thread(table: Table) -> None:
    table.say("seen", seen=True)
    until(watchers)
    table.roster.close()
    until(lambda: not watchers())


def test_the_text_is_renewed_if_a_session_ended_before_anybody_looked(
    real: Registry, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "STILL_EVERY", 0.1)
    session = real.start("web", Command(("sleep", "100")))
    table = Table(real)
    session.stop(now=True)
    table.say("seen", seen=True)
    until(lambda: table.stills)
    assert "killed by signal" in table.stills[-1]
    table.roster.close()
