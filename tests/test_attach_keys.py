"""``attach``: who gets what is typed: the program, the holder, nobody, or the detach key."""

from __future__ import annotations

import psutil
import pytest

import attachable
from attachable import PROMPT, keys, settled, shell
from rounds import until
from session_magics import Registry
from session_magics.cli.typing_in import DetachKey
from terminals import DETACH, attached

pytestmark = pytest.mark.timeout(120)
registry = attachable.registry


def test_keys_typed_before_it_learns_that_it_goes_on_reach_the_program(registry: Registry) -> None:
    keys(registry)
    with attached("k") as terminal:
        terminal.told("detaches")
        terminal.until("ready")
        process = psutil.Process(terminal.process.pid)
        process.suspend()
        until(lambda: process.status() == psutil.STATUS_STOPPED, what="stopped")
        terminal.type("a")
        process.resume()
        terminal.until("<61>")
        terminal.type(DETACH)
        assert terminal.wait() == 0
        settled(terminal)


def test_live_questions_reach_the_holder_alone(registry: Registry) -> None:
    session = shell(registry)
    with attached("s") as terminal:
        terminal.told("detaches")
        terminal.type("printf '\\033[6n\\033[c\\033[5n'; printf 'do''ne\\n'\r")
        terminal.until("done")
        assert terminal.answers == [] and session.output().count(b"\x1b[6n") == 1
        terminal.type(DETACH)
        terminal.wait()


def test_who_only_looks_neither_types_nor_sets_the_size(registry: Registry) -> None:
    session = shell(registry)
    with attached("s", (12, 40), "--read-only") as terminal:
        terminal.told("looking only")
        terminal.until(PROMPT.strip())
        terminal.type("echo typed\r")
        session.send("echo se''nt\r")
        terminal.until("sent")
        assert session.info().size == (24, 80) and "typed" not in terminal.text
        terminal.type(DETACH)
        assert terminal.wait() == 0
        settled(terminal)
    assert b"typed" not in session.output()


def test_another_detach_key_also_where_keys_are_told_in_numbers(registry: Registry) -> None:
    keys(registry)
    for typed in (b"\x1d", b"\x1b[93;5u", b"\x1b[27;5;93~"):
        with attached("k", (24, 80), "--detach-key", "C-]") as terminal:
            terminal.told("C-] detaches")
            terminal.type(DETACH)
            terminal.until("<1c>")
            terminal.type(typed)
            assert terminal.wait() == 0


@pytest.mark.parametrize(
    ("name", "typed", "before", "leaves"),
    [
        ("C-\\", b"abc\x1cdef", b"abc", True),
        ("C-\\", b"abc", b"abc", False),
        ("C-\\", b"\x1b[92;5u", b"", True),
        ("C-\\", b"\x1b[92;5:1u", b"", True),
        ("C-\\", b"\x1b[92;5:3u", b"\x1b[92;5:3u", False),  # it was let go
        ("C-a", b"\x1b[97:65;5u", b"", True),
        ("C-a", b"\x1b[97;6u", b"\x1b[97;6u", False),
        ("F12", b"x\x1b[24~y", b"x", True),
        ("M-d", b"\x1bd", b"", True),
    ],
)
def test_the_detach_key_is_found_in_what_is_typed(name: str, typed: bytes, before: bytes, leaves: bool) -> None:
    assert DetachKey(name).part(typed) == (before, leaves)


def test_a_shell_of_cells_takes_keys_only_while_a_command_runs(registry: Registry) -> None:
    session = registry.shell("c", lifetime="detached", rc=False)
    with attached("c") as terminal:
        terminal.told("detaches")
        terminal.type("ls\r")
        terminal.told("no command runs", "%%sh_session c")
        cell = session.cell("printf 'one\\ntwo\\n'; read word; echo got $word")
        try:
            terminal.until("one\ntwo")
            terminal.type("yes\r")
            terminal.until("got yes")
        finally:
            cell.close()
        terminal.type(DETACH)
        assert terminal.wait() == 0
