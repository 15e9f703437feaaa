"""What a front end asks about the text of a cell while a magic of ours runs, answered by a thread of our own.

ipykernel has the thread that runs cells answer, so that nobody who writes the next cell is helped before the present
one has ended. Here such requests are taken out as they come from the socket: in ipykernel 7 from the thread that
receives messages, in ipykernel 6 by the pump. What is not ours to answer is handed on, and waits as ever.
"""

from __future__ import annotations

import asyncio
import contextlib
import time
from collections.abc import Awaitable, Callable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from typing import Any

from session_magics.display.busy import RunningCell

Answer = Callable[[str, Mapping[str, Any]], "dict[str, Any] | None"]
"""From the kind and the content of a request to the content of its reply; None: the kernel is to answer."""
Lead = Callable[[Any], Awaitable[Any]]
"""From the frames of a message to those that the kernel gets; None: it gets nothing."""
BEGIN_LIMIT, BEGIN_STEP = 0.1, 0.005
"""Seconds that a question is kept for a cell that has been handed to the kernel and may be ours, and between looks."""
KINDS = ("complete_request", "inspect_request", "is_complete_request")


class Questions:
    """For one kernel; ``running`` is entered in the thread of the cells."""

    def __init__(self, ip: Any, answer: Answer) -> None:
        self._ip = ip
        self._kernel: Any = getattr(ip, "kernel", None)
        self._answer = answer
        self._cells: RunningCell | None = None
        self._open = self._led = self._closed = False
        self._soon = 0.0  # until then (of time.monotonic) a cell of ours may begin
        self._thread = ThreadPoolExecutor(1, "answers about cells")  # begun with the first question

    @property
    def cells(self) -> RunningCell:
        """What sees to the busy indicator; to be made while a cell runs."""
        if self._cells is None:
            self._cells = RunningCell(self._ip)
        return self._cells

    @contextlib.contextmanager
    def running(self) -> Iterator[None]:
        """The time in which questions do not wait."""
        if self._kernel is not None and self.cells is not None:
            self._lead()
        self._open = True
        try:
            yield
        finally:
            self._soon = time.monotonic() + BEGIN_LIMIT  # there may be another cell to come
            self._open = False

    def close(self) -> None:
        """Answer nothing any more."""
        self._closed = True
        self._thread.shutdown(wait=False)
        if self._cells is not None:
            self._cells.close()

    def answered(self, stream: Any, idents: Any, request: Mapping[str, Any]) -> bool:
        """Answer a request, in the thread that may use the stream; whether that was done."""
        content = self._content(request)
        if content is not None:
            self._send(stream, idents, request, content)
        return content is not None

    def say(self, state: str, cause: Mapping[str, Any]) -> None:
        """Publish that a message is being handled, or was."""
        kernel = self._kernel
        kernel.session.send(
            kernel.iopub_socket, "status", {"execution_state": state}, parent=cause, ident=kernel._topic("status")
        )

    def _content(self, request: Mapping[str, Any]) -> dict[str, Any] | None:
        """The content of the reply."""
        kind = request["header"]["msg_type"]
        with contextlib.suppress(Exception):  # whatever fails here, the kernel says what is wrong
            return self._answer(kind, request["content"]) if kind in KINDS else None
        return None

    def _send(self, stream: Any, idents: Any, request: Mapping[str, Any], content: dict[str, Any]) -> None:
        kind = request["header"]["msg_type"].removesuffix("request")
        self.say("busy", request)
        self._kernel.session.send(stream, f"{kind}reply", content, request, ident=idents)
        self.say("idle", request)
        self.cells.restate(at_once=True)

    # ---- ipykernel 7

    def _lead(self) -> None:
        receiver = getattr(self._kernel, "shell_channel_thread", None)
        if receiver is not None and not self._led:
            self._led = True
            with contextlib.suppress(Exception):  # another ipykernel than those that we know
                receiver.io_loop.add_callback(lead, self._kernel, self._aside)

    async def _aside(self, frames: Any) -> Any:
        if self._closed:
            return frames
        session = self._kernel.session
        idents, parts = session.feed_identities(frames, copy=False)
        request = session.deserialize(parts, content=False, copy=False)  # so it is not remembered as seen
        if request["header"]["msg_type"] == "execute_request":
            self._soon = time.monotonic() + BEGIN_LIMIT
        if request["header"]["msg_type"] not in KINDS or request["header"].get("subshell_id") is not None:
            return frames
        while not self._open:
            if time.monotonic() >= self._soon:
                return frames
            await asyncio.sleep(BEGIN_STEP)
        request["content"] = session.unpack(request["content"])
        content = await asyncio.wrap_future(self._thread.submit(self._content, request))
        if content is None:
            return frames
        with contextlib.suppress(Exception):  # as above, and there may be a reply already
            self._send(self._kernel.shell_stream, idents, request, content)
        return None


def lead(kernel: Any, led: Lead) -> None:
    """Have messages pass ``led`` before the kernel of ipykernel 7 gets them; in the thread that receives them."""
    with contextlib.suppress(Exception):  # another ipykernel than those that we know
        stream, before = kernel.shell_stream, kernel.shell_channel_thread_main
        manager = kernel.shell_channel_thread.manager
        if hasattr(manager, "_shell_socket"):
            # Replies were sent around the stream, which then at times does not notice the next message.
            manager._shell_socket = stream

        async def received(frames: Any) -> None:
            with contextlib.suppress(Exception):
                frames = await led(frames)
            if frames is not None:
                await before(frames)

        kernel.__dict__["shell_channel_thread_main"] = received  # also for a kernel that is yet to start
        stream.on_recv(received, copy=False)
