from __future__ import annotations

import queue
from types import SimpleNamespace
from typing import Any

from rounds import DEADLINE
from session_magics.display.busy import RunningCell

CELL = {"header": {"msg_id": "cell", "msg_type": "execute_request"}}


class Events:
    """IPython's events, of which a test fires those of cells."""

    def __init__(self) -> None:
        self.callbacks: dict[str, Any] = {}

    def register(self, event: str, callback: Any) -> None:
        self.callbacks[event] = callback

    def unregister(self, event: str, callback: Any) -> None:
        if self.callbacks.pop(event, None) != callback:
            raise ValueError(event)


def test_the_page_is_told_after_the_last_of_many_messages() -> None:
    told: queue.Queue[tuple[str, object]] = queue.Queue()
    kernel = SimpleNamespace(
        get_parent=lambda channel: CELL,
        iopub_socket=None,
        _topic=lambda name: name,
        session=SimpleNamespace(send=lambda *args, parent, **more: told.put((args[2]["execution_state"], parent))),
    )
    events = Events()
    cell = RunningCell(SimpleNamespace(kernel=kernel, events=events))
    cell.restate()
    for _ in range(2):  # the end of the message may come late
        assert told.get(timeout=DEADLINE) == ("busy", CELL)
    cell.restate()
    cell.restate()
    for _ in range(3):  # the second one may have ended just when the page was told for the first time
        assert told.get(timeout=DEADLINE) == ("busy", CELL)
    events.callbacks["post_run_cell"](None)
    cell.restate()
    cell.close()
    assert not events.callbacks
    assert told.empty()
