"""Checks of live processes in a sandbox, of what a sandbox wraps, and of its end; see ``sandboxes``."""

from __future__ import annotations

import contextlib
import os
import pty
import subprocess
import threading
from concurrent.futures import ThreadPoolExecutor

from session_magics.errors import WaitTimeout
from session_magics.model import Command
from session_magics.sandbox import STDERR_TAIL, Sandbox
from session_magics.testing.rig import LIMIT, raises, same
from session_magics.testing.there import EVERY_BYTE, MUCH, all_end, closing, differs, folder, live, near

# ------------------------------------------------------------ live processes


def a_live_process_answers(sandbox: Sandbox) -> None:
    """A line at a time, with every byte value, until its input ends."""
    with live(sandbox, "cat") as process:
        for data in (b"one\n", EVERY_BYTE, b"\ntwo\n"):
            process.stdin.write(data)
            process.stdin.flush()
            same(process.stdout.read(len(data)), data, "echo")
        same(process.poll(), None, "status while it runs")
        process.stdin.close()
        same((process.stdout.read(), process.wait(LIMIT), process.poll()), (b"", 0, 0), "rest and status")


def a_live_process_ends_by_itself(sandbox: Sandbox) -> None:
    """Its status is told to everybody who waits, and as often as they like."""
    with live(sandbox, "sh", "-c", "read -r line; exit 7") as process:
        raises(WaitTimeout, lambda: process.wait(0.05), "a wait that is too short")
        with ThreadPoolExecutor(4) as pool:
            waiting = [pool.submit(process.wait, LIMIT) for _ in range(4)]
            process.stdin.write(b"\n")
            process.stdin.flush()
            same([one.result() for one in waiting], [7] * 4, "status for each")
        process.kill()
        same((process.wait(), process.poll()), (7, 7), "status after a kill that came too late")


def a_kill_ends_the_whole_group(sandbox: Sandbox) -> None:
    """At once, from any thread, and a second one is harmless."""
    with folder(sandbox) as name:
        script = f"cd {name}; sleep 60 & echo $! > pids; echo $$ >> pids; echo up; sleep 60; :"
        with live(sandbox, "sh", "-c", script) as process:
            same(process.stdout.readline(), b"up\n", "output")
            killers = [threading.Thread(target=process.kill) for _ in range(3)]
            for killer in killers:
                killer.start()
            same(process.wait(LIMIT) != 0, True, "it did not end by itself")
            for killer in killers:
                killer.join()
            process.kill()
            all_end(sandbox, f"{name}/pids", 2)


def error_output_holds_up_nobody(sandbox: Sandbox) -> None:
    """The newest 64 KiB of it are kept, while the program goes on answering."""
    script = "i=0; while [ $i -lt 20000 ]; do echo line $i >&2; i=$((i+1)); done; cat"
    with live(sandbox, "sh", "-c", script) as process:
        process.stdin.write(b"still there\n")
        process.stdin.flush()
        same(process.stdout.readline(), b"still there\n", "answer")
        process.stdin.close()
        same(process.wait(LIMIT), 0, "status")
        everything = b"".join(b"line %d\n" % number for number in range(20_000))
        same(process.stderr(), everything[-STDERR_TAIL:], "tail of the error output")


def much_goes_through_a_live_process(sandbox: Sandbox) -> None:
    """8 MB in while 8 MB come out."""
    with live(sandbox, "cat") as process:

        def feed() -> None:
            process.stdin.write(MUCH)
            process.stdin.close()

        feeder = threading.Thread(target=feed)
        feeder.start()
        found = process.stdout.read()
        feeder.join()
        same(differs(found, MUCH), "", "8 MB through cat")
        same(process.wait(LIMIT), 0, "status")


def a_live_process_has_the_same_statuses(sandbox: Sandbox) -> None:
    """Of a program that is not there, and in a directory and an environment of its own."""
    with live(sandbox, "no-such-program-anywhere") as process:
        same(process.wait(LIMIT), 127, "status of a program that is not there")
    with folder(sandbox) as name:
        process = sandbox.start_process(Command(("sh", "-c", 'pwd; printf %s "$ONE"'), name, {"ONE": "it's\n1"}))
        with closing(process):
            directory, _, value = process.stdout.read().decode().partition("\n")
            same((directory.endswith(f"/{name}"), value), (True, "it's\n1"), "directory, value")


# -------------------------------------------------------------- the sandbox


def a_wrapped_command_runs_there(sandbox: Sandbox) -> None:
    """With clean pipes that carry any bytes, and with its own status."""
    with folder(sandbox) as name:
        wrapped = sandbox.wrap(Command(("sh", "-c", 'pwd; echo "$ONE"; cat; exit 7'), name, {"ONE": "it's"}))
        done = subprocess.run(wrapped.argv, input=EVERY_BYTE, capture_output=True, check=False, **near(wrapped))
        directory, value, rest = done.stdout.split(b"\n", 2)
        same((directory.endswith(f"/{name}".encode()), value), (True, b"it's"), "directory, value")
        same((rest, done.returncode), (EVERY_BYTE, 7), "echo, status")


def a_wrapped_command_gets_a_terminal(sandbox: Sandbox) -> None:
    """If it is to have one."""
    pty_fd, tty_fd = pty.openpty()
    wrapped = sandbox.wrap(Command(("sh", "-c", "test -t 0 && test -t 1 && echo a terminal")), terminal=True)
    here = subprocess.Popen(
        wrapped.argv, stdin=tty_fd, stdout=tty_fd, stderr=tty_fd, start_new_session=True, **near(wrapped)
    )
    os.close(tty_fd)
    output = b""
    try:
        with contextlib.suppress(OSError):  # how Linux tells that the other end has been closed
            while piece := os.read(pty_fd, 4096):
                output += piece
        same((b"a terminal" in output, here.wait(LIMIT)), (True, 0), f"told so in {output!r}, status")
    finally:
        here.kill()
        here.wait()
        os.close(pty_fd)


def what_is_there_is_told(sandbox: Sandbox) -> None:
    """And it is there indeed."""
    found = sandbox.probe()
    same((found.system != "", found.home[:1], found.user != ""), (True, "/", True), "system, home, user")
    same("sh" in found.shells, True, f"a shell among {dict(found.shells)}")
    for path in found.shells.values():
        same(sandbox.exec(Command((path, "-c", "exit 7"))).code, 7, f"status of {path}")
    if found.python is not None:
        same(sandbox.exec(Command((found.python, "-c", "print(7)"))).stdout, b"7\n", "output of python")
    same(sandbox.probe(), found, "what is told the second time")


def a_close_ends_what_runs(sandbox: Sandbox) -> None:
    """And can be repeated."""
    with live(sandbox, "sh", "-c", "echo up; sleep 60; :") as process:
        same(process.stdout.readline(), b"up\n", "output")
        sandbox.close()
        same(process.wait(LIMIT) != 0, True, "it did not end by itself")
    sandbox.close()
