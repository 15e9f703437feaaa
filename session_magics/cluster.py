"""Asking the engines of an IPython Parallel cluster to call functions of this package.

Which cluster: the one that ``$SESSION_MAGICS_CLUSTER`` names, as ``PROFILE:CLUSTER_ID`` (``default:``, ``mpi:x``) or as
the path of a client's connection file; else the one of the default profile; else the only one that runs. Everything
that an engine is told or tells is pickled, so both sides have the same version of this package.
"""

from __future__ import annotations

import contextlib
import importlib.metadata
import os
import re
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from session_magics.errors import SandboxError, SessionError, UsageMistake

CLUSTER_VARIABLE = "SESSION_MAGICS_CLUSTER"
PACKAGE = "session-magics"
CONNECT_LIMIT = 5.0
"""Seconds for the controller to answer: it takes 5 ms here, and some hundred through a tunnel."""
ANSWER_LIMIT = 5.0
"""Seconds for an engine to answer, beyond those that the thing asked for takes: one that is idle needs 5 ms."""
FORGET_LIMIT = 3.0
"""Seconds for an engine to agree that it forgets a request: it does so beside other work, within some 6 ms."""
LOOK = 0.5
"""Seconds between looks at whether an engine that is waited for is still known to the controller."""
CLUSTER_FILE = re.compile(r"ipcontroller(?:-(.+))?-client\.json")


@dataclass(frozen=True)
class Request:
    """What an engine is asked to do: a function that it finds in its own copy of this package.

    A callable object and no plain function, as IPython Parallel sends the byte code of those, which differs between
    versions of Python.
    """

    version: str
    function: Callable[..., object]
    arguments: tuple[object, ...]

    def __call__(self) -> Answer:
        """Do it; on the engine."""
        there = importlib.metadata.version(PACKAGE)
        if there != self.version:
            return Answer(version=there)
        try:
            return Answer(self.function(*self.arguments))
        except SessionError as error:
            return Answer(failure=(type(error), str(error), vars(error)))


@dataclass(frozen=True)
class Answer:
    """What came of a request: a value, or the error's class, text and attributes, or a version that is another."""

    value: object = None
    failure: tuple[type[SessionError], str, Mapping[str, object]] | None = None
    version: str = ""


class NoAnswer(SandboxError):
    """An engine did not come to what it was asked. ``told``: whether it has agreed to forget it."""

    def __init__(self, engine: int, seconds: float, *, told: bool) -> None:
        why = "it does other work, and was told to forget this" if told else "it hangs, and may still do this later"
        super().__init__(place(engine), f"no answer within {seconds:g} s: {why}")


