"""``attach``: what a terminal shows of programs that draw, of what they switched on, and in which size."""

from __future__ import annotations

import contextlib
import shutil
import sys
from pathlib import Path

import pytest

import attachable
from attachable import PROMPT, keys, printed, settled, shell
from rounds import DEADLINE, until
from session_magics import Command, Registry
from terminals import DETACH, attached

pytestmark = pytest.mark.timeout(120)
registry = attachable.registry


def need(program: str) -> None:
    if shutil.which(program) is None:
        pytest.skip(f"{program} is not installed")


def test_the_screen_comes_back_as_it_was_and_without_history(registry: Registry) -> None:
    session = registry.start(
        "s", Command(("sh", "-c", "seq 1 3000; printf '\\033[31mred\\033[m end'; sleep 1000")), size=(10, 40)
    )
    session.wait_for("end", DEADLINE)
    with attached("s", (10, 40)) as terminal:
        terminal.told("detaches")
        terminal.until("red end", "2999", gone="detaches")
        assert terminal.lines[0] == "2992" and terminal.cursor == (9, 7)
        assert b"\n2500" not in terminal.raw and b"\x1b[31mred" in terminal.raw
        terminal.type(DETACH)
        assert terminal.wait() == 0


def test_python_is_a_terminal_program_like_others(registry: Registry) -> None:
    registry.start("py", Command((sys.executable, "-q")))
    with attached("py") as terminal:
        terminal.until(">>>")
        terminal.type("6*7\r")
        terminal.until("42\n>>>")  # from then on it takes keys raw again
        terminal.type("\x1b[A")  # the line before
        terminal.until(">>> 6*7\n42\n>>> 6*7")
        terminal.type("\x15import sys; sys.exit(3)\r")
        assert terminal.wait() == 3
        settled(terminal)


def test_vim_is_drawn_typed_into_and_left_with_its_modes(registry: Registry, root: Path) -> None:
    need("vim")
    text = root / "text"
    text.write_text("".join(f"line {number}\n" for number in range(100)))
    printed(registry.start("v", Command(("vim", "-u", "NONE", "-N", str(text))), size=(15, 50)), b"line 3")
    for size in ((15, 50), (12, 60)):  # its own size, and another
        with attached("v", size) as terminal:
            terminal.told("detaches")
            terminal.until("line 0")
            until(lambda terminal=terminal: b"1049" in terminal.switched())
            terminal.type("j")  # the first key takes the line away
            terminal.until("line 0", f"line {size[0] - 2}", gone="detaches")
            until(lambda terminal=terminal: terminal.cursor[0] >= 1)
            terminal.type(DETACH)
            assert terminal.wait() == 0
            settled(terminal)
    with attached("v", (12, 60)) as terminal:
        terminal.told("detaches")
        terminal.until("line 0")
        terminal.type("oadded\x1b:wq\r")
        assert terminal.wait() == 0
        settled(terminal)
    assert "\nadded\n" in text.read_text()


def test_less_pages(registry: Registry, root: Path) -> None:
    need("less")
    text = root / "text"
    text.write_text("".join(f"line {number}\n" for number in range(100)))
    printed(registry.start("l", Command(("less", str(text)))), b"line 3")
    with attached("l", (10, 60)) as terminal:
        terminal.told("detaches")
        terminal.until("line 0", "line 8")
        terminal.type(" ")
        terminal.until("line 9", "line 17", gone="line 8")
        terminal.type("q")
        assert terminal.wait() == 0
        settled(terminal)


def test_a_program_with_the_mouse_gets_it_after_a_new_attach(registry: Registry) -> None:
    keys(registry, "\\x1b[?1049h\\x1b[?1002h\\x1b[?1006h\\x1b[?2004h\\x1b]2;the title\\x07")
    for _ in range(2):
        with attached("k") as terminal:
            terminal.until("ready")
            until(lambda terminal=terminal: {b"1002", b"1006", b"2004", b"1049"} <= set(terminal.switched()))
            assert b"\x1b]2;the title\x07" in terminal.raw
            terminal.type("\x1b[<0;5;6M")
            terminal.until("<1b5b3c303b353b364d>")
            terminal.type(DETACH)
            assert terminal.wait() == 0
            settled(terminal)
            assert terminal.raw.count(b"\x1b[22;2t") == terminal.raw.count(b"\x1b[23;2t") == 1


def test_modes_are_known_long_after_they_were_set(registry: Registry) -> None:
    code = "import sys, time; sys.stdout.write('\\x1b[?1049h\\x1b[?1002h'); "
    code += "[sys.stdout.write('\\x1b[H' + 'x' * 1000) for _ in range(5000)]; "
    code += "print('\\x1b[2J\\x1b[Hmain', flush=True); time.sleep(1000)"
    printed(registry.start("big", Command((sys.executable, "-c", code))), b"main")
    with attached("big") as terminal:
        terminal.until("main")
        until(lambda: {b"1049", b"1002"} <= set(terminal.switched()), what=terminal.switched)
        terminal.type(DETACH)
        terminal.wait()


def test_two_terminals_of_different_sizes_see_the_same_and_the_last_typist_sets_the_size(registry: Registry) -> None:
    session = shell(registry)
    with attached("s", (24, 80)) as wide, contextlib.ExitStack() as later:
        wide.told("detaches")
        small = later.enter_context(attached("s", (12, 40)))
        small.told("detaches")
        small.until(PROMPT.strip())
        until(lambda: session.info().size == (12, 40), what=session.info)
        wide.type("stty size\r")
        wide.until("24 80", gone="detaches")
        small.until("24 80", gone="detaches")
        small.type("stty size\r")
        small.until("12 40")
        wide.until("12 40")
        wide.type("echo ag''ain\r")
        small.until("again")
        wide.type(DETACH)
        assert wide.wait() == 0
        small.type("exit 4\r")
        assert small.wait() == 4


def test_a_window_that_is_dragged_takes_the_session_with_it(registry: Registry) -> None:
    session = shell(registry)
    with attached("s") as terminal:
        terminal.told("detaches")
        for width in range(60, 100):
            terminal.resize((20, width))
        until(lambda: session.info().size == (20, 99), what=session.info)
        terminal.type("stty size\r")
        terminal.until("20 99")
        terminal.type(DETACH)
        terminal.wait()
