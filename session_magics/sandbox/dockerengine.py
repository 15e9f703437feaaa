"""The container that commands run in, through the Docker SDK: one that exists, or one that is made of an image."""

from __future__ import annotations

import contextlib
import os
import re
import subprocess
import sys
import threading
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from session_magics.errors import SandboxError, UsageMistake
from session_magics.sandbox import dockerexec
from session_magics.sandbox.dockerexec import GONE, REMOVAL, trouble
from session_magics.sandbox.dockerscripts import KEEP_ALIVE
from session_magics.sandbox.dockerwire import ANSWER, EngineFailure

LABEL = "session-magics"
"""Label of each container that is made here; its value is the session's name."""
MAKING = 60.0
"""Seconds for the engine to make and start a container, whose image is there already."""
DEFAULT_HOST = "unix:///var/run/docker.sock"
SYSTEM_REASON = re.compile(r"(?:Error\(\d+, '|\[Errno -?\d+\] )([^)'\"]+)")
"""What the system said, in what the SDK makes of it when there is no engine."""


@dataclass(frozen=True)
class Wish:
    """What a container is to be like; see DockerSandbox."""

    image: str | None = None
    container: str | None = None
    name: str = ""
    session: str = ""
    mounts: Sequence[str] = ()
    user: str = ""
    network: str | None = None
    memory: str | int | None = None
    cpus: float | None = None


class Engine:
    """An engine and the one container there. Asks nobody before it must."""

    def __init__(self, place: str, wish: Wish, client: Any = None) -> None:
        self._place, self._wish, self._given = place, wish, client
        self._lock, self._connecting = threading.Lock(), threading.Lock()
        self._client: Any = client
        self._found: tuple[str, str] | None = None
        self._guard: subprocess.Popen[bytes] | None = None
        self._undone = False
        """Whether a container that was made has been removed again, as it could not be started."""

    @property
    def host(self) -> str:
        """Where the engine listens; a UsageMistake if it cannot be spoken to from here."""
        host = _host_of(self._given) if self._given is not None else os.environ.get("DOCKER_HOST") or DEFAULT_HOST
        if not host.startswith(("unix:///", "tcp://")) or os.environ.get("DOCKER_TLS_VERIFY"):
            raise UsageMistake(
                f"{self._place}: an engine at {host} needs a tunnel: forward its socket (ssh -L), and set DOCKER_HOST"
            )
        return host

    def container(self) -> tuple[str, str]:
        """Id of the container, which is made if there is none yet, and its directory for programs."""
        with self._lock:
            if self._found is None:
                _ = self.host  # refuses one that nothing here can speak to, before the SDK says so in its own words
                with self.errors():
                    self._found = self._existing() if self._wish.container else self._guarded()
            return self._found

    @property
    def known(self) -> bool:
        """Whether a container was asked for; if not, nothing was started there."""
        return self._found is not None

    def trouble(self) -> str:
        """Why nothing can be expected of the container; empty: nothing is wrong."""
        found = self._found
        return trouble(self.host, found[0]) if found else GONE

    def ended(self) -> bool:
        """Whether the container runs no more; SandboxError if it cannot be reached."""
        wrong = self.trouble()
        if wrong and not wrong.startswith(GONE):
            raise SandboxError(self._place, wrong)
        return bool(wrong)

    def create(self, container: str, words: Sequence[str], **options: Any) -> str:
        """Have a program be made ready in the container; its id."""
        with self.errors():
            made = self._sdk().api.exec_create(container, list(words), workdir="/", **options)
            return str(made["Id"])

    @contextlib.contextmanager
    def errors(self) -> Iterator[None]:
        """What goes wrong with the engine is a SandboxError of one line."""
        try:
            yield
        except EngineFailure as failure:
            raise SandboxError(self._place, _one_line(str(failure))) from None
        except Exception as error:
            if isinstance(error, (SandboxError, UsageMistake)) or not _of_the_sdk(error):
                raise
            text = getattr(error, "explanation", None) or f"the docker engine does not answer: {error}"
            raise SandboxError(self._place, _one_line(str(text))) from None

    def remove(self) -> None:
        """Remove the container, if it was made here, and hang up."""
        with self._lock:
            try:
                if self._found and self._wish.image:
                    with _own_client(self._place, self._given, REMOVAL) as client, self.errors():
                        _remove(client, self._found[0])
            finally:
                self._found = None
                self.hang_up()

    def hang_up(self) -> None:
        """Close our client, and leave a container that was made to whoever removes it; a later call connects anew."""
        guard, self._guard = self._guard, None
        if guard is not None:
            _dismiss(guard)
        with self._connecting:
            if self._client is not None and self._given is None:
                self._client.close()
                self._client = None

    def _sdk(self) -> Any:
        with self._connecting:
            if self._client is None:
                self._client = _connected(self._place, ANSWER)
            return self._client

    def _existing(self) -> tuple[str, str]:
        name = self._wish.container
        docker = _docker()
        try:
            told = self._sdk().api.inspect_container(name)
        except docker.errors.NotFound:
            raise UsageMistake(
                f"{self._place}: there is no container {name!r}: docker ps lists those that run"
            ) from None
        state = told["State"]
        if not state.get("Running") or state.get("Paused"):
            how, verb = state.get("Status", "stopped"), "unpause" if state.get("Paused") else "start"
            raise SandboxError(self._place, f"the container is {how}: docker {verb} {name}")
        return str(told["Id"]), told["Config"].get("WorkingDir") or "/"

    def _guarded(self) -> tuple[str, str]:
        """Make a container that is removed should this be interrupted, or this process end before it has let go."""
        argv = (sys.executable, "-I", dockerexec.__file__, "guard", self.host, self._wish.name)
        quiet = subprocess.DEVNULL
        guard = subprocess.Popen(argv, stdin=subprocess.PIPE, stdout=quiet, stderr=quiet, start_new_session=True)
        self._undone = False
        try:
            made = self._made()
        except Exception:
            _dismiss(guard)
            raise
        except BaseException:
            if self._undone:
                _dismiss(guard)
            elif guard.stdin:  # the engine may be about to make it
                guard.stdin.close()
            raise
        self._guard = guard
        return made

    def _made(self) -> tuple[str, str]:
        docker, wish = _docker(), self._wish
        with _own_client(self._place, self._given, MAKING) as client, contextlib.ExitStack() as unless_it_runs:
            try:
                made = client.containers.create(
                    wish.image,
                    entrypoint=["/bin/sh", "-c", KEEP_ALIVE],
                    command=[],
                    name=wish.name,
                    init=True,
                    labels={LABEL: wish.session},
                    mounts=[_mount(docker, text) for text in wish.mounts],
                    user=wish.user or None,
                    network_mode=wish.network,
                    mem_limit=wish.memory,
                    memswap_limit=wish.memory,
                    nano_cpus=None if wish.cpus is None else round(wish.cpus * 1e9),
                )
                unless_it_runs.callback(self._undo, client, made.id)
                made.start()
                told = client.api.inspect_container(made.id)
            except docker.errors.ImageNotFound:
                raise UsageMistake(
                    f"{self._place}: there is no image {wish.image!r} here: docker pull {wish.image}"
                ) from None
            except docker.errors.APIError as refusal:
                if refusal.is_client_error():
                    text = _one_line(str(refusal.explanation))
                    raise UsageMistake(f"{self._place}: no container can be made: {text}") from None
                raise
            except docker.errors.DockerException as refusal:  # of the SDK, before anybody was asked
                raise UsageMistake(f"{self._place}: no container can be made: {_one_line(str(refusal))}") from None
            unless_it_runs.pop_all()
        return made.id, told["Config"].get("WorkingDir") or "/"

    def _undo(self, client: Any, container: str) -> None:
        _remove(client, container)
        self._undone = True