class Cluster:
    """A connection to the engines of a cluster; ``close`` it, or use it in a ``with`` statement."""

    def __init__(self, named: str | None = None) -> None:
        """Connect. ``named``: see above, in place of the environment variable.

        Raises:
            UsageMistake: IPython Parallel is not installed, or it is not clear which cluster is meant.
            SandboxError: no cluster runs, or its controller does not answer.
        """
        self._file = connection_file(named)
        self._client = _client(self._file)
        self._version = importlib.metadata.version(PACKAGE)

    def __enter__(self) -> Cluster:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Hang up; idempotent."""
        self._client.close()

    @property
    def ids(self) -> list[int]:
        """The numbers of the engines that the controller knows now."""
        return list(self._client.ids)

    def ask(
        self,
        engine: int,
        function: Callable[..., object],
        *arguments: object,
        takes: float = 0.0,
        patient_until: float | None = None,
    ) -> Any:
        """What the function gives on that engine.

        Args:
            takes: seconds that it may take there.
            patient_until: moment (monotonic; infinity: none) up to which an engine may do other work first, as long as
                the controller has it.

        Raises:
            NoAnswer: none came in time.
            SandboxError: there is no such engine, or it died, or cannot do it.
            SessionError: what the function raised there, with the engine before its text.
        """
        pending = self._send(engine, function, arguments)
        try:
            return self._received(engine, pending, takes + ANSWER_LIMIT, patient_until)
        except KeyboardInterrupt:
            self._forgotten(engine, pending)
            raise

    def ask_each(
        self, requests: Mapping[int, tuple[Callable[..., object], tuple[object, ...]]], *, takes: float = 0.0
    ) -> dict[int, object]:
        """The same of several engines at once; where one failed, its SessionError is the value."""
        pending: dict[int, Any] = {}
        answers: dict[int, object] = {}
        for engine, (function, arguments) in requests.items():
            try:
                pending[engine] = self._send(engine, function, arguments)
            except SandboxError as error:
                answers[engine] = error
        began = time.monotonic()
        for engine, one in pending.items():
            try:
                answers[engine] = self._received(engine, one, takes + ANSWER_LIMIT, began=began)
            except SessionError as error:
                answers[engine] = error
        return {engine: answers[engine] for engine in requests}

    def _send(self, engine: int, function: Callable[..., object], arguments: tuple[object, ...]) -> Any:
        if engine not in self.ids:
            known = ", ".join(map(str, self.ids)) or "none"
            raise SandboxError(place(engine), f"the cluster has no such engine, or it has ended; it has: {known}")
        return self._client[engine].apply_async(Request(self._version, function, arguments))

    def _received(
        self,
        engine: int,
        pending: Any,
        limit: float,
        patient_until: float | None = None,
        *,
        began: float | None = None,
    ) -> Any:
        deadline = (began or time.monotonic()) + limit
        while not pending.wait(min(LOOK, max(0.0, deadline - time.monotonic()))):
            if engine not in self.ids:
                raise SandboxError(place(engine), "it has ended; what it had started goes on")
            if time.monotonic() < deadline:
                continue
            if patient_until is None or time.monotonic() >= patient_until:
                raise NoAnswer(engine, limit, told=self._forgotten(engine, pending))
            self._check(engine)
            deadline = min(patient_until, time.monotonic() + ANSWER_LIMIT)
        return self._value(engine, pending)

    def _check(self, engine: int) -> None:
        """Raise SandboxError if the controller does not answer any more: it tells nobody when it is killed."""
        _client(self._file).close()

    def _value(self, engine: int, pending: Any) -> object:
        from ipyparallel.error import KernelError

        try:
            answer = pending.get(0)
        except KernelError as error:
            kind = getattr(error, "ename", type(error).__name__)
            raise self._refused(engine, kind, getattr(error, "evalue", str(error))) from None
        if answer.version:
            raise SandboxError(place(engine), self._other_version(answer.version))
        if answer.failure is not None:
            raise _again(engine, *answer.failure)
        return answer.value

    def _refused(self, engine: int, kind: str, text: str) -> SandboxError:
        """Why an engine could not even begin, or failed as no function of ours should."""
        if kind == "EngineError":
            return SandboxError(place(engine), "it has ended; what it had started goes on")
        there = "" if "session_magics" in text and kind == "ModuleNotFoundError" else self._version_of(engine)
        if not there:
            return SandboxError(place(engine), f"{PACKAGE} is not installed there: %px %pip install {PACKAGE}")
        reason = self._other_version(there) if there != self._version else f"{kind}: {text}"
        return SandboxError(place(engine), reason)

    def _version_of(self, engine: int) -> str:
        """The version that is installed there; "" if none is, or if it cannot be asked."""
        from ipyparallel.error import KernelError

        look = f"__import__('importlib.metadata').metadata.version({PACKAGE!r})"
        with contextlib.suppress(KernelError, TimeoutError, LookupError):
            return str(self._client[engine].apply_async(eval, look).get(ANSWER_LIMIT))
        return ""

    def _other_version(self, there: str) -> str:
        return f"{PACKAGE} {there} is installed there, and {self._version} here: install the same on both"

    def _forgotten(self, engine: int, pending: Any) -> bool:
        """Have the engine forget a request that it has not begun with; whether it agrees, as a busy one does."""

        def abort() -> None:
            with contextlib.suppress(LookupError, OSError):
                self._client[engine].abort(pending, block=True)

        # It waits without a limit: for an engine that hangs, its thread stays.
        asking = threading.Thread(target=abort, name=f"forget by {place(engine)}", daemon=True)
        asking.start()
        asking.join(FORGET_LIMIT)
        return not asking.is_alive()


def place(engine: int) -> str:
    """How messages name an engine."""
    return f"engine {engine}"


def connection_file(named: str | None = None) -> Path:
    """The file by which a client finds the cluster that is meant. Raises as ``Cluster`` does."""
    named = named or os.environ.get(CLUSTER_VARIABLE)
    found = dict(_running())
    if named and "/" in named:
        return Path(named).expanduser()
    if named:
        key = named if ":" in named else f"default:{named}"
    elif "default:" in found or len(found) < 2:
        key = "default:" if "default:" in found else next(iter(found), "")
    else:
        raise UsageMistake(f"several clusters run ({', '.join(found)}): set {CLUSTER_VARIABLE} to one of them")
    if key not in found:
        known = f"; there is {', '.join(found)}" if found else ""
        which = f"cluster {named}" if named else "cluster"
        raise SandboxError(which, f"none runs{known}: ipcluster start -n 4, or set {CLUSTER_VARIABLE}")
    return found[key]


def _running() -> Iterator[tuple[str, Path]]:
    """The clusters whose controllers have left a connection file, as PROFILE:CLUSTER_ID; it goes when they end."""
    folder = Path(os.environ.get("IPYTHONDIR") or "~/.ipython").expanduser()
    for file in sorted(folder.glob("profile_*/security/ipcontroller*-client.json")):
        if match := CLUSTER_FILE.fullmatch(file.name):
            yield f"{file.parent.parent.name.removeprefix('profile_')}:{match[1] or ''}", file


def _client(file: Path) -> Any:
    try:
        import ipyparallel
        import zmq
    except ImportError:
        raise UsageMistake("engines need IPython Parallel: pip install 'session-magics[parallel]'") from None
    # Within IPython the first client makes itself that of %px, which should be the person's and not one that closes.
    quiet = type("Client", (ipyparallel.Client,), {"activate": lambda self, *_, **__: None})
    context: Any = zmq.Context.shadow(zmq.Context.instance())
    context.linger = 0  # what a controller that is gone has not taken would keep the sockets for ever
    try:
        return quiet(str(file), timeout=CONNECT_LIMIT, context=context)
    except TimeoutError:
        reason = f"its controller does not answer within {CONNECT_LIMIT:g} s; if it has ended, remove {file}"
    except (OSError, ValueError, KeyError) as error:
        reason = f"no connection by {file}: {str(error).splitlines()[0] if str(error) else type(error).__name__}"
    raise SandboxError("cluster", reason)


def _again(engine: int, kind: type[SessionError], text: str, data: Mapping[str, object]) -> SessionError:
    """The error that was raised there, told here."""
    name = data.get("name")
    if isinstance(name, str):  # what to type next is meant for there too
        text = re.sub(rf"(%session [a-z]+ {re.escape(name)})(?![\w@.-])", rf"\1@engine:{engine}", text)
    error = kind.__new__(kind)
    error.args = (f"{place(engine)}: {text}",)
    vars(error).update(data)
    return error
