"""A rig: the places and shells that a stateful sandbox is tried with, and a directory of each test's own there."""

from __future__ import annotations

import contextlib
import secrets
import shlex
import shutil
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path

import pytest

import dockers
import leaks
import sshds
from rounds import some
from session_magics.model import Command
from session_magics.sandbox import Result
from session_magics.sandbox.docker import DockerSandbox
from session_magics.sandbox.local import LocalSandbox
from session_magics.sandbox.ssh import SSHSandbox
from session_magics.sandbox.stateful import Executes, StatefulResult, StatefulSandbox

dockerd, sshd = dockers.dockerd, sshds.sshd

HERE = ("local",)
ELSEWHERE = ("busybox", "bash", "ssh")
SHELLS = {
    "local": ("dash", "bash", "ash"),
    "busybox": ("sh",),
    "bash": ("dash", "bash"),
    "ssh": ("dash", "bash", "ash"),
}
PLACES = [(place, shell) for place in HERE for shell in SHELLS[place]]
PLACES += some([(place, shell) for place in ELSEWHERE for shell in SHELLS[place]], 2)
# A value with all that a shell or a line might stumble over; it ends in newlines, as $(…) would cut them off.
AWKWARD = "it's \"$HOME\" `x` \\n \\ é\ttab\r\x01\nexport EVIL='1'\n}; echo\n\n"


@dataclass
class Far:
    """A place, the shell asked for there, and a directory of the test's own."""

    place: Executes
    shell: str
    work: str
    state: str
    sessions: list[StatefulSandbox] = field(default_factory=list)

    def session(self, **options: object) -> StatefulSandbox:
        self.sessions.append(StatefulSandbox(self.place, self.state, **options))  # type: ignore[arg-type]
        return self.sessions[-1]

    def command(self, body: str, cwd: str | None = None, env: Mapping[str, str | None] = {}) -> Command:
        return Command((self.shell, "-c", body), cwd, env)

    def plain(self, body: str, stdin: bytes | None = None) -> Result:
        """Run it without any state, in the directory of the test."""
        return self.place.exec(self.command(body, self.work), stdin=stdin)

    def exists(self, path: str) -> bool:
        return self.plain(f"[ -e {shlex.quote(path)} ]").code == 0

    @property
    def bash(self) -> bool:
        return self.shell == "bash"


@dataclass
class Recorder:
    """Passes commands on, and remembers them."""

    place: Executes | None = None
    commands: list[tuple[Command, bytes | None, float | None]] = field(default_factory=list)

    def exec(self, command: Command, *, stdin: bytes | None = None, timeout: float | None = None) -> Result:
        self.commands.append((command, stdin, timeout))
        return self.place.exec(command, stdin=stdin, timeout=timeout) if self.place else Result(0, b"out", b"err", 0.1)


@pytest.fixture(scope="module")
def place(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[str, Executes]]:
    """One place for all tests of a shell; what it needs is gone afterwards."""
    name, _ = request.param
    folder = tmp_path_factory.mktemp("place")
    with contextlib.ExitStack() as stack:
        if name in ("busybox", "bash"):
            engine = request.getfixturevalue("dockerd")
            container = engine.run(name)
            stack.callback(engine.remove, container)
            client = stack.enter_context(engine.client())
        server = request.getfixturevalue("sshd") if name == "ssh" else None
        before = leaks.baseline()
        if name == "local":
            sandbox = stack.enter_context(contextlib.closing(LocalSandbox("/tmp")))
        elif name == "ssh":
            sandbox = stack.enter_context(contextlib.closing(SSHSandbox("far", config=server.config)))
        else:
            sandbox = DockerSandbox(container=container, client=client)
        yield name, sandbox
        sandbox.close()
        if name in ("local", "ssh"):
            assert leaks.leaked(folder, before) == []
        assert server is None or server.left() == []


@pytest.fixture
def far(place: tuple[str, Executes], request: pytest.FixtureRequest, links: Path) -> Iterator[Far]:
    name, shell = request.node.callspec.params["place"]
    _, sandbox = place
    if name in ("local", "ssh") and shell in ("ash", "sh"):
        shell = str(links / shell)
        if not Path(shell).exists():
            pytest.skip("busybox is not installed")
    work = f"/tmp/sm-{secrets.token_hex(6)}"
    assert sandbox.exec(Command(("sh", "-c", f"umask 022; mkdir {work}"))).code == 0
    far = Far(sandbox, shell, work, f"{work}/deep/state")
    yield far
    for session in far.sessions:
        session.close()
    assert not far.exists(far.state)
    assert sandbox.exec(Command(("sh", "-c", f"rm -rf {work}"))).code == 0


@pytest.fixture(scope="session")
def links() -> Iterator[Path]:
    """A folder with other names of shells: a busybox that is an ash, a bash that is sh; for every user."""
    folder = Path(f"/tmp/sm-links-{secrets.token_hex(4)}")
    folder.mkdir()
    folder.chmod(0o755)
    for name, program in (("ash", "busybox"), ("sh", "bash")):
        if found := shutil.which(program):
            (folder / name).symlink_to(found)
    yield folder
    shutil.rmtree(folder)


def everywhere(places: list[tuple[str, str]] = PLACES) -> pytest.MarkDecorator:
    return pytest.mark.parametrize("place", places, indirect=True, ids=lambda place: "-".join(place))


LOCALLY = everywhere([each for each in PLACES if each[0] == "local"])


def good(result: StatefulResult) -> str:
    """The output of a command that succeeded and whose state was kept."""
    assert (result.code, result.stderr, result.warnings, result.lost) == (0, b"", (), ())
    return result.stdout.decode()
