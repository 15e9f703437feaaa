"""A docker engine of the tests' own, with images made of this machine's programs: no registry, no network.

``dockerd`` is the fixture of the whole run, ``docker_host`` that of one test: it names the engine in DOCKER_HOST and
fails the test for each container that it leaves. Both skip where an engine cannot run, and say why.
"""

from __future__ import annotations

import contextlib
import functools
import io
import os
import shutil
import socket
import subprocess
import sys
import tarfile
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import psutil
import pytest

# Seconds that an engine may take to answer, and that it or a container may take to end; it takes about two and one.
READY, ENDED = 45.0, 20.0
STEP = 0.01
CGROUPS = Path("/sys/fs/cgroup")
KEEP_ALIVE = ("sh", "-c", "trap 'exit 0' TERM; while :; do sleep 3600 & wait $!; done")

PASSWD = "root:x:0:0:root:/root:/bin/sh\nworker:x:1000:1000:worker:/home/worker:/bin/sh\n"
GROUP = "root:x:0:\ntty:x:5:\nworker:x:1000:\n"
# No python, no setsid, no script: what a slim image has. Those that this machine lacks are left out.
BASH_PROGRAMS = (
    "bash dash cat chmod chown cp cut date dd df dirname basename du echo env expr false head id kill link ln ls mkdir "
    "mkfifo mktemp mv nice nohup od printenv printf ps pwd readlink realpath rm rmdir seq sha256sum sleep sort split "
    "stat stty sync tail tar tee test timeout touch tr true tty uname uniq wc who whoami yes grep sed"
)
# What programs of /usr read in /etc; none of it is about this machine's users or hosts.
TOOLS_ETC = (
    "alternatives ld.so.cache vim terminfo inputrc shells nsswitch.conf perl python3 python3.11 python3.12 python3.13 "
    "manpath.config zsh fish ssl/certs ssl/openssl.cnf ca-certificates.conf localtime lesskey tmux.conf"
)
SYSTEM_FOLDERS = ("bin", "lib", "lib32", "lib64", "libx32")


class Unavailable(Exception):
    """No engine can run here; the text says why."""


