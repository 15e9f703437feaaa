"""Sessions in containers that have no Python: busybox alone, or bash, dash and GNU programs."""

from __future__ import annotations

import contextlib
import hashlib
import signal
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

import pytest

import dockers
import rounds
from dockers import Dockerd
from rounds import some
from session_magics.backends import Link
from session_magics.errors import SessionError, StartFailed
from session_magics.model import Command, Exited, Lost
from session_magics.registry import Registry
from session_magics.sandbox.docker import DockerSandbox
from session_magics.session import Session
from session_magics.testing.rig import insist, outcome, receive_until

TRUE = Command(("true",))
dockerd, docker_host = dockers.dockerd, dockers.docker_host

LIMIT = 30.0


def until(ready: Callable[[], object], what: str) -> None:
    rounds.until(ready, LIMIT, what=what)


@dataclass(frozen=True)
class Answer:
    """What became of a cell."""

    output: bytes
    status: int
    state: str


@dataclass
class Place:
    """A running container, and sessions in it."""

    engine: Dockerd
    container: str
    registry: Registry

    @property
    def name(self) -> str:
        return f"container:{self.container}"

    @contextlib.contextmanager
    def shell(self, shell: str, *, stop: bool = True) -> Iterator[Live]:
        session = self.registry.shell("cells", shell=shell, lifetime="detached", rc=False, on=self.name)
        try:
            with session.link() as link:
                yield Live(session, link, self.commands)
        finally:
            if stop:
                session.stop(now=True)
                self.emptied()

    def emptied(self) -> None:
        rounds.until(lambda: self.commands() == [], LIMIT, what=self.commands)

    def commands(self) -> list[str]:
        """What runs in the container beside the process that keeps it."""
        found = []
        for process in self.engine.processes():
            with contextlib.suppress(Exception):
                found.append(" ".join(process.cmdline()))
        kept = ("docker-init", "/sbin/docker-init", "sh -c trap 'exit 0' TERM", "sleep 3600")
        return [one for one in found if one and not one.startswith(kept)]


@dataclass
class Live:
    session: Session
    link: Link
    commands: Callable[[], list[str]]

    @property
    def fragile(self) -> bool:
        """Whether it is busybox's: that waits for itself for ever if an interrupt finds it taking memory."""
        return self.session.info().shell == "sh"

    def run(self, text: str) -> Answer:
        return self.answer(self.link.run(text))

    def answer(self, ticket: int) -> Answer:
        fields = outcome(self.link, ticket)
        return Answer(self.session.output(int(fields[1]), int(fields[2])), int(fields[3]), fields[4].decode())

    def begin(self, text: str) -> int:
        ticket = self.link.run(text)
        receive_until(self.link, lambda: self.link.begun(ticket), "the beginning")
        return ticket


@pytest.fixture(scope="module")
def running(dockerd: Dockerd) -> Iterator[Mapping[str, str]]:
    """A container of each image, which all tests share that do not end it."""
    found = {image: dockerd.run(image) for image in IMAGES}
    yield found
    for container in found.values():
        dockerd.remove(container)


@pytest.fixture
def busybox(running: Mapping[str, str], docker_host: Dockerd, root: Path) -> Place:
    return Place(docker_host, running["busybox"], Registry(root))


IMAGES = ("busybox", "bash")
SHELLS = some([("busybox", "sh"), ("bash", "dash"), ("bash", "bash")], 2)


@pytest.fixture(params=SHELLS, ids="-".join)
def live(
    request: pytest.FixtureRequest, running: Mapping[str, str], docker_host: Dockerd, root: Path
) -> Iterator[Live]:
    """A shell in each kind of container; nothing of it is left there at the end."""
    image, shell = request.param
    with Place(docker_host, running[image], Registry(root)).shell(shell) as found:
        yield found


# ---------------------------------------------------------------------- cells


def test_state_is_carried_from_cell_to_cell(live: Live) -> None:
    assert live.run("cd /var; x='a  b'; f() { return 9; }") == Answer(b"", 0, "done")
    assert live.run('echo "$PWD $x"; f') == Answer(b"/var a  b\n", 9, "done")
    assert live.run("alias g='echo hi'\nexport y=1") == Answer(b"", 0, "done")
    assert live.run("g; echo $y") == Answer(b"hi\n1\n", 0, "done")


def test_statuses_are_exact(live: Live) -> None:
    for text, status in (("true", 0), ("(exit 3)", 3), ("sh -c 'exit 255'", 255), ("sh -c 'kill -KILL $$'", 137)):
        assert live.run(text).status == status, text


