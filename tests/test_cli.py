"""The command line: the verbs as a shell sees them, with status, standard output and standard error."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from held import carried_out as run
from held import command_line
from rounds import DEADLINE, sessions
from session_magics import Command, Registry
from session_magics.cli.follow import MODEL_LIMIT, Follower
from terminals import CLI, Terminal

START_UP = 40
"""Processor time that ``list`` may take, in that of an interpreter that does nothing: a person waits for it at every
Tab. It takes 18 times as much, 0.085 seconds on a quiet machine."""


@pytest.fixture
def registry(root: Path) -> Iterator[Registry]:
    with sessions(root) as registry:
        yield registry


def value(*words: str) -> Any:
    """The value in the envelope that a verb gives with --json."""
    status, out, _ = run(words[0], "--json", *words[1:])
    content = json.loads(out)
    assert set(content) == {"ok", "value"} and content["ok"] is True and status in (0, content["value"])
    return content["value"]


def test_a_session_from_start_to_end(registry: Registry) -> None:
    run = command_line
    status, out, err = run("start", "web", "--label", "crew=a", "--", "sh", "-c", "echo up; read word; exit 3")
    info = registry.get("web").info()
    assert (status, out, err) == (0, f"web running, pid {info.pid}\n", "")
    assert run("wait", "web", "u.") == (0, "up\n", "")
    assert run("tail", "web") == (0, "up\n", "")
    status, out, _ = run("list")
    assert status == 0 and out.splitlines()[1].split()[:3] == ["web", "running", str(info.pid)]
    assert run()[1].splitlines()[1].split()[:3] == ["web", "running", str(info.pid)]  # its age may be another now
    assert "labels     crew=a\n" in run("info", "web")[1]
    assert run("send", "web", "go") == (0, "", "")
    assert run("wait", "web") == (3, "", "")
    assert run("remove", "web") == (0, "web\n", "")
    assert run("list") == (0, "no sessions\n", "")


def test_waits_print_what_they_waited_for_and_groups_their_names(registry: Registry) -> None:
    listen = "import socket, time; s = socket.create_server(('127.0.0.1', 0)); print('up', flush=True); time.sleep(100)"
    program = ("--label", "crew=a", "--wait-port", "--", sys.executable, "-c", listen)
    assert run("start", "web", *program)[0] == 0
    status, port, _ = run("wait", "web", "--port")
    assert status == 0 and int(port) > 0 and value("wait", "web", "--port", port.strip()) == int(port)
    assert run("wait", "web", "--silence", "0.2") == (0, "", "") and value("wait", "web", "--silence", ".2") is None
    assert run("start", "db", "--label", "crew=a", "--", "sleep", "1000")[0] == 0
    status, out, _ = run("restart", "--label", "crew=a")
    assert status == 0 and [line.split()[:2] for line in out.splitlines()] == [["web", "running,"], ["db", "running,"]]
    assert run("stop", "--label", "crew=b") == (1, "", "session-magics: no session carries crew=b\n")
    assert run("stop", "--label", "crew=a") == (0, "web\ndb\n", "") and run("stop", "--label", "crew=a") == (0, "", "")
    assert run("clean", "--keep", "2") == (0, "", "")
    assert sorted(run("clean", "--dry-run")[1].split()) == sorted(run("clean")[1].split()) == ["db", "web"]


def test_a_program_that_gave_up_has_its_status(registry: Registry) -> None:
    run("start", "bad", "--restart", "on-failure", "--max-restarts", "1/1m", "--", "sh", "-c", "exit 5")
    assert run("wait", "bad") == (5, "", "")
    assert "gave up after 1 restart: exit 5" in run("list")[1]
    assert value("info", "bad")["state"]["kind"] == "GaveUp"
    assert value("info", "bad")["max_restarts"] == {"count": 1, "window": 60.0}


def test_a_killed_program_has_a_status_as_in_a_shell(registry: Registry) -> None:
    registry.start("k", Command(("sh", "-c", "kill -9 $$")))
    assert run("wait", "k")[0] == 128 + signal.SIGKILL


def test_wrong_words_are_2_and_failures_1_and_both_one_line_on_standard_error(registry: Registry) -> None:
    registry.start("k", Command(("sleep", "1000")))
    for words, status, message in (
        (("nonsense",), 2, "session-magics has no verb 'nonsense': verbs are start, "),
        (("ps",), 2, "session-magics has no verb 'ps': did you mean 'list'?"),
        (("tail",), 2, "session-magics tail: NAME is missing; usage: session-magics tail NAME [-n 20] [-f]"),
        (("start", "x", "--lifetime", "kernel", "ls"), 2, "--lifetime kernel: "),
        (("info", "nope"), 1, "no session named 'nope'; known: k"),
        (("start", "k", "ls"), 1, "session 'k' exists (running)"),
        (("start", "bad", "/nope"), 1, "session 'bad' failed to start: "),
        (("wait", "k", "--timeout", "0.1"), 1, "session 'k': the end not seen within 0.1 s"),
        (("attach", "k"), 1, "attach needs a terminal as input and output: session-magics tail -f NAME"),
    ):
        found, out, err = command_line(*words)
        assert (found, out, err.count("\n")) == (status, "", 1)
        assert err.startswith(f"session-magics: {message}"), err


def test_help_is_on_standard_output() -> None:
    for words in ((), ("help",), ("--help",)):
        if words:
            status, out, err = run(*words)
            assert status == 0 and err == "" and "  attach " in out and "  list " in out
    assert run("attach", "--help")[1].startswith("usage: session-magics attach NAME [--read-only]")
    assert run("--version")[1].startswith("session-magics ")


def test_every_verb_gives_one_envelope(registry: Registry) -> None:
    started = value("start", "web", "sh", "-c", "echo up; exec sleep 1000")
    assert started["name"] == "web" and started["state"]["kind"] == "Running" and started["argv"][0] == "sh"
    assert value("wait", "web", "up\n") == "up\n"
    more = {"log_bytes": 4, "doing": "", "parent_name": "", "children": []}
    assert value("info", "web") == {**started, **more}
    [row] = value("list")
    assert row["last_line"] == "up" and row["name"] == "web" and row["ports"] == []
    assert value("tail", "web") == value("snapshot", "web") == value("show", "web") == "up"
    assert value("send", "web", "x") is None and value("resize", "web", "30x90") is None
    assert value("interrupt", "web") is None
    status, out, _ = run("wait", "web", "--json")
    assert status == 130 and json.loads(out)["value"] == -signal.SIGINT
    assert value("restart", "web")["generation"] == 2
    assert value("stop", "web") == ["web"] and value("remove", "web") == ["web"] and value("list") == []
    assert value("doctor").startswith("package")
    assert "complete" in value("completion", "bash")


def test_attachments_are_printed_as_a_table(registry: Registry, tmp_path: Path) -> None:
    registry.start("a", Command(("echo", "see a.png"), str(tmp_path))).wait(DEADLINE)
    assert run("attachments", "a") == (0, "no attachments\n", "")
    (tmp_path / "a.png").write_bytes(b"12345")
    status, out, _ = run("attachments", "a")
    assert status == 0 and [line.split()[:3] for line in out.splitlines()[1:]] == [["a.png", "5", "image/png"]]
    assert [one["size"] for one in value("attachments", "a")] == [5]


def test_failures_have_their_kind_in_the_envelope(registry: Registry) -> None:
    status, out, err = run("info", "--json", "nope")
    assert (status, err) == (1, "")
    assert json.loads(out) == {
        "ok": False,
        "error": {"kind": "SessionNotFound", "message": "no session named 'nope'; none exists yet: "
                  "session-magics start NAME PROGRAM"},
    }  # fmt: skip
    status, out, err = run("tail", "--json")
    assert (status, err) == (2, "") and json.loads(out)["error"]["kind"] == "UsageMistake"
    assert run("start", "x", "--", "echo", "--json")[1].startswith("x ")


def test_tail_f_follows_to_the_end(registry: Registry) -> None:
    session = registry.start("f", Command(("sh", "-c", "echo one; while read word; do echo $word; done")))
    session.wait_for("one\n", DEADLINE)
    follower = subprocess.Popen((*CLI, "tail", "-f", "f"), stdout=subprocess.PIPE, text=True)
    assert follower.stdout is not None
    assert follower.stdout.readline() == "one\n"
    session.send("two\r")
    assert [follower.stdout.readline() for _ in range(2)] == ["two\n", "two\n"]
    session.send("\x04")
    assert follower.wait(DEADLINE) == 0 and follower.stdout.read() == ""
    follower.stdout.close()
    status, out, _ = run("tail", "-f", "f", "--json")
    assert status == 0 and [json.loads(line) for line in out.splitlines()] == [{"ok": True, "value": "one\ntwo\ntwo\n"}]


def test_tail_f_ends_with_whoever_reads_it(registry: Registry) -> None:
    registry.start("y", Command(("yes",)))
    follower = subprocess.Popen((*CLI, "tail", "-f", "y"), stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    assert follower.stdout is not None and follower.stderr is not None
    assert follower.stdout.readline() == "y\n"
    follower.stdout.close()
    assert follower.wait(DEADLINE) == 128 + signal.SIGPIPE and follower.stderr.read() == ""
    follower.stderr.close()


def test_ctrl_c_ends_a_wait_and_not_the_session(registry: Registry) -> None:
    session = registry.start("w", Command(("sleep", "1000")))
    with Terminal((*CLI, "wait", "w")) as terminal:
        terminal.until("waiting for the end of w")  # after a second, as it is a terminal
        terminal.type("\x03")
        assert terminal.wait() == 128 + signal.SIGINT
    assert session.info().running


def test_the_table_is_cut_to_the_width_of_the_terminal_and_obeys_no_controls(registry: Registry) -> None:
    registry.start(
        "w", Command(("sh", "-c", "echo 日本日本日本日本; exec sleep 1000", "\x1b]0;evil\x07\x9b31m"))
    ).wait_for("日本日本日本日本\n", DEADLINE)
    with Terminal((*CLI, "list"), (10, 60)) as terminal:
        assert terminal.wait() == 0
        terminal.until("NAME  STATE", "w     running", "…")
        assert len(terminal.text.splitlines()) == 2 and terminal.text.splitlines()[1].endswith("…")
        assert b"\x1b" not in terminal.raw and "\x9b" not in terminal.raw.decode()
    assert "日本" in run("list")[1] and "\x1b" not in run("list")[1]


def test_show_on_a_terminal_is_live_and_elsewhere_text(registry: Registry) -> None:
    registry.start("w", Command(("sh", "-c", "echo up; read word; exit 4"))).wait_for("up\n", DEADLINE)
    assert run("show", "w") == (0, "up\n", "")
    with Terminal((*CLI, "show", "w")) as terminal:
        terminal.until("up", "detaches")
        terminal.type("\r")
        assert terminal.wait() == 4
    with Terminal((*CLI, "show", "w")) as terminal:  # there is nothing to attach to any more
        terminal.until("up")
        assert terminal.wait() == 0


def test_no_notebook_is_imported_and_it_starts_fast(registry: Registry) -> None:
    code = (
        "import sys; from session_magics.cli.main import main; main(['list']); "
        "sys.exit(bool({'IPython', 'traitlets', 'zmq', 'pyte', 'ipykernel'} & set(sys.modules)))"
    )
    assert subprocess.run((sys.executable, "-c", code), capture_output=True).returncode == 0
    least = [min(_seconds(*words) for _ in range(3)) for words in ((*CLI, "list"), (sys.executable, "-c", ""))]
    assert least[0] < START_UP * least[1]


def _seconds(*words: str) -> float:
    """Processor time of a process."""
    process = subprocess.Popen(words, stdout=subprocess.DEVNULL)
    _, status, usage = os.wait4(process.pid, 0)
    process.returncode = os.waitstatus_to_exitcode(status)
    assert process.returncode == 0
    return usage.ru_utime + usage.ru_stime


# ---- what tail -f prints


def followed(*pieces: bytes, live: bool) -> str:
    follower = Follower(live=live)
    return "".join(map(follower.feed, pieces)) + follower.finish()


@pytest.mark.parametrize(
    ("pieces", "printed"),
    [
        ((b"one\r\ntwo\r\n",), "one\ntwo\n"),
        ((b"on", b"e\r\ntw", b"o"), "one\ntwo\n"),
        ((b"10%", b"\r20%", b"\r30%\r\ndone\r\n"), "30%\ndone\n"),
        ((b"\x1b[31mred\x1b[m\r\n",), "red\n"),
        ((b"old\r\n", b"\x1b[H\x1b[2Jnew\r\n"), "old\nnew\n"),
        ((b"",), ""),
    ],
)
def test_where_nothing_can_be_written_over_lines_come_whole(pieces: tuple[bytes, ...], printed: str) -> None:
    assert followed(*pieces, live=False) == printed


def test_on_a_terminal_the_last_line_is_written_over() -> None:
    assert followed(b"10%", b"\r20%", b"\r\n", live=True) == "10%\r\x1b[K20%\n"
    assert followed(b"\x1b[31mred\x1b[m", live=True) == "\x1b[31mred\x1b[0m\n"


def test_following_for_long_takes_no_memory() -> None:
    follower, lines = Follower(live=False), 0
    for number in range(200):
        lines += follower.feed((b"x" * 90 + b"%d\r\n" % number) * 100).count("\n")
        assert follower._model.size < 2 * MODEL_LIMIT
    assert lines == 200 * 100


@pytest.mark.parametrize("live", [True, False])
def test_following_a_line_without_an_end_takes_no_memory(live: bool) -> None:
    follower, piece, printed = Follower(live=live), b"\xc3\xa9\x1b[31m" + b"x" * 9000 + b"\x1b[m", ""
    for number in range(100):
        printed += follower.feed(piece[1:] + piece[:1] if number else piece[:1])
        assert follower._model.size < 2 * MODEL_LIMIT
    printed += follower.feed(b"\r\nthe next\r\n") + follower.finish()
    shown = "\x1b[31m" + "x" * 9000 + "\x1b[0m" if live else "x" * 9000
    assert printed == ("\u00e9" + shown) * 99 + "\ufffd\nthe next\n"


def test_a_progress_line_on_standard_error_is_for_terminals_alone(registry: Registry) -> None:
    registry.start("w", Command(("sh", "-c", "sleep 1.5; exit 6")))
    assert run("wait", "w") == (6, "", "")
