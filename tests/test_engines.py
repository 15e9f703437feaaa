"""Sessions on the engines of a real cluster: by the command line, and from Python."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path
from typing import Any

import psutil
import pytest
from hypothesis import given
from hypothesis import strategies as st

import clustered
from clustered import SOON, busy, names, run
from clusters import LocalCluster
from held import command_line
from rounds import until
from session_magics import Command, Registry, SessionExists, SessionNotFound, UsageMistake, WaitTimeout
from session_magics import engines as far
from session_magics.cluster import ANSWER_LIMIT
from session_magics.engines import EngineSession, merged
from session_magics.listing import Row
from session_magics.model import Exited, Running, SessionInfo
from session_magics.store.names import at_engine, check_key, engine_address
from terminals import CLI

shared, cluster = clustered.shared, clustered.cluster


# ------------------------------------------------------------------ names


@given(st.from_regex(r"[A-Za-z0-9][A-Za-z0-9._-]{0,20}(@[0-9A-Za-z._-]{1,20})?", fullmatch=True), st.integers(0, 99999))
def test_an_address_is_read_as_it_was_made_and_is_no_name_of_here(name: str, engine: int) -> None:
    address = at_engine(name, engine)
    assert engine_address(address) == (name, engine) and engine_address(name) is None
    with pytest.raises(UsageMistake):
        check_key(address)


@pytest.mark.parametrize(
    "name", ["web@engine:", "web@engine:x", "web@engine:-1", "@engine:1", "a b@engine:1", "w@engine:1@k"]
)
def test_a_wrong_address_is_refused(name: str) -> None:
    with pytest.raises(UsageMistake):
        engine_address(name)


def row(name: str, id: str, **more: Any) -> Row:
    info = SessionInfo(
        name, id, Running(1, 0.0), ("x",), "/", more.pop("labels", {}), more.pop("lifetime", "detached"), "no", None,
        (24, 80), 1, 1, 0.0, Path("/", id or name), 0,
    )  # fmt: skip
    return Row(info, None, "/", None, "", "")


def test_a_session_that_several_know_is_listed_once() -> None:
    own = {"lifetime": "kernel"}
    here = [
        row("web", "1"),
        row("job", "2", labels={"engine": "1"}),
        row("main@9-9", "3", **own),
        row("old", "4", labels={"engine": "7"}),
    ]
    same = [row("web", "1"), row("job", "2", labels={"engine": "1"}), row("old", "4", labels={"engine": "7"})]
    there = {
        0: [*same, row("main@9-9", "3", **own)],
        1: [*same, row("main", "3", **own)],
        2: [row("web", "5"), row("main@8-8", "6", **own)],
        3: [row("web", "5"), row("main", "6", **own)],
    }
    shown = [one.info.name for one in merged(here, there)]
    assert shown == ["web", "job@engine:1", "main@engine:1", "old", "web@engine:2", "main@engine:3"]
    assert [one.info.name for one in merged(here, {})] == ["web", "job", "main@9-9", "old"]


# ------------------------------------------------------------------ the command line


def test_a_session_of_an_engine_from_start_to_end(cluster: LocalCluster) -> None:
    program = ("--", "sh", "-c", "echo up; read word; echo got $word; exit 3")
    status, out, err = run("start", "web", "--on", "engine:2", "--wait-for", "up", *program)
    info = Registry().get("web").info()
    assert (status, out, err) == (0, f"web@engine:2 running, pid {info.pid}\n", "")
    assert names() == ["web@engine:2"]
    assert run("list", "--engines")[1].splitlines()[1].split()[:3] == ["web@engine:2", "running", str(info.pid)]
    assert run("list")[1].splitlines()[1].split()[0] == "web"  # it is of this machine too
    assert "name       web@engine:2\n" in run("info", "web@engine:2")[1]
    assert (
        run("tail", "web@engine:2") == run("show", "web@engine:2") == run("snapshot", "web@engine:1") == (0, "up\n", "")
    )
    assert run("wait", "web@engine:2", "u.") == (0, "up\n", "")
    assert run("wait", "web@engine:2", "--silence", "0.2") == (0, "", "")
    assert run("send", "web@engine:2", "go") == (0, "", "")
    assert run("wait", "web@engine:2") == (3, "", "")
    assert run("tail", "-f", "web@engine:2") == (0, "up\ngo\ngot go\n", "")
    assert run("restart", "web@engine:2")[1].startswith("web@engine:2 running, pid ")
    assert run("interrupt", "web@engine:2")[0] == 0
    assert run("wait", "web@engine:2")[0] == 128 + signal.SIGINT
    assert run("remove", "web@engine:2") == (0, "web@engine:2\n", "")
    assert run("list", "--engines") == (0, "no sessions\n", "")


def test_failures_are_one_line_and_name_the_engine(cluster: LocalCluster) -> None:
    assert run("start", "web", "--on", "engine:1", "--", "sleep", "1000")[0] == 0
    for words, status, message in (
        (("start", "web", "--on", "engine:3", "ls"), 1, "engine 3: session 'web' exists (running): "),
        (("start", "bad", "--on", "engine:0", "/nope"), 1, "engine 0: session 'bad' failed to start: "),
        (("start", "web", "--on", "engine:x", "ls"), 2, "'engine:x' is no engine: engine:N, such as engine:2"),
        (
            ("start", "web", "--on", "engine:9", "ls"),
            1,
            "engine 9: the cluster has no such engine, or it has ended; it",
        ),
        (("tail", "nope@engine:2"), 1, "engine 2: no session named 'nope'; known: "),
        (("info", "web@engine:two"), 2, "'web@engine:two' is no session of an engine: "),
        (("attachments", "web@engine:1"), 2, "attachments is for sessions of this machine: "),
        (("wait", "web@engine:1", "--timeout", "0.1"), 1, "session 'web@engine:1': the end not seen within 0.1 s"),
        (("wait", "web@engine:1", "x", "--timeout", "0.1"), 1, "session 'web@engine:1': 'x' not seen within 0.1 s"),
        (("stop", "web@engine:1", "nope@engine:2"), 1, "engine 2: no session named 'nope'"),  # the other is stopped
        (
            ("send", "web@engine:1", "x"),
            1,
            "engine 1: session 'web' is not running (killed by signal 15): session-magics restart web@engine:1",
        ),
    ):
        got, out, err = run(*words)
        assert (got, out, err.count("\n")) == (status, "", 1), err
        assert err.startswith(f"session-magics: {message}"), err
    failed = json.loads(run("tail", "--json", "nope@engine:2")[1])
    assert failed["error"]["kind"] == "SessionNotFound"


def test_stop_takes_names_of_here_and_of_several_engines(cluster: LocalCluster) -> None:
    for name, *on in (("a",), ("b", "--on", "engine:0"), ("c", "--on", "engine:1"), ("d", "--on", "engine:1")):
        assert run("start", name, *on, "--", "sleep", "1000")[0] == 0
    status, out, err = run("stop", "a", "b@engine:0", "c@engine:1", "d@engine:1", "--now")
    assert (status, out, err) == (0, "a\nb@engine:0\nc@engine:1\nd@engine:1\n", "")
    assert all(isinstance(info.state, Exited) for info in Registry().infos())
    assert run("remove", "a", "b@engine:0")[0] == 0 and names() == ["c@engine:1", "d@engine:1"]


def test_an_engine_with_a_registry_of_its_own(cluster: LocalCluster, tmp_path: Path) -> None:
    """What another machine, or another user, is."""
    elsewhere = Path(str(cluster.root) + "2")
    cluster.run(3, f"import os; os.environ['SESSION_MAGICS_HOME'] = {str(elsewhere)!r}")
    try:
        run("start", "web", "--", "sleep", "1000")
        assert run("start", "web", "--on", "engine:3", "--", "sh", "-c", "echo there; sleep 1000")[0] == 0
        assert names() == ["web", "web@engine:3"]
        assert run("wait", "web@engine:3", "there")[0] == 0
        assert run("tail", "web@engine:3")[1] == "there\n" and run("tail", "web@engine:0")[1] == "\n"
        assert len(run("list")[1].splitlines()) == 2
    finally:
        run("remove", "--force", "web@engine:3")
        cluster.run(3, f"import os; os.environ['SESSION_MAGICS_HOME'] = {str(cluster.root)!r}")


# ------------------------------------------------------------------ Python


def test_sessions_of_engines_from_python(cluster: LocalCluster) -> None:
    session = far.start(
        1, "api", Command(("sh", "-c", "echo up; read w; echo $w; exit 4"), env={"X": "1"}), labels={"a": "b"}
    )
    assert session.name == "api@engine:1" and session.info().labels == {"a": "b", "engine": "1"}
    assert repr(session) == f"<Session api@engine:1 running pid={session.info().pid}>"
    with pytest.raises(SessionExists, match="engine 0: session 'api' exists"):
        far.start(0, "api", Command(("ls",)))
    assert session.wait_for("up", SOON) == "up"
    session.resize(30, 90)
    assert session.info().size == (30, 90)
    with pytest.raises(WaitTimeout):
        session.wait_silence(5, 0.1)
    session.send("well\r")
    assert session.wait(SOON) == 4 and session.tail(1) == "well" and session.snapshot() == "up\nwell\nwell"
    assert b"".join(session.follow(4)) == b"well\r\nwell\r\n"
    assert isinstance(session.restart(env={"X": "2"}).state(), Running)
    assert isinstance(session.stop(now=True), Exited)
    session.remove()
    with pytest.raises(SessionNotFound):
        session.info()


def test_a_port_is_waited_for(cluster: LocalCluster) -> None:
    listen = "import socket, time; s = socket.create_server(('127.0.0.1', 0)); print(s.getsockname()[1], flush=True)"
    listen += "; time.sleep(1000)"
    session = far.start(2, "srv", Command((sys.executable, "-c", listen)))
    port = session.wait_port(timeout=SOON)
    assert session.wait_for(r"^\d+\n", SOON) == f"{port}\n"
    with pytest.raises(WaitTimeout):
        session.wait_port(1, 0.1)


def test_follow_gives_every_byte_and_leaves_the_engine_free(cluster: LocalCluster) -> None:
    program = "i=0; while [ $i -lt 300 ]; do seq 1 2000; i=$((i+1)); done; echo end; read x"
    session = far.start(2, "much", Command(("sh", "-c", program)))
    got = bytearray()
    thread = threading.Thread(target=lambda: [got.extend(data) for data in session.follow(0)])
    thread.start()
    while thread.is_alive():
        cluster.pid(2)  # an error if it does not come to that
        if got.endswith(b"end\r\n"):
            session.send("\r")
            thread.join(SOON)
    lines = bytes(got).replace(b"\r\n", b"\n").split(b"\n")
    assert lines == [*(300 * [str(n).encode() for n in range(1, 2001)]), b"end", b"", b""]


def test_a_busy_engine_is_one_line_and_forgets_what_it_did_not_come_to(cluster: LocalCluster) -> None:
    run("start", "web", "--on", "engine:1", "--", "sleep", "1000")
    session = EngineSession(1, "web")
    waiting = threading.Thread(target=lambda: results.append(session.wait()))
    results: list[int] = []
    with busy(cluster, 1):
        waiting.start()  # it has patience
        began = time.monotonic()
        with subprocess.Popen((*CLI, "start", "late", "--on", "engine:1", "ls"), stderr=subprocess.DEVNULL) as late:
            status, out, err = run("list", "--engines")
        assert late.returncode == 1
        assert (status, err.count("\n")) == (0, 1) and time.monotonic() - began < ANSWER_LIMIT + SOON
        assert err.startswith("session-magics: engine 1: no answer within 5 s: it does other work") and "web" in out
        with pytest.raises(WaitTimeout):
            session.wait(0.3)
        assert run("stop", "web@engine:0", "--now")[0] == 0
    waiting.join(SOON)
    assert results in ([-signal.SIGTERM], [-signal.SIGKILL]) and Registry().find("late") is None


def test_an_engine_that_hangs_is_one_line(cluster: LocalCluster) -> None:
    pid = cluster.pid(1)
    os.kill(pid, signal.SIGSTOP)
    try:
        status, out, err = command_line("list", "--engines")  # a process of its own: a thread that waits for it stays
    finally:
        os.kill(pid, signal.SIGCONT)
    assert (status, out) == (0, "no sessions\n")
    assert err == "session-magics: engine 1: no answer within 5 s: it hangs, and may still do this later\n"


def test_ctrl_c_ends_a_tail_and_a_wait_and_nothing_else(cluster: LocalCluster) -> None:
    run("start", "tick", "--on", "engine:0", "--", "sh", "-c", "while :; do echo tick; sleep 0.1; done")
    with subprocess.Popen((*CLI, "tail", "-f", "tick@engine:0"), stdout=subprocess.PIPE) as tail:
        assert tail.stdout is not None and [tail.stdout.readline() for _ in range(3)] == 3 * [b"tick\n"]
        tail.send_signal(signal.SIGINT)
        assert tail.wait(SOON) == 0
    with subprocess.Popen((*CLI, "wait", "tick@engine:0")) as wait:
        until(lambda: len(psutil.Process(wait.pid).net_connections("tcp")) > 1)
        wait.send_signal(signal.SIGINT)
        assert wait.wait(SOON) == 128 + signal.SIGINT
    assert cluster.pid(0) and isinstance(Registry().get("tick").state(), Running)