def test_text_that_is_no_whole_command_harms_nothing(live: Live) -> None:
    assert live.run('echo "half').status == 2
    assert live.run("cat <<E\n$((1 + 1)) it's\nE") == Answer(b"2 it's\n", 0, "done")
    assert live.run("if true; then").status == 2
    assert live.run("echo whole") == Answer(b"whole\n", 0, "done")


def test_a_long_cell_and_all_bytes_arrive(live: Live) -> None:
    text = "".join(chr(one) for one in range(1, 0x250) if chr(one) not in "'\r\n") * 100
    data = text.encode()
    answer = live.run(f"printf '%s' '{text}' | sha256sum")
    assert answer.output.split()[0].decode() == hashlib.sha256(data).hexdigest()


def test_a_megabyte_of_output_is_exact(live: Live) -> None:
    answer = live.run("i=0; while [ $i -lt 200 ]; do printf '%05000d\\n' $i; i=$((i + 1)); done")
    assert answer.output == b"".join(b"%05000d\n" % one for one in range(200))


def test_exit_brings_a_fresh_shell(live: Live) -> None:
    live.run("cd /var; export kept=1; lost=1")
    assert live.run("exit 3") == Answer(b"", 3, "exited")
    assert live.run('echo "$PWD $kept$lost"') == Answer(b"/var 1\n", 0, "done")