class Dockerd:
    """One engine in a temporary directory, from ``start`` to ``stop``."""

    def __init__(self) -> None:
        # Directly in the temporary directory: a socket's path may have 107 bytes, and containerd's is in here as well.
        self.place = Path(tempfile.mkdtemp(prefix="smd"))
        self.host = f"unix://{self.place}/docker.sock"
        self.process: subprocess.Popen[bytes] | None = None
        self.cgroup = self.place.name
        self.image: Callable[[str], str] = functools.cache(self._make)

    def start(self) -> None:
        """Start it and run a first container; Unavailable says what is in the way."""
        for wrong, reason in (
            (not sys.platform.startswith("linux"), "containers need Linux"),
            (os.geteuid() != 0, "dockerd needs root"),
            (not shutil.which("dockerd"), "dockerd not found (package docker.io)"),
            (not shutil.which("busybox"), "busybox not found (package busybox-static)"),
        ):
            if wrong:
                raise Unavailable(reason)
        (self.place / "daemon.json").write_text("{}")  # and not that of this machine
        guard = ["setpriv", "--pdeathsig", "TERM"] if shutil.which("setpriv") else []
        words = ["dockerd", "--config-file", f"{self.place}/daemon.json", "-H", self.host]
        words += ["--iptables=false", "--ip6tables=false", "--bridge=none", "--shutdown-timeout=1"]
        words += ["--exec-opt=native.cgroupdriver=cgroupfs", f"--cgroup-parent=/{self.cgroup}"]
        for option in ("data-root", "exec-root", "pidfile"):
            words.append(f"--{option}={self.place}/{option.removesuffix('-root')}")
        with open(self.place / "log", "wb") as log:
            self.process = subprocess.Popen(
                guard + words, stdin=subprocess.DEVNULL, stdout=log, stderr=log, start_new_session=True
            )
        self._await_answer()
        try:
            with self.client() as client:
                client.containers.run(self.image("busybox"), ["true"], network_mode="none", remove=True)
        except Exception as reason:
            raise Unavailable(f"dockerd runs no container: {' '.join(str(reason).split())[:300]}") from reason

    def _await_answer(self) -> None:
        process = self.process
        assert process
        deadline = time.monotonic() + READY
        while True:
            try:
                # Not the SDK: a client of it that finds nobody leaves its socket open.
                with socket.socket(socket.AF_UNIX) as line:
                    line.settimeout(READY)
                    line.connect(self.host.removeprefix("unix://"))
                    line.sendall(b"GET /_ping HTTP/1.0\r\nHost: docker\r\n\r\n")
                    if b" 200 " in line.recv(100):
                        return
            except OSError:
                if process.poll() is not None or time.monotonic() > deadline:
                    lines = (self.place / "log").read_text(errors="replace").strip().splitlines() or ["no word of it"]
                    raise Unavailable(f"dockerd does not run here: {lines[-1][:300]}") from None
            time.sleep(STEP)

    def client(self, **options: Any) -> Any:
        """A client of the SDK; the caller closes it (``with``)."""
        docker = pytest.importorskip("docker")
        return _Closing(docker.DockerClient(base_url=self.host, **options))

    def mounts(self, image: str) -> tuple[str, ...]:
        """What containers of an image need from this machine, as ``A:B:ro``: the programs of "tools"."""
        return tuple(f"{folder}:{folder}:ro" for folder in real_system_folders()) if image == "tools" else ()

    def run(self, image: str, **options: Any) -> str:
        """Start a container that waits to be removed, and return its id. ``options`` are those of the SDK's run."""
        options = {"network_mode": "none", "init": True, "volumes": list(self.mounts(image)), **options}
        options.setdefault("command", list(KEEP_ALIVE))
        with self.client() as client:
            container = client.containers.create(self.image(image), **options)
            try:
                container.start()
            except BaseException:
                container.remove(force=True)
                raise
            return str(container.id)

    def remove(self, container: str) -> None:
        """Kill and remove a container; harmless if it is gone."""
        import docker.errors

        with self.client() as client, contextlib.suppress(docker.errors.NotFound):
            client.api.remove_container(container, force=True, v=True)

    def containers(self) -> list[str]:
        """The ids of all containers, those that have ended included."""
        with self.client() as client:
            return [entry["Id"] for entry in client.api.containers(all=True)]

    def processes(self) -> list[psutil.Process]:
        """What runs in this engine's containers, as seen from this machine."""
        found = []
        for process in psutil.process_iter():
            try:
                if f"/{self.cgroup}/" in Path(f"/proc/{process.pid}/cgroup").read_text():
                    found.append(process)
            except OSError:
                continue  # gone meanwhile
        return found

    def _make(self, name: str) -> str:
        folder = Path(tempfile.mkdtemp(prefix="image", dir=self.place))
        data = io.BytesIO()
        try:
            IMAGES[name](folder)
            with tarfile.open(fileobj=data, mode="w") as archive:
                archive.add(folder, arcname=".")
        finally:
            shutil.rmtree(folder)
        path = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"
        with self.client() as client:
            client.api.import_image_from_data(
                data.getvalue(), repository=name, tag="latest", changes=[f"ENV PATH={path}"]
            )
        return name

    def stop(self) -> list[str]:
        """End the engine and all that it started, and remove the directory; what had to be forced or is left."""
        patience = 0.0  # an engine that was killed leaves all that it had started
        if self.process and self.process.poll() is None:
            patience = ENDED
            for container in self.containers():
                self.remove(container)
            self.process.terminate()
            try:
                self.process.wait(ENDED)
            except subprocess.TimeoutExpired:
                self.process.kill()
                self.process.wait()
        left = psutil.wait_procs(self._own(), timeout=patience)[1]
        found = [f"process {process}" for process in left if patience]
        while own := self._own():
            for process in own:
                with contextlib.suppress(psutil.NoSuchProcess):
                    process.kill()
            psutil.wait_procs(own, timeout=ENDED)
        for mount in reversed(mounts_below(self.place)):
            subprocess.run(["umount", "-l", mount], check=False, capture_output=True)
        shutil.rmtree(self.place)
        for folder in sorted(self.cgroups(), reverse=True) if self.process else ():
            remove_cgroup(folder)
        return found + [f"mount {mount}" for mount in mounts_below(self.place)]

    def cgroups(self) -> list[Path]:
        """Folders of its control groups, those inside included. (Path.glob fails where anybody's goes meanwhile.)"""
        return [Path(folder) for folder, _, _ in os.walk(CGROUPS) if self.cgroup in folder.split("/")]

    def _own(self) -> list[psutil.Process]:
        """The engine's processes: containers, and whatever has the directory in its command line."""
        found = self.processes()
        for process in psutil.process_iter():
            try:
                if any(f"{self.place}/" in word for word in process.cmdline()):
                    found.append(process)
            except psutil.Error:
                continue
        return [process for process in found if process.pid != os.getpid()]


class _Closing:
    """A DockerClient that ``with`` closes."""

    def __init__(self, client: Any) -> None:
        self.client = client

    def __enter__(self) -> Any:
        return self.client

    def __exit__(self, *_: object) -> None:
        self.client.close()


def remove_cgroup(folder: Path) -> None:
    """Remove a group, which is busy for a moment after the end of its last process."""
    deadline = time.monotonic() + ENDED
    while folder.exists():
        try:
            folder.rmdir()
        except OSError:
            if time.monotonic() > deadline:
                raise
            time.sleep(STEP)


