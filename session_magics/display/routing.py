"""A thread of our own for the messages of our widgets, so that keys and Stop work while any cell runs.

ipykernel hands the messages of a page to the thread that runs cells, or to a thread that the page asked for if page
and kernel agree on it; which of the two a widget gets cannot be relied on. So one *subshell* (ipykernel's word for a
thread that handles messages) is made here, and what is for our widgets is led to it. All that is not public in
ipykernel is used in this module, in ``pump`` and in ``questions``, found by looking for it. Kernels without subshells
(ipykernel 6) have the pump: keys work while one of our magics waits. Where nothing is found, widgets work between
cells.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from session_magics.display.pump import Pump
from session_magics.display.questions import lead

Handler = Callable[[Mapping[str, Any], Sequence[Any]], None]


class Router:
    """Leads the messages of comms to a thread of its own. For one kernel; ``adopt`` is called in the cell's thread."""

    def __init__(self, ip: Any, pump: Pump) -> None:
        self.kernel: Any = getattr(ip, "kernel", None)
        """The kernel; None in a terminal."""
        self._pump = pump
        self._cells = pump.questions.cells
        self._ours: set[str] = set()
        self._subshell: str | None = None  # a name that is used in the thread that receives messages alone
        self._manager: Any = None
        with contextlib.suppress(Exception):  # another ipykernel than those that we know
            receiver = ip.kernel.shell_channel_thread
            if not _comm_decides():
                receiver.io_loop.add_callback(lead, ip.kernel, self._led)
            self._manager = receiver.manager

    def adopt(self, comm: Any, handler: Handler) -> None:
        """Have ``handler`` called with (content, buffers) for each custom message of a widget's comm, not yet open.

        It is called in a thread of ours or in that of the cells, and must not block. Other messages are handled as
        before.
        """

        def handle(message: Mapping[str, Any]) -> None:
            # Instead of comm.handle_msg, which runs IPython's hooks for every message as if it were a cell.
            data = message["content"]["data"]
            try:
                if data.get("method") == "custom":
                    handler(data["content"], message.get("buffers") or ())
                elif (usual := getattr(comm, "_msg_callback", None)) is not None:  # what ipywidgets registers
                    usual(message)
            finally:
                self._cells.restate()

        comm.handle_msg = handle
        # ipykernel >= 7.4 asks the comm itself; for those before, the messages are led by their comm's id.
        comm._reply_subshell_for = lambda data, default: self._thread(comm.comm_id) or default
        self._ours.add(comm.comm_id)
        self._pump.serve(comm.comm_id, handle)

    def forget(self, comm_id: str) -> None:
        """The comm is closed."""
        self._ours.discard(comm_id)
        self._pump.forget(comm_id)

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

    def close(self) -> None:
        """Lead nothing any more, and end the thread; widgets that are still shown work between cells."""
        for comm_id in list(self._ours):
            self.forget(comm_id)
        if self._manager is not None:
            self.kernel.shell_channel_thread.io_loop.add_callback(self._end_thread)

    # ---- in the thread that receives messages

    def _thread(self, comm_id: str) -> str | None:
        """The subshell that handles a comm's messages: made at the first one, and again if a page has deleted it."""
        if comm_id not in self._ours or self._manager is None:
            return None
        with contextlib.suppress(Exception):  # as above
            if self._subshell is None or self._subshell not in self._manager.list_subshell():
                self._subshell = self._manager._create_subshell()
            return self._subshell
        return None

    def _end_thread(self) -> None:
        subshell, self._subshell = self._subshell, None
        with contextlib.suppress(Exception):
            if subshell is not None:
                self._manager._delete_subshell(subshell)

    async def _led(self, frames: Any) -> Any:
        """Put our thread's name into messages as they come from the socket."""
        if not self._ours:
            return frames
        session = self.kernel.session
        idents, rest = session.feed_identities(frames, copy=False)
        message = session.deserialize(rest, content=False, copy=False)  # so it is not remembered as seen
        if message["header"]["msg_type"] not in ("comm_msg", "comm_close"):
            return frames
        message["content"] = session.unpack(message["content"])
        subshell = self._thread(message["content"].get("comm_id"))
        if subshell is None:
            return frames
        import zmq

        message["header"]["subshell_id"] = subshell
        parts = session.serialize(message, ident=idents)
        return [zmq.Frame(part) for part in parts] + list(message.get("buffers") or ())


def _comm_decides() -> bool:
    from ipykernel.comm.comm import BaseComm

    return hasattr(BaseComm, "_reply_subshell_for")
