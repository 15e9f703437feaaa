"""A page at the other end of a real kernel, without a browser: widget models and their views."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from typing import Any

LIMIT = 20.0


class PageModel:
    """One widget model as a page holds it, with one view."""

    def __init__(self, comm_id: str, state: dict[str, Any]) -> None:
        self.comm_id, self.state = comm_id, state
        self.position, self.data = -1, b""
        self.messages: list[Mapping[str, Any]] = []


class Page:
    """Takes in what a kernel publishes, and answers as a view does. For one thread."""

    def __init__(self, client: Any) -> None:
        self.client = client
        self.models: list[PageModel] = []
        self.statuses: list[tuple[str, str]] = []
        """(state, id of the request that it belongs to), as they came."""
        self.updates: list[Mapping[str, Any]] = []
        self.outputs: list[tuple[str, Mapping[str, Any]]] = []
        """What our cells show now: (kind, content), after all ``clear_output``."""
        self._cells: set[str] = set()
        self._clear = False
        self.hooks = 0

    def execute(self, code: str) -> str:
        """Begin to run a cell as a person's front end does; its id."""
        cell = str(self.client.execute(code, allow_stdin=True))
        self._cells.add(cell)
        return cell

    def send(self, model: PageModel, content: Mapping[str, Any]) -> str:
        """Send a custom message, as a page does that knows nothing of subshells; its id."""
        data = {"comm_id": model.comm_id, "data": {"method": "custom", "content": content}}
        message = self.client.session.msg("comm_msg", data)
        self.client.shell_channel.send(message)
        return str(message["header"]["msg_id"])

    def sync(self, model: PageModel) -> None:
        """Ask for the output."""
        self.send(model, {"t": "sync", "view": "v", "from": model.position, "s": 1})

    def until(self, true: Callable[[], object], limit: float = LIMIT) -> None:
        """Take messages in until something is true."""
        deadline = time.monotonic() + limit
        while not true():
            left = deadline - time.monotonic()
            assert left > 0, "it did not come in time"
            if self.client.iopub_channel.socket.poll(min(left, 0.1) * 1000):
                self._take(self.client.get_iopub_msg(timeout=1))

    def _take(self, message: Mapping[str, Any]) -> None:
        kind, content = message["msg_type"], message["content"]
        if kind == "comm_open" and content["data"].get("state", {}).get("_model_name") == "AnyModel":
            self.models.append(PageModel(content["comm_id"], content["data"]["state"]))
        elif kind == "status":
            self.statuses.append((content["execution_state"], message["parent_header"].get("msg_id", "")))
        elif (
            kind in ("clear_output", "stream", "display_data") and message["parent_header"].get("msg_id") in self._cells
        ):
            self._show(kind, content)
        elif kind == "update_display_data":
            self.updates.append(content["data"])
        elif kind == "comm_msg":
            for model in self.models:
                if model.comm_id == content["comm_id"]:
                    self._for_model(model, content["data"], message["buffers"])

    def _show(self, kind: str, content: Mapping[str, Any]) -> None:
        if kind == "clear_output" and content["wait"]:
            self._clear = True
            return
        if kind == "clear_output" or self._clear:
            self.outputs.clear()
        self._clear = False
        if kind != "clear_output":
            self.outputs.append((kind, content))

    def _for_model(self, model: PageModel, data: Mapping[str, Any], buffers: list[Any]) -> None:
        if data["method"] == "update":
            model.state.update(data["state"])
            return
        custom = data["content"]
        model.messages.append(custom)
        if custom["t"] == "o":
            if custom.get("reset"):
                model.position, model.data = custom["p"], b""
            assert custom["p"] == model.position
            model.position, model.data = custom["o"] + len(buffers[0]), model.data + bytes(buffers[0])
            self.send(model, {"t": "ack", "view": "v", "n": model.position})
