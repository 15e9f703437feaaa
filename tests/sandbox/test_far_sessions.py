"""Live sessions behind ssh and in containers with a Python keep the contract of backends."""

from __future__ import annotations

import contextlib
import os
import signal
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

import dockers
import sshds
from dockers import Dockerd
from farplaces import SLEEP, WITHIN, PlacedBackend, connections
from held import record
from rounds import rounds, some, until, until_state
from session_magics import Lost, Registry
from session_magics.sandbox.docker import DockerSandbox
from session_magics.sandbox.ssh import SSHSandbox
from session_magics.testing import CHECKS, Rig
from session_magics.testing.behaviour import BEHAVIOURS
from session_magics.testing.rig import outcome, receive_until
from test_conformance import Check

sshd, dockerd, docker_host = sshds.sshd, dockers.dockerd, dockers.docker_host


def argv_there(behaviour: str, *words: str) -> tuple[str, ...]:
    return ("python3", "-I", "-S", "-u", "-c", BEHAVIOURS, behaviour, *words)


@pytest.fixture
def over_ssh(root: Path, sshd: sshds.Sshd) -> Iterator[Registry]:
    with contextlib.closing(SSHSandbox("far", config=sshd.config)) as place:
        registry = Registry(root, backend=PlacedBackend(place))
        yield registry
        registry.stop_all(now=True)
    assert sshd.left() == []


@pytest.fixture(scope="module")
def tools(dockerd: Dockerd) -> Iterator[str]:
    """A container that all tests share that do not end it."""
    container = dockerd.run("tools")
    yield container
    dockerd.remove(container)


@pytest.fixture
def in_a_container(tools: str, root: Path, docker_host: Dockerd) -> Iterator[Registry]:
    with contextlib.closing(DockerSandbox(container=tools)) as place:
        registry = Registry(root, backend=PlacedBackend(place))
        yield registry
        registry.stop_all(now=True)


@pytest.mark.parametrize("check", some(CHECKS, 3), ids=lambda check: check.__name__)
def test_over_ssh(check: Check, over_ssh: Registry) -> None:
    check(Rig(over_ssh, argv=argv_there))


@pytest.mark.parametrize("check", some(CHECKS[::-1], 3), ids=lambda check: check.__name__)
def test_in_a_container(check: Check, in_a_container: Registry) -> None:
    check(Rig(in_a_container, argv=argv_there))


def test_a_cell_over_ssh_goes_on_when_the_connection_is_killed(over_ssh: Registry, sshd: sshds.Sshd) -> None:
    session = over_ssh.shell("cells", shell="bash", lifetime="detached", rc=False)
    with session.link() as link:
        for number in range(rounds(3, 30)):
            ticket = link.run(f"printf {number}; sleep 0.3; printf {number}; (exit {number})")
            receive_until(link, lambda ticket=ticket: link.begun(ticket), "the beginning")  # type: ignore[misc]
            assert sshd.kill_connections()
            began = time.monotonic()
            fields = outcome(link, ticket)
            assert time.monotonic() - began < WITHIN
            assert fields[3:5] == [b"%d" % number, b"done"]
            assert session.output(int(fields[1]), int(fields[2])) == b"%d%d" % (number, number)


def test_a_cell_over_ssh_goes_on_when_the_connection_hangs(over_ssh: Registry, sshd: sshds.Sshd) -> None:
    session = over_ssh.shell("cells", shell="bash", lifetime="detached", rc=False)
    with session.link() as link:
        ticket = link.run("sleep 0.2; (exit 6)")
        receive_until(link, lambda: link.begun(ticket), "the beginning")
        sshd.stall_connections()
        began = time.monotonic()
        try:
            assert outcome(link, ticket)[3:5] == [b"6", b"done"]
            assert time.monotonic() - began < WITHIN
        finally:
            sshd.resume_connections()


