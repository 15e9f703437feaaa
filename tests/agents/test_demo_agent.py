"""The demo agent of the notebooks, on a real terminal: what it shows, asks and does, and how it ends."""

from __future__ import annotations

import json
import os
import signal
import struct
import subprocess
import sys
import zlib
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path

import pyte
import pytest

from rounds import until
from session_magics.agents.prompts import Doing, Prompt, read_screen
from terminals import Terminal

AGENT = Path(__file__).parent.parent.parent / "notebooks" / "demo_agent.py"
FAST = ("--speed", "0")
ID = "4f8a2c1e-0d63-4b9a-9c55-1f2e3d4c5b6a"
CREATE, EDIT, RUN = "Do you want to create", "Do you want to make this edit to", "Do you want to proceed?"
PLOTTED = "The plot is ready"
AT_REST = "? for shortcuts"

Start = Callable[..., Terminal]


@pytest.fixture
def start(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Start]:
    """Starts the agent in a directory of the test's own, which is also the home."""
    monkeypatch.chdir(tmp_path)
    with ExitStack() as stack:

        def begin(*arguments: str, size: tuple[int, int] = (40, 90)) -> Terminal:
            command = (sys.executable, str(AGENT), *arguments)
            return stack.enter_context(Terminal(command, size, env={"HOME": str(tmp_path)}))

        yield begin


def kept(id: str) -> dict[str, object]:
    return dict(json.loads(Path(".demo-agent", f"{id}.json").read_text()))


def plain(*arguments: str) -> subprocess.CompletedProcess[str]:
    """The agent without a terminal."""
    return subprocess.run(
        (sys.executable, str(AGENT), *arguments), stdin=subprocess.DEVNULL, capture_output=True, text=True
    )


def answer_all(terminal: Terminal, key: str = "1") -> None:
    """Answer the three questions of the plot."""
    for question in (f"{CREATE} data.csv?", f"{CREATE} analysis.py?", RUN):
        terminal.until(question)
        terminal.type(key)


def leave(terminal: Terminal) -> None:
    terminal.until(AT_REST, gone="esc to interrupt")
    terminal.type("/exit\r")
    assert terminal.wait() == 0
    assert terminal.restored
    assert not terminal.switched()


# ---- what it does


def png_size(data: bytes) -> tuple[int, int]:
    """Width and height of an image whose every part is right; 8 bits, three colours."""
    assert data[:8] == b"\x89PNG\r\n\x1a\n"
    parts, at = {}, 8
    while at < len(data):
        [length] = struct.unpack_from(">I", data, at)
        kind, body = data[at + 4 : at + 8], data[at + 8 : at + 8 + length]
        assert struct.unpack_from(">I", data, at + 8 + length) == (zlib.crc32(kind + body),)
        parts[kind], at = body, at + 12 + length
    assert list(parts) == [b"IHDR", b"IDAT", b"IEND"]
    width, height, *rest = struct.unpack(">IIBBBBB", parts[b"IHDR"])
    assert rest == [8, 2, 0, 0, 0]
    pixels = zlib.decompress(parts[b"IDAT"])
    assert len(pixels) == height * (1 + 3 * width)
    assert len(set(pixels)) > 3  # there is something on it
    return width, height


def test_the_plot_is_really_made(start: Start) -> None:
    terminal = start("plot the data", *FAST)
    answer_all(terminal)
    terminal.until(PLOTTED, "saved ./plot.png", "● Bash(python3 analysis.py)")
    assert len(Path("data.csv").read_text().splitlines()) == 8
    assert png_size(Path("plot.png").read_bytes()) == (420, 200)
    leave(terminal)


def test_what_is_asked_is_not_done_before_the_answer(start: Start) -> None:
    terminal = start("plot", *FAST)
    terminal.until(f"{CREATE} data.csv?")
    assert not Path("data.csv").exists()
    terminal.type("1")
    terminal.until(f"{CREATE} analysis.py?")
    assert Path("data.csv").exists()
    assert not Path("analysis.py").exists()


