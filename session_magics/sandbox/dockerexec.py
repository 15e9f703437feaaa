"""A client for one program in a container, beside docker's own, and what became of a program there.

Run as a file it needs nothing but the standard library, so it starts at once and without a docker client::

    python -I dockerexec.py exec HOST CONTAINER [--terminal] [--user=USER] [--mark=HALF.HALF] -- WORDS …
    python -I dockerexec.py remove HOST CONTAINER           (quiet, and harmless if it is gone)
    python -I dockerexec.py guard HOST CONTAINER            (the same once its input ends, unless that says to keep it)

The program's variables come as JSON in the variable ADDED, as a command line is for all to read. With a mark, the
words are of dockerscripts.RUN: its signs are taken out of the streams, and this process ends as the program did, by
the same signal if it was one.
"""

from __future__ import annotations

import contextlib
import json
import os
import resource
import select
import signal
import sys
import time
from collections.abc import Iterator
from typing import Any

if __name__ == "__main__":
    # The packages without their __init__, which would double what this process takes.
    for _depth, _name in ((2, "session_magics"), (1, "session_magics.sandbox")):
        _package = type(sys)(_name)
        _package.__path__ = ["/".join(os.path.abspath(__file__).split("/")[:-_depth])]
        sys.modules[_name] = _package

from session_magics.sandbox.dockerwire import PIECE, STDERR, EngineFailure, Line, Streams, attach, call

ADDED = "SESSION_MAGICS_DOCKER_ENV"
REMOVAL = 30.0
"""Seconds for the engine to remove a container, which it kills first."""
BEAT, LOOK = 1.5, 2.5
"""Seconds between two looks at the container while a program runs there, and for the answer to one: together they are
within the five in which a pause or the end of the engine is to be known."""
GUARDED = (0.0, 1.0, 2.0, 3.0, 5.0, 10.0, 15.0)
"""Seconds between the tries to remove a container whose maker is gone: the engine may be about to make it."""
LATE, LATE_STEP = 2.0, 0.01
"""Seconds that the engine may take to know of an end after the streams are over, and between two questions."""
TOO_LONG = b"argument list too long"
"""What the engine says instead of starting a shell with too long words or variables."""
CANNOT_RUN = 126
GONE = "the container is gone"
FAILED, FAILURE = 125, b"docker: "
"""Exit status of the client where docker itself failed, as its own client has it, and how its last line then begins."""
RESIZE_TRIES, RESIZE_STEP = 100, 0.02
"""How often, and in which steps in seconds, a size is told to a terminal whose program is about to be started."""
DETACH_KEYS = "ctrl-@,ctrl-^,ctrl-@,ctrl-_"
"""The engine always watches for some keys to leave a terminal, and holds back the first until the next one comes.
Ctrl-@ sets a mark where anything uses it, of which nothing is seen before the next key."""


class Refused(EngineFailure):
    """The directory is none to run in."""


def create(host: str, container: str, words: list[str], env: list[str], **options: Any) -> str:
    """Have a program be made ready in a container; its id."""
    body = {"Cmd": words, "Env": env, "AttachStdout": True, "AttachStderr": True, "WorkingDir": "/", **options}
    return str(call(host, "POST", f"/containers/{container}/exec", body)["Id"])


def trouble(host: str, container: str) -> str:
    """Why nothing can be expected of the container; empty: nothing is wrong."""
    try:
        state = call(host, "GET", f"/containers/{container}/json", timeout=LOOK)["State"]
    except EngineFailure as failure:
        return f"{GONE}: no such container" if failure.status == 404 else str(failure)
    if state.get("Paused"):
        return "the container is paused: docker unpause it"
    return "" if state.get("Running") else f"{GONE}: it is not running ({state.get('Status', 'ended')})"


def exit_code(host: str, exec_id: str) -> int | None:
    """The status that the engine has of a program, 128 and the signal if it was killed; None: it has not ended."""
    code = call(host, "GET", f"/exec/{exec_id}/json").get("ExitCode")
    return None if code is None else int(code)


def last_code(host: str, exec_id: str) -> int:
    """The same of a program whose streams are over: the engine may hear of its end a moment later."""
    deadline = time.monotonic() + LATE
    while (code := exit_code(host, exec_id)) is None:
        if time.monotonic() > deadline:
            raise EngineFailure("the connection to a program there broke; it still runs")
        time.sleep(LATE_STEP)
    return code


def answers(host: str, container: str) -> bool:
    """Whether a program can be run there."""
    try:
        exec_id = create(host, container, ["/bin/sh", "-c", ":"], [])
        with contextlib.closing(attach(host, exec_id)) as line:
            while line.step(LOOK)[0]:
                pass
        return last_code(host, exec_id) == 0
    except EngineFailure:
        return False


def outcome(host: str, container: str, exec_id: str, streams: Streams | None) -> int:
    """The status of a program whose streams are over, minus a signal's number where that is certain."""
    if streams and streams.code is not None:
        return streams.code
    if streams and streams.refusal:
        raise Refused(streams.refusal)
    if streams and streams.over:
        raise EngineFailure("a program there has killed the shell that was to tell its status")
    if streams and TOO_LONG in streams.before:
        return CANNOT_RUN
    if wrong := trouble(host, container):
        raise EngineFailure(f"{wrong}; the program there was running" if wrong.startswith(GONE) else wrong)
    code = last_code(host, exec_id)
    if streams and not streams.begun:
        raise EngineFailure(f"{streams.before.decode(errors='replace').strip()[-300:]} (status {code})")
    if not streams or code <= 128:
        return code
    # The script always tells a status, so where there is none it was killed itself: alone, or with the whole container,
    # of whose end the engine hears only later.
    if not answers(host, container):
        raise EngineFailure(trouble(host, container) or GONE)
    return 128 - code