def container_of(place: str, session: str) -> str:
    """Short id of the container that was made for a session; SandboxError if there is none."""
    with _own_client(place, None, ANSWER) as client, Engine(place, Wish()).errors():
        found = client.containers.list(filters={"label": f"{LABEL}={session}"})
        if not found:
            raise SandboxError(place, "the session's container is gone: it is removed when the session has ended")
        return str(found[0].short_id)


def _dismiss(guard: subprocess.Popen[bytes]) -> None:
    """Have a container stay, or be removed by whoever calls."""
    guard.communicate(b"k")


def _docker() -> Any:
    try:
        import docker
        import docker.errors
    except ImportError:
        raise UsageMistake("containers need the Docker SDK: pip install 'session-magics[docker]'") from None
    return docker


def _connected(place: str, timeout: float) -> Any:
    docker = _docker()
    try:
        return docker.from_env(timeout=timeout)
    except docker.errors.DockerException as error:
        host, reason = os.environ.get("DOCKER_HOST") or DEFAULT_HOST, SYSTEM_REASON.search(str(error))
        why = reason[1] if reason else _one_line(str(error))
        hint = "start it, ask for the right to use it, or set DOCKER_HOST"
        raise SandboxError(place, f"no docker engine at {host} ({why}): {hint}") from None


@contextlib.contextmanager
def _own_client(place: str, given: Any, timeout: float) -> Iterator[Any]:
    """A client with more patience, for what takes longer than an answer; the caller's own, if there is one."""
    client = given if given is not None else _connected(place, timeout)
    try:
        yield client
    finally:
        if given is None:
            client.close()


def _remove(client: Any, container: str) -> None:
    """Kill and remove a container; harmless if it is gone, or going."""
    docker = _docker()
    try:
        client.api.remove_container(container, force=True, v=True)
    except docker.errors.APIError as refusal:
        if refusal.status_code not in (404, 409):
            raise


def _mount(docker: Any, text: str) -> Any:
    """``A:B`` or ``A:B:ro``: a directory of the engine's machine, or the name of a volume, and its place there."""
    parts = text.split(":")
    if len(parts) not in (2, 3) or not parts[1].startswith("/") or parts[2:] not in ([], ["ro"], ["rw"]):
        raise UsageMistake(f"a mount is FOLDER:PATH or FOLDER:PATH:ro with an absolute path, not {text!r}")
    source, kind = parts[0], "volume"
    if source.startswith((".", "/", "~")):
        source, kind = os.path.abspath(os.path.expanduser(source)), "bind"
    return docker.types.Mount(parts[1], source, type=kind, read_only=parts[2:] == ["ro"])


def _host_of(client: Any) -> str:
    """Where a client of the SDK speaks to, which it tells of a socket only by its adapter."""
    base = str(client.api.base_url)
    if base.startswith("http+docker://"):
        return f"unix://{client.api.get_adapter(base).socket_path}"
    return base.replace("http://", "tcp://", 1)


def _of_the_sdk(error: Exception) -> bool:
    import requests.exceptions

    return isinstance(error, (_docker().errors.DockerException, requests.exceptions.RequestException, OSError))


def _one_line(text: str) -> str:
    return " ".join(text.split())[:400]