def test_the_mean_is_fixed_with_a_diff(start: Start) -> None:
    terminal = start("--script", "fix", *FAST)
    terminal.until(f"{EDIT} stats.py?", "5 -    return total / (len(values) - 1)", "5 +    return total / len(values)")
    assert "(len(values) - 1)" in Path("stats.py").read_text()
    terminal.type("1")
    terminal.until(RUN, "python3 stats.py")
    terminal.type("1")
    terminal.until("└  4.0", "The mean is right now")
    assert "(len(values) - 1)" not in Path("stats.py").read_text()


def test_the_home_is_never_emptied(start: Start, tmp_path: Path) -> None:
    (tmp_path / "precious").touch()
    terminal = start("--script", "danger", *FAST)
    terminal.until(RUN, "rm -rf ~/*")
    terminal.type("1")
    terminal.until("Not run: this demo only asks", "nothing was removed")
    assert (tmp_path / "precious").exists()


def test_a_password_is_asked_without_echo_and_kept_nowhere(start: Start, tmp_path: Path) -> None:
    import termios

    terminal = start("--script", "password", "--session-id", ID, *FAST)
    terminal.until(RUN)
    assert terminal.text.count("sudo apt-get") > 0
    terminal.type("1")
    terminal.until("[sudo] password for")
    flags = termios.tcgetattr(terminal.tty_fd)[3]
    assert flags & termios.ICANON
    assert not flags & termios.ECHO
    terminal.type("hunter2\n")
    terminal.until("Not run", "nothing was installed")
    leave(terminal)
    assert b"hunter2" not in terminal.raw
    assert "hunter2" not in json.dumps(kept(ID))


def test_ctrl_c_at_the_password_is_a_refusal(start: Start) -> None:
    terminal = start("--script", "password", *FAST)
    terminal.until(RUN)
    terminal.type("1")
    terminal.until("[sudo] password for")
    terminal.type("\x03")
    terminal.until("What should Demo do instead?")
    leave(terminal)


def test_the_quoted_box_asks_nothing(start: Start) -> None:
    terminal = start("quote the README", *FAST)
    terminal.until("End of the README.", "❯ 1. Yes", "nobody asked anything", gone="esc to interrupt")
    assert b"esc to interrupt" in terminal.raw.partition(b"End of the README.")[2]  # it worked on
    leave(terminal)


def test_chatty_streams_for_the_time_it_was_given(start: Start) -> None:
    terminal = start("--script", "chatty", "--seconds", "0.5", *FAST)
    terminal.until("I compare the rows", "That is all there is to say.", gone="esc to interrupt")
    assert terminal.raw.count(b"esc to interrupt") > 5
    leave(terminal)


def test_a_failed_command_ends_it_with_1(start: Start) -> None:
    Path("stats.py").write_text("raise SystemExit(7)  # (len(values) - 1)\n")
    terminal = start("fix", *FAST)
    terminal.until(EDIT)
    terminal.type("1")
    terminal.until(RUN)
    terminal.type("1")
    assert terminal.wait() == 1
    terminal.until("The task failed: python3 stats.py exited 7.")
    assert terminal.restored


def test_a_missing_file_fails_the_task(start: Start) -> None:
    terminal = start("fix", *FAST)
    terminal.until(EDIT)
    Path("stats.py").unlink()
    Path("stats.py").mkdir()
    terminal.type("1")
    assert terminal.wait() == 1
    terminal.until("The task failed: [Errno 21] Is a directory: 'stats.py'.")


def test_control_characters_of_a_command_do_not_reach_the_screen(start: Start) -> None:
    Path("stats.py").write_text(r'print("\x1b[2Jred \x1b[31mtext\x07\x1b[0m")  # (len(values) - 1)' + "\n")
    terminal = start("fix", *FAST)
    for question in (EDIT, RUN):
        terminal.until(question)
        terminal.type("1")
    terminal.until("└  red text", "The mean is right now")
    assert b"\x07" not in terminal.raw


# ---- answers


