"""Clusters of engines: which is meant, what fails, notebooks with ``%px``, and the end of an engine."""

from __future__ import annotations

import importlib.metadata
import json
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

import clustered
import leaks
from clustered import SOON, names, run
from clusters import ENGINES, LocalCluster
from conftest import LiveKernel
from live import live_kernel, run_with
from session_magics import Command, Registry, UsageMistake
from session_magics import engines as far
from session_magics.cluster import ANSWER_LIMIT, CLUSTER_VARIABLE, CONNECT_LIMIT, Cluster, connection_file
from session_magics.errors import SandboxError
from session_magics.model import Running

shared, cluster = clustered.shared, clustered.cluster


# ------------------------------------------------------------------ clusters


def test_without_a_cluster_there_is_one_line(
    cluster: LocalCluster, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("IPYTHONDIR", str(tmp_path))
    for words in (("list", "--engines"), ("tail", "web@engine:1"), ("start", "web", "--on", "engine:0", "ls")):
        assert run(*words) == (
            1,
            "",
            "session-magics: cluster: none runs: ipcluster start -n 4, or set SESSION_MAGICS_CLUSTER\n",
        )
    assert run("list") == (0, "no sessions\n", "")


def test_which_cluster_is_meant(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("IPYTHONDIR", str(tmp_path))
    monkeypatch.delenv(CLUSTER_VARIABLE, raising=False)

    def file(profile: str, name: str) -> Path:
        path = tmp_path / f"profile_{profile}" / "security" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text("{}")
        return path

    only = file("mpi", "ipcontroller-x-client.json")
    assert connection_file() == connection_file("mpi:x") == only
    other = file("default", "ipcontroller-a-b-client.json")
    with pytest.raises(UsageMistake, match=r"several clusters run \(default:a-b, mpi:x\): set SESSION_MAGICS_CLUSTER"):
        connection_file()
    usual = file("default", "ipcontroller-client.json")
    file("default", "ipcontroller-engine.json")
    assert connection_file() == usual and connection_file("a-b") == other
    monkeypatch.setenv(CLUSTER_VARIABLE, "default:a-b")
    assert connection_file() == other and connection_file(str(only)) == only
    with pytest.raises(SandboxError, match=r"cluster nope: none runs; there is default:a-b, default:, mpi:x"):
        connection_file("nope")


def test_a_controller_that_was_killed_is_one_line(
    cluster: LocalCluster, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (file,) = cluster.ipython.glob("profile_default/security/ipcontroller-client.json")
    content = json.loads(file.read_text())
    with subprocess.Popen(("sleep", "0")) as gone:
        gone.wait()
    content["registration"] = 1  # a port that nobody has
    copy = tmp_path / "dead-client.json"
    copy.write_text(json.dumps(content))
    monkeypatch.setenv(CLUSTER_VARIABLE, str(copy))
    began = time.monotonic()
    status, out, err = run("list", "--engines")
    assert (status, out, err.count("\n")) == (1, "", 1) and time.monotonic() - began < CONNECT_LIMIT + SOON
    assert err.startswith("session-magics: cluster: its controller does not answer within 5 s")
    copy.write_text("{")
    status, out, err = run("list", "--engines")
    assert (status, out, err.count("\n")) == (1, "", 1) and err.startswith("session-magics: cluster: no connection by ")


def test_without_the_extra_there_is_one_line(cluster: LocalCluster) -> None:
    code = "import sys; sys.modules['ipyparallel'] = None; from session_magics.cli.main import main; sys.exit(main())"
    for words, status in (("list", "--engines"), 2), (("info", "web@engine:1"), 2), (("list",), 0):
        done = subprocess.run((sys.executable, "-c", code, *words), capture_output=True, text=True, timeout=60)
        assert done.returncode == status
        expected = "session-magics: engines need IPython Parallel: pip install 'session-magics[parallel]'\n"
        assert done.stderr == (expected if status else "")


def test_an_engine_without_the_package_or_with_another_version_says_so(
    cluster: LocalCluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    client = cluster.client()
    try:
        client[2].apply(exec, "import sys; sys.modules['session_magics'] = None").get(SOON)
        try:
            status, out, err = run("list", "--engines")
        finally:
            client[2].apply(exec, "import sys; del sys.modules['session_magics']; import session_magics").get(SOON)
    finally:
        client.close()
    assert (status, out) == (0, "no sessions\n")
    assert err == "session-magics: engine 2: session-magics is not installed there: %px %pip install session-magics\n"
    there = importlib.metadata.version("session-magics")
    monkeypatch.setattr(importlib.metadata, "version", lambda _: "99")
    with (
        Cluster() as connection,
        pytest.raises(SandboxError, match=f"engine 2: session-magics {there} is installed there, and 99 here"),
    ):
        connection.ask(2, os.getpid)


def test_a_function_that_fails_as_none_of_ours_should_is_one_line(cluster: LocalCluster) -> None:
    with Cluster() as connection, pytest.raises(SandboxError, match=r"^engine 1: ZeroDivisionError: .* by zero$"):
        connection.ask(1, divmod, 1, 0)


def test_nothing_of_it_is_imported_where_no_engine_is_named(cluster: LocalCluster) -> None:
    run("start", "web", "--", "sleep", "1000")
    code = "import sys; from session_magics.cli.main import main; main(); print('ipyparallel' in sys.modules)"
    for words in ("list",), ("info", "web"), ("tail", "web"):
        done = subprocess.run((sys.executable, "-c", code, *words), capture_output=True, text=True, timeout=60)
        assert done.stdout.endswith("False\n")


# ------------------------------------------------------------------ notebooks


@pytest.fixture(scope="module")
def kernel(shared: LocalCluster) -> Iterator[LiveKernel]:
    with live_kernel({"IPYTHONDIR": str(shared.ipython), "SESSION_MAGICS_HOME": str(shared.root)}) as live:
        yield live


@pytest.mark.kernel
def test_a_notebook_starts_lists_tails_and_stops(cluster: LocalCluster, kernel: LiveKernel) -> None:
    assert (
        kernel.run("import sys; [m for m in sys.modules if 'ipyparallel' in m or 'magics.engines' in m]").text == "[]\n"
    )
    program = "sh -c 'echo up; read w; exit 6'"
    started = kernel.run(f"s = %session start web --on engine:3 --wait-for up -- {program}\ns")
    assert started.text.startswith("<Session web@engine:3 running pid=")
    listed = kernel.run("%session list --engines")
    assert listed.text.splitlines()[1].split()[:2] == ["web@engine:3", "running"]
    assert kernel.run("%session tail web@engine:3").text == "up\n"
    stop = ("up", lambda: kernel.cells.interrupt(False))
    stopped = run_with(kernel, "%session tail web@engine:3 -f", stop)
    assert (stopped.status, stopped.text) == ("ok", "up\n")
    assert (
        "UsageError: engine 0: session 'web' exists (running)" in kernel.run("%session start web --on engine:0 ls").text
    )
    assert kernel.run("%session send web@engine:3 x").status == "ok"
    assert kernel.run("s.wait()").text == "6\n"
    cell = kernel.run("%%sh_session web@engine:3\ntrue")
    assert "'web@engine:3' is on an engine, which %session reaches, and %%px with %%sh_session" in cell.text
    assert kernel.run("%session remove web@engine:3").text == "['web@engine:3']\n"


@pytest.mark.kernel
def test_px_stays_with_the_clients_of_the_person_and_runs_sessions_on_all_engines(
    cluster: LocalCluster, kernel: LiveKernel
) -> None:
    kernel.run("%session list --engines")  # makes a client that must not become that of %px
    assert kernel.run("import ipyparallel; rc = ipyparallel.Client(); rc.ids").text == f"{list(range(ENGINES))}\n"
    assert kernel.run("%px %load_ext session_magics").status == "ok"
    assert kernel.run("%px %session list").text.count("no sessions") == ENGINES
    assert kernel.run("%%px\n%%sh_session\nX=kept; echo $X-$X").text.count("kept-kept") == ENGINES
    assert kernel.run("%%px\n%%sh_session\necho again $X").text.count("again kept") == ENGINES
    assert kernel.run("%%px\n%%sh_session\nread -p 'Who? ' w; echo nobody $w").text.count("nobody") == ENGINES
    assert names() == [f"main@engine:{engine}" for engine in range(ENGINES)]
    failed = kernel.run("%%px\n%%sh_session\n(exit 3)")
    assert failed.status == "error" and failed.text.count("CellCommandError: exit status 3") == ENGINES
    kernel.run("%%px\nimport os\nget_ipython().run_line_magic('session', f'start job{os.getpid()} sleep 1000')")
    assert len(names()) == 2 * ENGINES and kernel.run("%px %session list").text.count("sleep 1000") == ENGINES**2
    assert kernel.run("%px %session stop main").text.count("['main']") == ENGINES
    kernel.run("%px %session remove main")
    kernel.run("rc.close()")


# ------------------------------------------------------------------ the end of an engine; these come last


def test_a_session_outlives_its_engine(cluster: LocalCluster) -> None:
    session = far.start(3, "solo", Command(("sh", "-c", "while :; do echo tick; sleep 0.1; done")))
    output = session.follow(0)
    next(output)
    os.kill(cluster.pid(3), signal.SIGKILL)
    with pytest.raises(SandboxError, match=r"^engine 3: it has ended; what it had started goes on|no such engine"):
        for _ in output:
            pass
    status, out, err = run("tail", "solo@engine:3")
    assert (status, out, err.count("\n")) == (1, "", 1) and err.startswith("session-magics: engine 3: ")
    assert repr(session).startswith("<Session solo@engine:3: engine 3: ")
    assert names() == ["solo"] and isinstance(Registry().get("solo").state(), Running)
    assert run("list", "--engines")[2] == ""


def test_who_waits_is_told_when_the_controller_is_killed(cluster: LocalCluster) -> None:
    session = far.start(0, "last", Command(("sleep", "1000")))
    raised: list[Exception] = []

    def wait() -> None:
        try:
            session.wait()
        except SandboxError as error:
            raised.append(error)

    thread = threading.Thread(target=wait)
    thread.start()
    controller = [one for one in leaks.processes_of(cluster.root) if "ipyparallel.controller" in one.cmdline()]
    assert controller
    for process in controller:
        process.kill()
    thread.join(ANSWER_LIMIT + CONNECT_LIMIT + SOON)
    assert len(raised) == 1 and str(raised[0]).startswith("cluster: its controller does not answer within 5 s")
    assert isinstance(Registry().get("last").state(), Running)
