"""The demo agent of the notebooks, on a real terminal: what it does, and how it ends."""

from __future__ import annotations

import json
import signal
import struct
import zlib
from pathlib import Path

import pytest

import demo_agents
from demo_agents import AT_REST, CREATE, EDIT, FAST, ID, PLOTTED, RUN, Start, answer_all, kept, leave, plain

start = demo_agents.start


# ------------------------------------------------------------ what it does


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


# ------------------------------------------------------------ ends


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