def test_a_host_that_does_not_answer_any_more_loses_the_session(over_ssh: Registry, sshd: sshds.Sshd) -> None:
    """What runs there goes on, and a stop ends it as soon as the host answers again."""
    session = over_ssh.start("far", SLEEP)
    session.wait_for("up", WITHIN)
    os.kill(sshd.process.pid, signal.SIGSTOP)
    try:
        sshd.kill_connections()
        state = until_state(session, Lost, WITHIN)
        assert isinstance(state, Lost) and state.reason.endswith("it may still run there"), state
    finally:
        os.kill(sshd.process.pid, signal.SIGCONT)
    assert sshd.running()
    session.stop()
    assert sshd.left() == []


def test_a_container_that_ends_loses_its_sessions(root: Path, docker_host: Dockerd) -> None:
    container = docker_host.run("tools")
    with contextlib.closing(DockerSandbox(container=container)) as place:
        registry = Registry(root, backend=PlacedBackend(place))
        session = registry.start("inside", SLEEP)
        session.wait_for("up", WITHIN)
        docker_host.remove(container)
        state = until_state(session, Lost, WITHIN)
        assert isinstance(state, Lost) and state.reason.startswith(f"the container of {place.place} has ended"), state
        registry.remove("inside")


def test_a_container_that_is_made_for_a_session_goes_with_it(root: Path, docker_host: Dockerd) -> None:
    image, mounts, before = docker_host.image("tools"), docker_host.mounts("tools"), set(docker_host.containers())
    with contextlib.closing(DockerSandbox(image, network="none", mounts=mounts)) as place:
        registry = Registry(root, backend=PlacedBackend(place))
        session = registry.shell("inside", shell="bash", lifetime="detached", rc=False)
        with session.link() as link:
            assert outcome(link, link.run("(exit 5)"))[3:5] == [b"5", b"done"]
        [made] = set(docker_host.containers()) - before
        session.stop()
        until(lambda: made not in docker_host.containers())


def test_a_cell_in_a_container_goes_on_when_the_client_is_killed(in_a_container: Registry) -> None:
    """And the far end of a connection that is gone does not stay."""
    session = in_a_container.shell("cells", shell="bash", lifetime="detached", rc=False)
    with session.link() as link:
        for number in range(rounds(4, 30)):
            ticket = link.run(f"printf {number}; sleep 0.3; (exit {number})")
            receive_until(link, lambda ticket=ticket: link.begun(ticket), "the beginning")  # type: ignore[misc]
            [client] = connections(session)
            os.kill(client, signal.SIGKILL)
            fields = outcome(link, ticket)
            assert fields[3:5] == [b"%d" % number, b"done"]
            assert session.output(int(fields[1]), int(fields[2])) == b"%d" % number
        count = "set -- $(grep -la 'exec(r(int(r(8))))' /proc/[0-9]*/cmdline); echo $#"

        def counted() -> bytes:
            fields = outcome(link, link.run(count))
            return session.output(int(fields[1]), int(fields[2]))

        until(lambda: counted() == b"2\n", what=counted)  # the agent, and grep


@pytest.mark.parametrize("image", ["tools", "busybox"])
def test_what_was_in_a_container_that_is_gone_needs_no_end(root: Path, docker_host: Dockerd, image: str) -> None:
    """Neither with a holder there nor without."""
    container = docker_host.run(image)
    registry = Registry(root)
    session = registry.start("inside", SLEEP, on=f"container:{container}")
    session.wait_for("up", WITHIN)
    os.kill(record(session).holder, signal.SIGKILL)
    until_state(session, Lost, WITHIN)
    docker_host.remove(container)
    session.stop()
    registry.remove("inside")


def test_what_is_left_of_a_container_that_ends_is_removed(root: Path, docker_host: Dockerd) -> None:
    """Though nobody has asked for it yet; the session stays on record as lost."""
    before = set(docker_host.containers())
    words = [
        f"docker:{docker_host.image('tools')}",
        "network=none",
        *map("mount={}".format, docker_host.mounts("tools")),
    ]
    registry = Registry(root)
    session = registry.start("inside", SLEEP, on=",".join(words))
    session.wait_for("up", WITHIN)
    [made] = set(docker_host.containers()) - before
    with docker_host.client() as client:
        client.containers.get(made).kill()
    until_state(session, Lost, WITHIN)
    try:
        until(lambda: made not in docker_host.containers(), WITHIN)
    finally:
        registry.remove("inside")