@pytest.mark.parametrize("keys", ["\r", "\x1b[B\x1b[A\r", "\x1bOB\x1bOA\r", "\x1b[A\x1b[A\x1b[A\r"])
def test_enter_takes_the_option_that_the_arrows_chose(start: Start, keys: str) -> None:
    terminal = start("plot", *FAST)
    terminal.until(f"{CREATE} data.csv?")
    terminal.type(keys)
    terminal.until(f"{CREATE} analysis.py?")


def test_the_pointer_moves_with_the_arrows(start: Start) -> None:
    terminal = start("plot", *FAST)
    terminal.until("❯ 1. Yes", "  2. Yes, allow all edits")
    terminal.type("\x1b[B")
    terminal.until("  1. Yes", "❯ 2. Yes, allow all edits")


@pytest.mark.parametrize("key", ["2", "\x1b[Z", "\x1b[B\r"])
def test_all_edits_are_allowed_at_once(start: Start, key: str) -> None:
    terminal = start("plot", *FAST)
    terminal.until(f"{CREATE} data.csv?")
    terminal.type(key)
    terminal.until(RUN)
    assert Path("analysis.py").exists()


@pytest.mark.parametrize("key", ["3", "\x1b", "\x03", "\x1b[A\r"])
def test_no_stops_it_and_a_message_lets_it_go_on(start: Start, key: str) -> None:
    terminal = start("plot", *FAST)
    terminal.until(f"{CREATE} data.csv?")
    terminal.type(key)
    terminal.until("● Write(data.csv)", "└  Interrupted · What should Demo do instead?")
    assert not Path("data.csv").exists()
    terminal.type("I have written one\r")
    terminal.until("> I have written one", "I leave that out", f"{CREATE} analysis.py?")


@pytest.mark.parametrize("key", ["\x1b", "\x03"])
def test_its_work_can_be_interrupted(start: Start, key: str) -> None:
    terminal = start("--script", "chatty")
    terminal.until("I compare the rows")
    terminal.type(key)
    terminal.until("What should Demo do instead?", gone="esc to interrupt")


def test_an_interrupted_command_is_ended(start: Start) -> None:
    Path("stats.py").write_text("import time\nprint(len(values) - 1) if 0 else time.sleep(1000)  # (len(values) - 1)\n")
    terminal = start("fix", *FAST)
    for question in (EDIT, RUN):
        terminal.until(question)
        terminal.type("1")
    terminal.until("Running…", "esc to interrupt")
    begin = Path(f"/proc/{terminal.process.pid}/task/{terminal.process.pid}/children")
    until(lambda: begin.read_text())
    [child] = map(int, begin.read_text().split())
    terminal.type("\x1b")
    terminal.until("└  Interrupted")
    assert not Path(f"/proc/{child}").exists()


def test_a_message_that_names_a_task_begins_it(start: Start) -> None:
    terminal = start(*FAST)
    terminal.until(AT_REST)
    terminal.type("hello\r")
    terminal.until("> hello", "I am a demo and only know these tasks", AT_REST)
    terminal.type("please fix the mean\r")
    terminal.until(f"{EDIT} stats.py?")


def test_what_is_typed_while_it_works_waits_for_its_turn(start: Start) -> None:
    terminal = start("--script", "chatty", "--seconds", "0.5", *FAST)
    terminal.until("I compare the rows")
    terminal.type("then fix it\r")
    terminal.until("> then fix it", EDIT)


def test_typed_text_can_be_corrected(start: Start) -> None:
    terminal = start(*FAST)
    terminal.until(AT_REST)
    terminal.type("wörx\x7fld")
    terminal.until("> wörld")
    row = next(at for at, line in enumerate(terminal.lines) if "wörld" in line)
    until(lambda: terminal.cursor == (row, 9), what=lambda: terminal.cursor)


# ---- ends


