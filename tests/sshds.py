"""A rig: a real sshd on 127.0.0.1 with keys, users and a client configuration of its own, that can be broken at will.

Everything that is started through it has an environment variable of this very rig, so that nothing can stay unseen.
"""

from __future__ import annotations

import contextlib
import getpass
import os
import secrets
import shutil
import signal
import socket
import subprocess
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

import psutil
import pytest

import leaks

MARK = "SESSION_MAGICS_SSHD"
# Seconds that sshd may take to listen, or to be gone, and what ran there to end.
LIMIT = 30.0
STEP = 0.01
FAR = "far"

SHELLS = {
    "bash": "bash",
    "dash": "dash",
    "zsh": "zsh",
    "fish": "fish",
    "ash": "busybox",  # which looks at the name that it was called by
    "tcsh": "tcsh",
}
"""The program behind each login shell that ``host`` knows."""

NOISE = 'noise of a start-up file: it\'s "$HOME" \\ `here`'
STARTING_UP = (".bashrc", ".zshenv", ".config/fish/config.fish", ".tcshrc")
"""Where a shell that is not interactive looks when sshd starts it; dash and ash look nowhere."""

FORGIVING = ("-o", "PerSourcePenalties=no")
"""From 9.8 on, sshd takes no connections for a while from where one has failed, or was killed."""
SERVER = """\
ListenAddress 127.0.0.1
Port {port}
HostKey {folder}/host_key
PidFile none
AuthorizedKeysFile {folder}/authorized_keys
PasswordAuthentication no
KbdInteractiveAuthentication no
UsePAM no
StrictModes no
UseDNS no
MaxStartups 200
PermitRootLogin prohibit-password
PermitUserEnvironment yes
SetEnv {mark}={token}
"""
ALL_HOSTS = """\
Host *
  HostName 127.0.0.1
  Port {port}
  HostKeyAlias rig
  IdentityFile {folder}/key
  IdentitiesOnly yes
  IdentityAgent none
  UserKnownHostsFile {folder}/known_hosts
  GlobalKnownHostsFile /dev/null
  StrictHostKeyChecking yes
"""


def missing() -> str | None:
    """Why there can be no sshd here; None: there can."""
    for tool in ("sshd", "ssh", "ssh-keygen"):
        if program(tool) is None:
            return f"{tool} is not installed"
    return None


def program(name: str) -> str | None:
    return shutil.which(name, path=f"{os.environ.get('PATH', os.defpath)}:/usr/sbin:/sbin")


