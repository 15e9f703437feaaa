"""What is typed at a masked prompt is stored nowhere, and typed nowhere else."""

from __future__ import annotations

import contextlib
import time
from pathlib import Path

import pytest

import persons
from persons import Notices, Person, play
from session_magics import Session
from session_magics.backends import Waiting
from session_magics.foreground import Foreground
from session_magics.interrupts import noticed

session = persons.session
SECRET = "hunter2-Zq9"


def holds(root: Path, secret: str) -> list[str]:
    """The files below the root that have the secret in them."""
    found = []
    for path in root.rglob("*"):
        with contextlib.suppress(FileNotFoundError):  # replaced meanwhile
            found += [str(path)] if path.is_file() and secret.encode() in path.read_bytes() else []
    return found


@pytest.mark.parametrize(
    "body",
    [
        "read -s -p 'PW: ' x; [ ${#x} = 11 ] && echo ok",
        "stty -echo; read -p 'PW: ' x; stty echo; [ ${#x} = 11 ] && echo ok",
        """python3 -c 'import getpass; print("ok" if len(getpass.getpass()) == 11 else "no")'""",
        "stty -echo -icanon; head -c 12 | wc -c >/dev/null; stty sane -onlcr; echo ok",
    ],
)
def test_what_is_typed_at_a_masked_prompt_is_stored_nowhere(session: Session, root: Path, body: str) -> None:
    person = Person(SECRET)
    shown, _ = play(session, body, person)
    assert [masked for _, masked in person.asked] == [True]
    assert "ok" in shown
    assert holds(root, SECRET) == []
    play(session, f"echo {SECRET}", None)
    assert holds(root, SECRET)  # or else the search finds nothing at all


def test_a_secret_is_not_typed_where_the_echo_has_come_on(session: Session, root: Path, tmp_path: Path) -> None:
    go, on = tmp_path / "go", tmp_path / "on"

    def secret() -> str | None:
        go.touch()
        return SECRET if on.exists() else None

    sink, person = Notices(), Person(secret, "visible")
    switch = f"(trap '' TTOU; until [ -e {go} ]; do sleep 0.01; done; stty echo </dev/tty; touch {on}) &"
    shown, _ = play(session, f"stty -echo; printf 'PW: '; {switch} read x; echo [$x]", person, sink)
    assert [masked for _, masked in person.asked] == [True, False]
    assert "[visible]" in shown
    assert len(sink.lines) == 1
    assert sink.lines[0].endswith("the answer was dropped")
    assert holds(root, SECRET) == []


def test_a_secret_is_not_typed_either_where_the_echo_comes_on_at_the_last_moment(
    session: Session, root: Path, tmp_path: Path
) -> None:
    go, on = tmp_path / "go", tmp_path / "on"
    switch = f"(trap '' TTOU; until [ -e {go} ]; do sleep 0.01; done; stty echo </dev/tty; touch {on}) &"
    cell = session.cell(f"stty -echo; printf 'PW: '; {switch} read x; echo [$x]")
    sink, person, probe = Notices(), Person(SECRET, "visible"), cell.probe

    def look_and_be_late() -> Waiting:
        state = probe()
        if person.asked and not on.exists():  # the look before the answer is typed
            go.touch()
            while not on.exists():
                time.sleep(0.005)
        return state

    cell.probe = look_and_be_late  # type: ignore[method-assign]
    try:
        with noticed() as interrupts:
            Foreground(cell, sink, interrupts, asker=person, timeout=30).run()
        assert b"[visible]" in cell.output()
    finally:
        cell.close()
    assert sink.lines == ["the command no longer asks in the same way: the answer was dropped"]
    assert holds(root, SECRET) == []
