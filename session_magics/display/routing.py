"""A thread of our own for the messages of our widgets, so that keys and Stop work while any cell runs.

ipykernel hands the messages of a page to the thread that runs cells, or to a thread that the page asked for if page
and kernel agree on it; which of the two a widget gets cannot be relied on. So one *subshell* (ipykernel's word for a
thread that handles messages) is made here, and what is for our widgets is led to it. All that is not public in
ipykernel is used in this module alone, found by looking for it; where it is missing, widgets work between cells.
"""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import Future
from typing import Any

PATIENCE = 2.0
"""Seconds for the kernel to make the thread; it takes a few milliseconds."""
RESTATE_AFTER = 0.03
"""Seconds between the end of a message's handling and the word that a cell still runs: the page has taken in then that
the message's own handling is over."""

Handler = Callable[[Mapping[str, Any], Sequence[Any]], None]


class Router:
    """Leads the messages of comms to a thread of its own. For one kernel; ``adopt`` is called in the cell's thread."""

    def __init__(self, ip: Any) -> None:
        self._ip, self.kernel = ip, getattr(ip, "kernel", None)
        self._subshell: str | None = None
        self._ours: set[str] = set()
        self._lock = threading.Lock()
        self._cell: dict[str, Any] | None = None  # the request of the cell that runs
        self._restating = False
        with contextlib.suppress(Exception):
            self._subshell = self._make_subshell()
            self._watch_cells()

    @property
    def routed(self) -> bool:
        """Whether messages are handled while a cell runs."""
        return self._subshell is not None

    def adopt(self, comm: Any, handler: Handler) -> None:
        """Have ``handler`` called with (content, buffers) for each custom message of a widget's comm, not yet open.

        It is called in the router's thread and must not block. Other messages are handled as before.
        """

        def handle(message: Mapping[str, Any]) -> None:
            # Instead of comm.handle_msg, which runs IPython's hooks for every message as if it were a cell.
            data = message["content"]["data"]
            if data.get("method") == "custom":
                handler(data["content"], message.get("buffers") or ())
            elif comm._msg_callback is not None:  # what ipywidgets registers
                comm._msg_callback(message)
            self._restate()

        comm.handle_msg = handle
        if self._subshell is None:
            return
        # ipykernel >= 7.4 asks the comm itself; for those before, the messages are led by their comm's id.
        comm._reply_subshell_for = lambda data, default: self._subshell
        self._ours.add(comm.comm_id)

    def forget(self, comm_id: str) -> None:
        """The comm is closed."""
        self._ours.discard(comm_id)

    def publish(self, comm: Any, data: Mapping[str, Any], buffers: Sequence[Any] = ()) -> None:
        """Send a message of a comm from any thread.

        Not through the comm: it takes the message that was handled last for the cause, needs the context of a cell's
        thread in some versions, and in others forgets the route.
        """
        kernel = self.kernel
        if kernel is None or not hasattr(kernel, "iopub_socket"):
            comm.send(data, buffers=list(buffers))
            return
        content = {"comm_id": comm.comm_id, "data": data}
        kernel.session.send(
            kernel.iopub_socket, "comm_msg", content, parent={}, ident=comm.topic, buffers=list(buffers)
        )

    # ---- the thread

    def _make_subshell(self) -> str | None:
        shell_thread = getattr(self.kernel, "shell_channel_thread", None)
        if shell_thread is None or not hasattr(shell_thread, "manager"):
            return None
        manager = shell_thread.manager
        made: Future[str] = Future()

        def make() -> None:
            try:
                made.set_result(manager._create_subshell())
                if not self._comm_decides():
                    self._lead_by_id()
            except Exception as error:
                made.set_exception(error)

        shell_thread.io_loop.add_callback(make)
        return made.result(PATIENCE)

    @staticmethod
    def _comm_decides() -> bool:
        from ipykernel.comm.comm import BaseComm

        return hasattr(BaseComm, "_reply_subshell_for")

    def _lead_by_id(self) -> None:
        """Put our thread's name into messages as they come from the socket; runs in the thread that receives them."""
        kernel = self.kernel
        assert kernel is not None
        stream, before = kernel.shell_stream, kernel.shell_channel_thread_main

        async def received(frames: Any) -> None:
            with contextlib.suppress(Exception):
                frames = self._led(frames)
            await before(frames)

        stream.on_recv(received, copy=False)

    def _led(self, frames: Any) -> Any:
        session = self.kernel.session  # type: ignore[union-attr]
        idents, rest = session.feed_identities(frames, copy=False)
        message = session.deserialize(rest, content=False, copy=False)  # so it is not remembered as seen
        if message["header"]["msg_type"] not in ("comm_msg", "comm_close"):
            return frames
        message["content"] = session.unpack(message["content"])
        if message["content"].get("comm_id") not in self._ours:
            return frames
        import zmq

        message["header"]["subshell_id"] = self._subshell
        parts = session.serialize(message, ident=idents)
        return [zmq.Frame(part) for part in parts] + list(message.get("buffers") or ())

    # ---- what the page believes

    def _watch_cells(self) -> None:
        self._ip.events.register("pre_run_cell", self._began)
        self._ip.events.register("post_run_cell", self._ended)
        self._began(None)  # the cell that made us runs

    def close(self) -> None:
        """Stop watching cells; the thread stays with the kernel."""
        for event, callback in (("pre_run_cell", self._began), ("post_run_cell", self._ended)):
            with contextlib.suppress(ValueError):
                self._ip.events.unregister(event, callback)

    def _began(self, _info: object) -> None:
        if threading.current_thread() is threading.main_thread():
            with self._lock, contextlib.suppress(Exception):
                self._cell = dict(self.kernel.get_parent("shell"))  # type: ignore[union-attr]

    def _ended(self, _result: object) -> None:
        if threading.current_thread() is threading.main_thread():
            with self._lock:
                self._cell = None

    def _restate(self) -> None:
        """Say again that the kernel is busy: the page takes the end of our handling for the end of the cell."""
        with self._lock:
            if self._cell is None or self._restating:
                return
            self._restating = True
        timer = threading.Timer(RESTATE_AFTER, self._restate_now)
        timer.daemon = True
        timer.start()

    def _restate_now(self) -> None:
        with self._lock, contextlib.suppress(Exception):
            self._restating = False
            if self._cell is not None:  # under the lock, so that it comes before the cell's own end
                kernel = self.kernel
                kernel.session.send(  # type: ignore[union-attr]
                    kernel.iopub_socket,  # type: ignore[union-attr]
                    "status",
                    {"execution_state": "busy"},
                    parent=self._cell,
                    ident=kernel._topic("status"),  # type: ignore[union-attr]
                )