def test_ctrl_c_twice_leaves(start: Start) -> None:
    terminal = start(*FAST)
    terminal.until(AT_REST)
    terminal.type("\x03\x03")  # at once: it forgets the first after two seconds
    assert terminal.wait() == 0
    assert b"Press Ctrl-C again to exit" in terminal.raw
    assert terminal.restored
    assert not terminal.switched()


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGHUP])
def test_a_signal_ends_it_and_the_terminal_is_restored(start: Start, number: signal.Signals) -> None:
    terminal = start("plot", *FAST)
    terminal.until(CREATE)
    terminal.process.send_signal(number)
    assert terminal.wait() == 128 + number
    assert terminal.restored
    assert not terminal.switched()


def test_an_interrupt_from_outside_is_a_ctrl_c(start: Start) -> None:
    terminal = start("--script", "chatty")
    terminal.until("I compare the rows")
    terminal.process.send_signal(signal.SIGINT)
    terminal.until("What should Demo do instead?")


def test_it_ends_with_its_terminal(start: Start) -> None:
    terminal = start("plot", *FAST)
    terminal.until(CREATE)
    terminal.hang_up()
    # The end of what it reads may come first, and the signal when it is about to leave.
    assert terminal.wait() in (128 + signal.SIGHUP, -signal.SIGHUP)


def test_without_a_terminal_it_says_so() -> None:
    done = plain("plot")
    assert (done.returncode, done.stderr) == (1, "The demo agent needs a terminal.\n")


def test_the_version_is_told() -> None:
    assert plain("--version").stdout == "1.0.0 (Demo agent)\n"


# ---- sizes


@pytest.mark.parametrize("size", [(80, 60), (80, 132), (12, 40)])
def test_a_new_size_draws_everything_anew(start: Start, size: tuple[int, int]) -> None:
    terminal = start("plot", *FAST)
    answer_all(terminal)
    terminal.until(PLOTTED, AT_REST, gone="esc to interrupt")
    terminal.resize(size)
    top, bottom = "╭" + "─" * (size[1] - 2) + "╮", "╰" + "─" * (size[1] - 2) + "╯"
    input_box = [top, "│ >" + " " * (size[1] - 4) + "│", bottom, f"  {AT_REST}"]

    def drawn() -> bool:  # at one look: the kernel tells it of the size too, so it draws twice
        lines = terminal.text.split("\n")
        # What has been said is there too, from its first line, where there is room for it.
        return lines[-4:] == input_box and (size[0] < 80 or lines[0] == top)

    until(drawn, what=lambda: terminal.text)


def test_a_question_follows_the_size(start: Start) -> None:
    terminal = start("plot", *FAST)
    terminal.until(CREATE)
    terminal.resize((60, 60))

    def drawn() -> bool:
        lines = terminal.text.split("\n")
        whole = lines[0] == "╭" + "─" * 58 + "╮" and lines[-1] == "╰" + "─" * 58 + "╯"
        options = ("❯ 1. Yes", "3. No, and tell Claude what to do differently (esc)")
        return whole and all(one in terminal.text for one in options) and max(map(len, lines)) == 60

    until(drawn, what=lambda: terminal.text)


# ---- conversations


def test_a_killed_agent_resumes_with_its_next_step(start: Start) -> None:
    first = start("plot the data", "--session-id", ID, *FAST)
    first.until(f"{CREATE} data.csv?")
    first.type("1")
    first.until(f"{CREATE} analysis.py?")
    first.process.kill()
    first.wait()
    second = start("--resume", ID, *FAST, size=(60, 90))
    second.until("> plot the data", "● Write(data.csv)", "Wrote 8 lines", f"{CREATE} analysis.py?")
    assert second.text.count("> plot the data") == 1
    second.type("2")
    second.until(RUN)
    second.type("1")
    second.until(PLOTTED)
    leave(second)
    third = start("--continue", *FAST)
    third.until(PLOTTED, AT_REST)


def test_a_conversation_without_a_word_can_be_resumed(start: Start) -> None:
    leave(start("--session-id", ID, *FAST))
    leave(start("--resume", ID, *FAST))


def test_what_was_allowed_holds_in_a_resumed_conversation(start: Start) -> None:
    first = start("plot", "--session-id", ID, *FAST)
    first.until(f"{CREATE} data.csv?")
    first.type("2")
    first.until(RUN)
    first.process.kill()
    first.wait()
    assert kept(ID)["allowed"] == ["edit"]
    start("--resume", ID, "fix the mean", *FAST).until(RUN, "python3 stats.py")


