"""Wherever a session is shown, it is told that its questions are answered by rule."""

from __future__ import annotations

import json
import os
import sys
from pathlib import Path

import pytest

from agent_screens import write_agent
from rounds import until
from session_magics import Command, Registry
from session_magics.verbs.actions import Verbs
from session_magics.verbs.parser import parse_verb
from terminals import DETACH, attached

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="elsewhere nothing is approved by rule")

BADGE = "auto-approve · 7 left · 5m"
ASKS = 'ask("git push")\ntime.sleep(300)'


def test_list_info_and_attach_have_the_badge_as_long_as_it_is_on(
    real: Registry, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    program = write_agent(tmp_path, ASKS)
    monkeypatch.setenv("PATH", f"{program.parent}{os.pathsep}{os.environ['PATH']}")
    real.start("a", Command((), str(tmp_path)), tool="claude")
    verbs = Verbs(real, lambda text: None)

    def shown(line: str) -> str:
        return str(verbs.call(parse_verb(line)))

    assert BADGE in shown("approve a --allow 'git status' --minutes 5 --most 7")
    until(lambda: f"{BADGE} · waiting: Do you want to proceed?" in shown("info a"), what=lambda: shown("info a"))
    assert BADGE in shown("list") and BADGE in json.loads(shown("info a --json"))["value"]["doing"]
    with attached("a", (30, 100)) as terminal:
        terminal.until(BADGE)
        terminal.type(DETACH)
        assert terminal.wait() == 0
    assert shown("approve --off") == "a: approval is off"
    assert "auto-approve" not in shown("info a") + shown("list")
    with attached("a", (30, 100)) as terminal:
        terminal.told("detaches")
        assert "auto-approve" not in terminal.text
        terminal.type(DETACH)
        assert terminal.wait() == 0


def test_the_switch_for_all_reaches_a_session_whose_record_is_damaged(
    real: Registry, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    program = write_agent(tmp_path, ASKS)
    monkeypatch.setenv("PATH", f"{program.parent}{os.pathsep}{os.environ['PATH']}")
    session = real.start("a", Command((), str(tmp_path)), tool="claude")
    verbs = Verbs(real, lambda text: None)
    verbs.call(parse_verb("approve a --allow 'git status'"))
    whole = (session.directory / "spec.json").read_bytes()
    (session.directory / "spec.json").write_bytes(b"{")
    assert str(verbs.call(parse_verb("approve --off"))) == "a: approval is off"
    (session.directory / "spec.json").write_bytes(whole)