class Sshd:
    """A running sshd. ``config`` is for ``ssh -F``; its hosts:

    * ``far``: a user made for it, with bash (where this is not root: this very user)
    * ``jumped``: the same, through ``far``
    * ``refused``: a key that it does not take; ``stranger``: its host key is not known; ``closed``: nobody listens
    * what ``host`` returns: a user made for it, with a home and a login shell of its own (root only)
    """

    def __init__(self) -> None:
        self.folder = Path(tempfile.mkdtemp(prefix="sms"))
        self.folder.chmod(0o755)  # its users have their homes in it
        self.token = secrets.token_hex(8)
        self.reserved = reserved_ports(2)
        self.port, self.closed_port = (each.getsockname()[1] for each in self.reserved)
        self.config = self.folder / "config"
        self.users: dict[str, str] = {}
        self._make_keys()
        if os.geteuid() == 0:
            self._make_user(FAR, str(program("bash")), noisy=False, bare=False)
        self._configure()
        self.process = self._start()

    def _make_keys(self) -> None:
        for name in ("host_key", "key", "other_key"):
            make = ["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-C", name, "-f", str(self.folder / name)]
            subprocess.run(make, check=True, stdin=subprocess.DEVNULL)
        public = (self.folder / "host_key.pub").read_text()
        (self.folder / "known_hosts").write_text(f"rig {public}")
        (self.folder / "authorized_keys").write_bytes((self.folder / "key.pub").read_bytes())

    def _configure(self) -> None:
        facts = {"port": self.port, "folder": self.folder, "mark": MARK, "token": self.token}
        (self.folder / "sshd_config").write_text(SERVER.format(**facts))
        hosts = [
            "Host jumped\n  ProxyJump far\n",
            f"Host refused\n  IdentityFile {self.folder}/other_key\n  IdentitiesOnly yes\n  HostKeyAlias rig\n"
            f"  HostName 127.0.0.1\n  Port {self.port}\n  UserKnownHostsFile {self.folder}/known_hosts\n",
            f"Host stranger\n  UserKnownHostsFile {self.folder}/none\n",
            f"Host closed\n  Port {self.closed_port}\n",
        ]
        hosts += [f"Host {alias}\n  User {user}\n" for alias, user in self.users.items()]
        hosts.append(f"Host *\n  User {self.users.get(FAR, getpass.getuser())}\n")
        everybody = ALL_HOSTS.format(**facts).replace("Host *", "Host * !refused")
        self.config.write_text("".join(hosts) + everybody)

    def _start(self) -> subprocess.Popen[bytes]:
        if os.geteuid() == 0:
            os.makedirs("/run/sshd", mode=0o755, exist_ok=True)  # its own wish, which the package's service sees to
        command = [str(program("sshd")), "-f", str(self.folder / "sshd_config")]
        if subprocess.run([*command, *FORGIVING, "-t"], capture_output=True, check=False).returncode == 0:
            command += FORGIVING
        with open(self.folder / "log", "wb") as log:
            server = subprocess.Popen(
                [*command, "-D", "-e"],
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
            )
        deadline = time.monotonic() + LIMIT
        while not self._listens():
            if server.poll() is not None or time.monotonic() > deadline:
                server.kill()
                server.wait()
                raise RuntimeError(f"sshd did not start: {self.log()}")
            time.sleep(STEP)
        return server

    def _listens(self) -> bool:
        try:
            socket.create_connection(("127.0.0.1", self.port), 1.0).close()
        except OSError:
            return False
        return True

    def log(self) -> str:
        return (self.folder / "log").read_text(errors="replace")

    def host(self, shell: str, *, noisy: bool = False, bare: bool = False) -> str:
        """The name of a host where a user of its own logs in with this shell; a test is skipped where there is none.

        ``noisy``: its start-up files print. ``bare``: only a busybox is on its PATH (no python, no bash).
        """
        alias = "-".join([shell, *["noisy"] * noisy, *["bare"] * bare])
        if alias not in self.users:
            found = program(SHELLS[shell])
            if found is None or os.geteuid() != 0 or program("useradd") is None:
                pytest.skip(f"no user with the login shell {shell}: it is not installed, or this is not root")
            self._make_user(alias, found, noisy, bare)
            self._configure()
        return alias

    def _make_user(self, alias: str, shell: str, noisy: bool, bare: bool) -> None:
        home, user = self.folder / alias, f"sm{secrets.token_hex(5)}"
        home.mkdir()
        name = "bash" if alias == FAR else alias.split("-")[0]
        if Path(shell).name != name:
            link = self.folder / "bin" / name
            link.parent.mkdir(exist_ok=True)
            link.unlink(missing_ok=True)
            link.symlink_to(shell)
            shell = str(link)
        for file in STARTING_UP if noisy else ():
            (home / file).parent.mkdir(parents=True, exist_ok=True)
            quoted = NOISE.replace("'", "'\\''")
            (home / file).write_text(f"printf '%s\\n' '{quoted}'\nprintf 'no newline'\n")
        if bare:
            (home / ".ssh").mkdir()
            (home / ".ssh" / "environment").write_text(f"PATH={self._busybox()}\n")
        # A password that is "!" would lock the account for sshd, "*" only matches nothing.
        make = ["useradd", "-M", "-d", str(home), "-s", shell, "-p", "*", user]
        subprocess.run(make, check=True, capture_output=True)
        self.users[alias] = user
        for path in (home, *home.rglob("*")):
            shutil.chown(path, user)

    def _busybox(self) -> Path:
        """A folder with a link to busybox for each of its programs."""
        tools, busybox = self.folder / "busybox", program("busybox")
        if busybox is None:
            pytest.skip("busybox is not installed")
        if not tools.exists():
            tools.mkdir()
            subprocess.run([busybox, "--install", "-s", str(tools)], check=True)
        return tools

    def home(self, host: str) -> Path:
        """Where the user of a host begins, which is also the only folder there that surely can be written."""
        return self.folder / host if host in self.users else Path.home()

    def connections(self) -> list[psutil.Process]:
        """The processes of sshd that serve connections, and not what runs there."""
        return [child for child in psutil.Process(self.process.pid).children(recursive=True) if named_sshd(child)]

    def kill_connections(self) -> int:
        """Drop all connections at once, by the death of what serves them; programs there are not told. Their number."""
        return self._signal_connections(signal.SIGKILL)

    def stall_connections(self) -> int:
        """Let nothing through any more, with all connections open, until they are resumed or killed."""
        return self._signal_connections(signal.SIGSTOP)

    def resume_connections(self) -> int:
        return self._signal_connections(signal.SIGCONT)

    def _signal_connections(self, number: int) -> int:
        found = self.connections()
        for process in found:
            with contextlib.suppress(psutil.NoSuchProcess):
                process.send_signal(number)
        return len(found)

    def running(self) -> list[psutil.Process]:
        """What was started through this sshd and lives: the login shells and all below them, escaped or not."""
        mark = {f"{MARK}={self.token}"}
        return [process for process in psutil.process_iter() if leaks.carries(process, mark, self.folder / "nothing")]

    def left(self, limit: float = LIMIT) -> list[str]:
        """One line for each program that still runs there, after the time that the last ones may take to end."""
        return [leaks.describe(process) for process in leaks.outlived(self.running(), limit)]

    def stop(self) -> None:
        """End sshd and all that runs there; an AssertionError names what had been left to be ended here."""
        found = self.left()
        for process in [*self.connections(), *self.running()]:
            leaks.kill(process)
        self.process.terminate()
        self.process.wait(LIMIT)
        for each in self.reserved:
            each.close()
        for user in self.users.values():
            subprocess.run(["userdel", user], check=True, capture_output=True)
        shutil.rmtree(self.folder)
        assert not found, f"left behind on the far side: {found}"


def named_sshd(process: psutil.Process) -> bool:
    try:
        return process.name().startswith("sshd")
    except psutil.NoSuchProcess:
        return False


def reserved_ports(count: int) -> list[socket.socket]:
    """So many ports that nobody gets who asks for any, and that nobody listens on until sshd does."""
    sockets = [socket.socket() for _ in range(count)]
    for each in sockets:
        each.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        each.bind(("127.0.0.1", 0))
    return sockets


@pytest.fixture(scope="session")
def sshd() -> Iterator[Sshd]:
    """An sshd for all tests of a module that has this as ``sshd = sshds.sshd``."""
    reason = missing()
    if reason:
        pytest.skip(reason)
    server = Sshd()
    yield server
    server.stop()