def test_a_cell_without_work_is_quicker_than_a_program(busybox: Place) -> None:
    """Which the engine starts there: a shell that has to be asked whether it is ready would take as long."""
    with (
        contextlib.closing(DockerSandbox(container=busybox.container)) as sandbox,
        busybox.shell("sh") as live,
    ):
        turns = [(seconds(lambda: live.run("true")), seconds(lambda: sandbox.exec(TRUE))) for _ in range(15)]
    cell, program = (sorted(each)[len(turns) // 2] for each in zip(*turns, strict=True))
    assert cell < program, f"cell {cell * 1000:.1f} ms, program {program * 1000:.1f} ms"


def seconds(call: Callable[[], object]) -> float:
    began = time.perf_counter()
    call()
    return time.perf_counter() - began


# ----------------------------------------------------------------- interrupts


@pytest.mark.parametrize("text", ["sleep 100", "sleep 100 | cat", "(sleep 100; echo no)"])
def test_an_interrupt_ends_a_cell(live: Live, text: str) -> None:
    live.run("x=5")
    ticket = live.begin(text)
    if live.fragile:
        until(lambda: any("sleep 100" in one for one in live.commands()), "the program")
    live.link.interrupt()
    assert live.answer(ticket).status == 130
    assert live.run("echo $x") == Answer(b"5\n", 0, "done")


def test_an_interrupt_ends_what_the_shell_itself_does(live: Live) -> None:
    live.run("x=5")
    ticket = live.begin("read line")
    until(lambda: live.link.probe().kind == "read", "that it reads")
    live.link.interrupt()
    assert live.answer(ticket).status == 130
    if not live.fragile:
        ticket = live.begin("while :; do :; done")
        live.link.interrupt()
        assert live.answer(ticket).status == 130
    assert live.run("echo $x") == Answer(b"5\n", 0, "done")


def test_insisting_ends_a_program_that_ignores_interrupts(live: Live) -> None:
    ticket = live.begin("sh -c 'trap \"\" INT TERM; echo deaf; sleep 100 & wait; wait'")
    until(lambda: b"deaf" in live.session.output(), "the program's word")
    insist(live.link.interrupt)
    assert live.answer(ticket).status == 137
    assert live.run("echo on") == Answer(b"on\n", 0, "done")


def test_a_program_without_signals_gets_the_key(live: Live) -> None:
    ticket = live.begin("stty -isig -icanon -echo; echo raw; dd bs=1 count=1 2>/dev/null | od -An -tx1")
    until(lambda: b"raw" in live.session.output(), "the modes")
    live.link.interrupt()
    assert live.answer(ticket).output.split() == [b"raw", b"03"]
    assert live.run("stty -a | grep -c -e -isig") == Answer(b"0\n", 1, "done")


# --------------------------------------------------------------------- prompts


def test_a_prompt_is_seen_and_answered(live: Live) -> None:
    ticket = live.begin("printf 'name? '; read -r name; echo \"hello $name\"")
    until(lambda: live.link.probe().kind != "no", "a look at the terminal")
    assert live.link.probe().echo
    live.link.send(b"world\n")
    assert live.answer(ticket).output.endswith(b"hello world\n")


def test_a_password_is_asked_for_in_secret(live: Live) -> None:
    ticket = live.begin("stty -echo; printf 'password: '; read -r word; stty echo; echo; echo ${#word}")
    until(lambda: not live.link.probe().echo, "the echo is off")
    live.link.send(b"secret\n", secret=True)
    output = live.answer(ticket).output
    assert output == b"password: \n6\n"
    ticket = live.begin("cat >/dev/null")
    with pytest.raises(SessionError, match="shows what is typed"):
        live.link.send(b"secret\n", secret=True)
    live.link.interrupt()
    live.answer(ticket)


def test_what_was_typed_and_not_read_is_no_input_of_the_next_cell(live: Live) -> None:
    live.link.send(b"left over\n")
    until(lambda: b"left over" in live.session.output(), "the echo")
    ticket = live.begin('read -r line; echo "got $line"')
    live.link.send(b"mine\n")
    assert live.answer(ticket).output.endswith(b"got mine\n")


# -------------------------------------------------------------------- programs


def test_a_program_ends_with_its_exact_status(busybox: Place) -> None:
    for text, code, number in (
        ("exit 0", 0, None),
        ("exit 130", 130, None),
        ("exit 255", 255, None),
        ("kill -KILL $$", None, signal.SIGKILL),
        ("kill -INT $$", None, signal.SIGINT),
        ("kill -HUP $$", None, signal.SIGHUP),
    ):
        session = busybox.registry.start("program", Command(("/bin/sh", "-c", text)), on=busybox.name)
        with contextlib.suppress(SessionError):
            session.wait(LIMIT)
        state = session.state()
        assert isinstance(state, Exited) and (state.code, state.signal) == (code, number), text
        busybox.emptied()


def test_the_environment_is_there_and_in_no_command_line(busybox: Place, monkeypatch: pytest.MonkeyPatch) -> None:
    value = "it's a $secret\nof two lines"
    session = busybox.registry.start(
        "program", Command(("/bin/sh", "-c", 'printf "%s|" "$TOKEN"; read x'), env={"TOKEN": value}), on=busybox.name
    )
    session.wait_for(r"\|", LIMIT)
    assert session.output().replace(b"\r", b"") == value.encode() + b"|"
    assert not any("$secret" in one for one in busybox.commands())
    session.stop(now=True)


def test_a_program_that_is_not_there_is_named(busybox: Place) -> None:
    with pytest.raises(StartFailed, match="/no/such/program"):
        busybox.registry.start("program", Command(("/no/such/program",)), on=busybox.name)
    busybox.emptied()


# ------------------------------------------------------------------------ ends


def test_a_stop_leaves_nothing_there(live: Live) -> None:
    live.run("sleep 1000 & (trap '' HUP TERM; sleep 1001) & nohup sleep 1002 >/dev/null 2>&1 &")
    live.run("command -v setsid >/dev/null && setsid sleep 1003 </dev/null >/dev/null 2>&1 &")
    until(lambda: len(live.commands()) >= 4, "the jobs")
    assert isinstance(live.session.stop(0.2), Exited)


def test_the_end_of_a_container_is_no_status(docker_host: Dockerd, root: Path) -> None:
    container = docker_host.run("busybox")
    place = Place(docker_host, container, Registry(root))
    with place.shell("sh", stop=False) as live:
        live.begin("sleep 100")
        docker_host.remove(container)
        until(lambda: isinstance(live.session.state(), Lost), "the loss is on record")
        place.emptied()


@pytest.mark.parametrize("what", ["control", "terminal", "holder"])
def test_a_broken_connection_is_no_status(busybox: Place, what: str) -> None:
    with busybox.shell("sh", stop=False) as live:
        live.begin("sleep 100")
        kill_client(live.session, what)
        until(lambda: isinstance(live.session.state(), Lost), "the loss is on record")
        state = live.session.state()
        assert isinstance(state, Lost)
        if what in ("control", "terminal"):
            assert "what ran there was ended" in state.reason
        busybox.emptied()


def kill_client(session: Session, what: str) -> None:
    import psutil

    info = session.info()
    holder = psutil.Process(info.pid).parent()
    assert holder
    terminal = psutil.Process(info.pid)
    (control,) = [one for one in holder.children() if one.pid != info.pid]
    {"control": control, "terminal": terminal, "holder": holder}[what].kill()