def test_an_id_is_used_once_and_resumed_only_if_known(start: Start) -> None:
    leave(start("--session-id", ID, *FAST))
    again = plain_on_terminal(start, "--session-id", ID)
    assert f"Session ID {ID} is already in use." in again
    assert "No conversation found with session ID: nonsense" in plain_on_terminal(start, "--resume", "nonsense")


def plain_on_terminal(start: Start, *arguments: str) -> str:
    terminal = start(*arguments)
    assert terminal.wait() == 1
    terminal.until("ession ID")
    assert terminal.restored
    return terminal.text


def test_permissions_can_be_skipped(start: Start) -> None:
    terminal = start("plot", "--dangerously-skip-permissions", *FAST)
    terminal.until(PLOTTED)
    assert b"Do you want" not in terminal.raw
    assert os.path.exists("plot.png")


# ---- how its screens are read


def reads(terminal: Terminal, state: str, kind: str = "", subject: str | None = None) -> Prompt | None:
    """Wait until the screen, drawn whole, is read so; the prompt."""
    found: list[Doing] = []

    def fits() -> bool:
        found[:] = [read_screen(terminal.lines, terminal.cursor[0], "claude")]
        prompt = found[0].prompt
        read = (found[0].state, prompt.kind if prompt else "", prompt and prompt.subject)
        return read == (state, kind, subject) and (prompt is None or prompt.masked or len(prompt.choices) == 3)

    until(fits, what=lambda: f"{found}\n{terminal.text}")
    return found[0].prompt


def read_frames(terminal: Terminal, size: tuple[int, int] = (40, 90)) -> Iterator[Doing]:
    """How each frame that it has drawn is read, however short it was to be seen."""
    screen = pyte.Screen(size[1], size[0])
    stream = pyte.ByteStream(screen)
    begin = b"\x1b[?25l\r"
    for frame in terminal.raw.split(begin):
        stream.feed(begin + frame)
        yield read_screen([line.rstrip() for line in screen.display], screen.cursor.y, "claude")


def once(prompt: Prompt | None) -> str:
    assert prompt is not None and prompt.once is not None
    assert [choice.kind for choice in prompt.choices] == ["once", "always", "no"]
    return prompt.once.key


@pytest.mark.parametrize("size", [(24, 80), (36, 120), (50, 200)])
def test_its_questions_are_read_whole(start: Start, size: tuple[int, int]) -> None:
    terminal = start("plot the data", *FAST, size=size)
    for subject in ("data.csv", "analysis.py"):
        terminal.type(once(reads(terminal, "waiting", "edit", subject)))
    terminal.type(once(reads(terminal, "waiting", "command", "python3 analysis.py")))
    terminal.until(PLOTTED)
    reads(terminal, "idle")
    assert any(doing.state == "working" for doing in read_frames(terminal, size))


def test_its_edit_is_read(start: Start) -> None:
    terminal = start("fix", *FAST)
    assert once(reads(terminal, "waiting", "edit", "stats.py")) == "1"


def test_what_is_dangerous_is_read_whole(start: Start) -> None:
    reads(start("danger", *FAST), "waiting", "command", "rm -rf ~/*")


def test_its_password_is_read_as_masked(start: Start) -> None:
    terminal = start("password", *FAST)
    terminal.type(once(reads(terminal, "waiting", "command", "sudo apt-get install gnuplot")))
    prompt = reads(terminal, "waiting", "other")
    assert prompt is not None and prompt.masked and prompt.once is None


def test_the_quoted_box_is_read_as_no_question(start: Start) -> None:
    terminal = start("quote", *FAST)
    terminal.until("End of the README.", "❯ 1. Yes", "nobody asked anything", gone="esc to interrupt")
    reads(terminal, "idle")
    assert {doing.state for doing in read_frames(terminal)} == {"idle", "working"}
