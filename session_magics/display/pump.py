"""Messages of our widgets and questions about text while a magic of ours waits, for some kernels.

They are those that take messages in the thread of the cells, as ipykernel 6: while a cell runs, no message is handled.
But as long as one of our magics waits, the thread of the cells does not look at the socket; so a thread of ours does.
It handles what is for us and keeps the rest, which the kernel gets in order at the end, before all that comes later.
While any other cell runs, our widgets wait as all do.
"""

from __future__ import annotations

import contextlib
import os
import threading
from collections.abc import Callable, Iterator
from typing import Any

import zmq

from session_magics.display.questions import KINDS, Questions
from session_magics.interrupts import noticed

Handler = Callable[[dict[str, Any]], None]


class Pump:
    """For one kernel; all methods are called in the thread of the cells. With other kernels it does nothing."""

    def __init__(self, ip: Any, questions: Questions) -> None:
        self.questions = questions
        self._kernel: Any = getattr(ip, "kernel", None)
        self._handlers: dict[str, Handler] = {}
        self._waiting = False
        self._taker: _Taker | None = None

    def serve(self, comm_id: str, handler: Handler) -> None:
        """Have ``handler`` called with each message of a comm that comes while a magic waits, in another thread."""
        self._handlers[comm_id] = handler

    def forget(self, comm_id: str) -> None:
        """The comm is closed."""
        self._handlers.pop(comm_id, None)

    @contextlib.contextmanager
    def running(self) -> Iterator[None]:
        """The time in which a magic of ours may wait."""
        if self._waiting or threading.current_thread() is not threading.main_thread():
            yield
            return
        self._end()  # what an interrupt may have left undone
        self._waiting = True
        try:
            with self.questions.running():
                if self._fits():
                    self._begin()
                yield
        finally:
            self._waiting = False
            self._end()

    def _fits(self) -> bool:
        """Whether the kernel is one of those; an extension may be loaded before that can be seen."""
        kernel = self._kernel
        return (
            getattr(kernel, "shell_channel_thread", None) is None
            and all(hasattr(kernel, name) for name in ("msg_queue", "schedule_dispatch", "dispatch_shell"))
            and hasattr(kernel.shell_stream, "socket")
        )

    def _begin(self) -> None:
        with noticed():  # an interrupt half-way would lose messages
            self._sift()
            self._taker = _Taker(self._kernel.shell_stream.socket, self._handle)
            self._taker.start()

    def _sift(self) -> None:
        """Handle what the kernel has taken from the socket already; the rest keeps its order."""
        kernel = self._kernel
        entries = [kernel.msg_queue.get_nowait() for _ in range(kernel.msg_queue.qsize())]
        for entry in entries:
            _, dispatch, arguments = entry
            if dispatch != kernel.dispatch_shell or not self._handle(arguments[0]):
                kernel.msg_queue.put_nowait(entry)

    def _end(self) -> None:
        if self._taker is None:
            return
        kernel = self._kernel
        with noticed():
            for frames in self._taker.stop():
                kernel.schedule_dispatch(kernel.dispatch_shell, frames)
            self._taker = None
            kernel.shell_stream.flush(zmq.POLLIN)  # it has not noticed what came last, and nobody took

    def _handle(self, frames: list[Any]) -> bool:
        """Handle a message if it is for one of our comms, or a question that we answer."""
        kernel = self._kernel
        try:
            idents, parts = kernel.session.feed_identities(frames, copy=False)
            message = kernel.session.deserialize(parts, content=False, copy=False)  # so it is not remembered as seen
            if message["header"]["msg_type"] not in ("comm_msg", *KINDS):
                return False
            message["content"] = kernel.session.unpack(message["content"])
            if message["header"]["msg_type"] in KINDS:
                return self.questions.answered(kernel.shell_stream.socket, idents, message)
            handler = self._handlers.get(message["content"]["comm_id"])
        except Exception:  # the kernel says what is wrong with it, when its turn comes
            return False
        if handler is None:
            return False
        self.questions.say("busy", message)
        try:
            handler(message)
        except Exception:
            kernel.log.exception("session-magics: a message of a widget failed")
        self.questions.say("idle", message)
        return True


class _Taker(threading.Thread):
    """Takes messages from a socket, which nobody else touches until ``stop`` has returned."""

    def __init__(self, socket: Any, handle: Callable[[list[Any]], bool]) -> None:
        super().__init__(name="messages of widgets", daemon=True)
        self._socket, self._handle = socket, handle
        self._kept: list[list[Any]] = []
        self._read, self._write = os.pipe()

    def run(self) -> None:
        """Until ``stop``."""
        poller = zmq.Poller()
        poller.register(self._socket, zmq.POLLIN)
        poller.register(self._read, zmq.POLLIN)
        with contextlib.suppress(zmq.ZMQError):  # the kernel ends
            while self._read not in (ready := dict(poller.poll())):
                if self._socket in ready:
                    self._take(self._socket.recv_multipart(copy=False))

    def _take(self, frames: list[Any]) -> None:
        if not self._handle(frames):
            self._kept.append(frames)

    def stop(self) -> list[list[Any]]:
        """End the thread; the messages that were not handled."""
        os.write(self._write, b"!")
        self.join()
        os.close(self._read)
        os.close(self._write)
        return self._kept