def run(host: str, container: str, words: list[str], *, terminal: bool, user: str, mark: str) -> int:
    """Run a program with the streams of this process, and return its status (minus a signal's number)."""
    env = json.loads(os.environ.get(ADDED) or "[]")
    exec_id = create(
        host,
        container,
        words,
        env,
        AttachStdin=True,
        Tty=terminal,
        User=user,
        DetachKeys=DETACH_KEYS if terminal else "",
    )
    line = attach(host, exec_id, terminal=terminal)
    with contextlib.closing(line), _raw_terminal(terminal), _sizes(host, exec_id, terminal):
        streams = Streams(mark) if mark else None
        _carry(line, streams, lambda: trouble(host, container))
    return outcome(host, container, exec_id, streams)


def _carry(line: Line, streams: Streams | None, ask: Any) -> None:
    reading, beat = True, time.monotonic() + BEAT
    while not (streams and streams.over):
        others = (0,) if reading and not line.waiting() else ()
        pieces, readable = line.step(max(0.0, beat - time.monotonic()), *others)
        if pieces is None:
            return
        if readable:
            data = os.read(0, PIECE)
            reading = bool(data)
            line.send(data) if data else line.end()
        for stream, data in pieces:
            _write(stream, streams.feed(stream, data) if streams else data)
        if time.monotonic() >= beat:
            beat = time.monotonic() + BEAT
            if wrong := ask():
                raise EngineFailure(wrong)


def _write(stream: int, data: bytes) -> None:
    rest = memoryview(data)
    while rest:
        try:
            rest = rest[os.write(stream, rest) :]
        except BlockingIOError:
            select.select([], [stream], [])


@contextlib.contextmanager
def _raw_terminal(terminal: bool) -> Iterator[None]:
    """Keys go through as they are: what they mean is for the terminal there."""
    if not (terminal and os.isatty(0)):
        yield
        return
    import termios
    import tty

    before = termios.tcgetattr(0)
    tty.setraw(0, termios.TCSADRAIN)  # what was typed by now is for the program
    try:
        yield
    finally:
        termios.tcsetattr(0, termios.TCSADRAIN, before)


@contextlib.contextmanager
def _sizes(host: str, exec_id: str, terminal: bool) -> Iterator[None]:
    """The terminal there has the size of this one, now and whenever it changes."""
    if not (terminal and os.isatty(0)):
        yield
        return

    def tell(*_: object) -> None:
        size = os.get_terminal_size(0)
        for _try in range(RESIZE_TRIES):
            try:
                call(host, "POST", f"/exec/{exec_id}/resize?h={size.lines}&w={size.columns}")
                return
            except EngineFailure:
                if exit_code(host, exec_id) is not None:
                    return
                time.sleep(RESIZE_STEP)  # the program is not started yet

    before = signal.signal(signal.SIGWINCH, tell)
    tell()
    try:
        yield
    finally:
        signal.signal(signal.SIGWINCH, before)


def remove(host: str, container: str) -> int:
    """Kill and remove a container."""
    try:
        _delete(host, container)
    except EngineFailure as failure:
        return 0 if failure.status in (404, 409) else 1  # gone, or going
    return 0


def _delete(host: str, container: str) -> None:
    call(host, "DELETE", f"/containers/{container}?force=1&v=1", timeout=REMOVAL)


def guard(host: str, container: str) -> int:
    """Remove a container as soon as whoever makes it is gone, however that ends, without having it kept or removed."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    if os.read(0, 1):
        return 0
    for pause in GUARDED:
        time.sleep(pause)
        with contextlib.suppress(EngineFailure):
            _delete(host, container)
            break
    return 0


def main(words: list[str]) -> int:
    """See the top of the file."""
    signal.signal(signal.SIGINT, signal.SIG_DFL)
    verb, host, container, *rest = words
    if verb == "guard":
        return guard(host, container)
    if verb == "remove":
        return remove(host, container)
    at = rest.index("--")
    options = dict(option.removeprefix("--").partition("=")[::2] for option in rest[:at])
    try:
        code = run(
            host,
            container,
            rest[at + 1 :],
            terminal="terminal" in options,
            user=options.get("user", ""),
            mark=options.get("mark", "").replace(".", ""),
        )
    except Refused as refusal:
        os.write(STDERR, f"{refusal}\n".encode())
        return CANNOT_RUN
    except EngineFailure as failure:
        os.write(STDERR, FAILURE + f"{' '.join(str(failure).split())}\n".encode())
        return FAILED
    except BrokenPipeError:
        return 128 + signal.SIGPIPE
    if code < 0:
        resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
        if code not in (-signal.SIGKILL, -signal.SIGSTOP):
            signal.signal(-code, signal.SIG_DFL)
        os.kill(os.getpid(), -code)
    return code


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