def mounts_below(place: Path) -> list[str]:
    lines = Path("/proc/self/mounts").read_text().splitlines() if sys.platform.startswith("linux") else []
    return [line.split()[1] for line in lines if line.split()[1].startswith(f"{place}/")]


# ---------------------------------------------------------------------- images


def make_skeleton(folder: Path) -> None:
    """What every image has: users, a home, a place for temporary files."""
    for name in ("etc", "root", "home/worker", "proc", "sys", "dev", "tmp", "usr", "var/tmp"):
        (folder / name).mkdir(parents=True, exist_ok=True)
    for name in ("tmp", "var/tmp", "home/worker"):
        (folder / name).chmod(0o1777)
    (folder / "etc/passwd").write_text(PASSWD)
    (folder / "etc/group").write_text(GROUP)


def make_busybox(folder: Path) -> None:
    """One static program, with a link for each of its names."""
    make_skeleton(folder)
    (folder / "bin").mkdir()
    busybox = str(shutil.which("busybox"))
    shutil.copy(busybox, folder / "bin/busybox")
    names = subprocess.run([busybox, "--list"], capture_output=True, text=True, check=True).stdout.split()
    for name in set(names) - {"busybox"}:
        (folder / "bin" / name).symlink_to("busybox")


def make_bash(folder: Path) -> None:
    """GNU programs with their libraries and loader; sh is dash, and there is no python."""
    make_skeleton(folder)
    (folder / "usr/bin").mkdir()
    for name in ("bin", "sbin"):
        (folder / name).symlink_to("usr/bin")
    programs = [path for path in map(shutil.which, BASH_PROGRAMS.split()) if path]
    for path in programs:
        shutil.copy(path, folder / "usr/bin")
    (folder / "usr/bin/sh").symlink_to("dash")
    for library in libraries_of(programs):
        # At the path where the loader of this machine found it, as that of the image looks there too.
        (folder / library[1:]).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(library, folder / library[1:])


def libraries_of(programs: list[str]) -> set[str]:
    told = subprocess.run(["ldd", *programs], capture_output=True, text=True, check=False).stdout
    return {word for line in told.splitlines() if not line.endswith(":") for word in line.split() if word[0] == "/"}


def make_tools(folder: Path) -> None:
    """Nothing but a skeleton: /usr and the like are this machine's own, mounted for reading (Dockerd.mounts)."""
    make_skeleton(folder)
    (folder / "sbin").mkdir()  # the engine mounts its init there
    for name in SYSTEM_FOLDERS:
        here = Path("/") / name
        if here.is_symlink():
            (folder / name).symlink_to(os.readlink(here).removeprefix("/"))
        elif here.is_dir():
            (folder / name).mkdir()
    for name in TOOLS_ETC.split():
        here, there = Path("/etc") / name, folder / "etc" / name
        there.parent.mkdir(parents=True, exist_ok=True)
        if here.is_dir():
            shutil.copytree(here, there, symlinks=True, dirs_exist_ok=True)
        elif here.exists():
            shutil.copy(here, there)


def real_system_folders() -> list[str]:
    """/usr, and those beside it that are no links into it."""
    names = [f"/{name}" for name in ("usr", *SYSTEM_FOLDERS)]
    return [name for name in names if os.path.isdir(name) and not os.path.islink(name)]


IMAGES: dict[str, Callable[[Path], None]] = {"busybox": make_busybox, "bash": make_bash, "tools": make_tools}


# -------------------------------------------------------------------- fixtures


@pytest.fixture(scope="session")
def dockerd() -> Iterator[Dockerd]:
    """The engine of this run; at its end nothing of it may be left."""
    engine = Dockerd()
    reason, left = "", []
    try:
        engine.start()
        yield engine
    except Unavailable as wrong:
        reason = str(wrong)
    finally:
        left = engine.stop()
    if reason:
        pytest.skip(f"no docker engine: {reason}")
    assert not left, f"left behind: {left}"
    assert not engine.place.exists()


@pytest.fixture
def docker_host(dockerd: Dockerd, monkeypatch: pytest.MonkeyPatch) -> Iterator[Dockerd]:
    """The engine, named by DOCKER_HOST; a container that the test leaves fails it."""
    monkeypatch.setenv("DOCKER_HOST", dockerd.host)
    before = set(dockerd.containers())
    yield dockerd
    deadline = time.monotonic() + ENDED
    while (left := set(dockerd.containers()) - before) and time.monotonic() < deadline:
        time.sleep(STEP)
    for container in left:
        dockerd.remove(container)
    assert not left, f"containers left behind: {sorted(left)}"
