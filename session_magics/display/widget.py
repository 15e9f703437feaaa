"""What our widgets share: the stub that gets the code, messages from any thread, and the text that stands for them.

Imported when the first one is shown: the widget libraries take a tenth of a second to import.
"""

from __future__ import annotations

import functools
import gzip
import hashlib
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import anywidget
from comm import create_comm
from IPython.display import display
from ipywidgets import __protocol_version__
from ipywidgets.widgets.widget import _remove_buffers
from traitlets import Unicode

from session_magics.display.routing import Router
from session_magics.text import strip_styles

STATIC = Path(__file__).parent.parent / "static"
VIEW_TYPE = "application/vnd.jupyter.widget-view+json"
MARK = "session_magics"
"""Key of an output's metadata by which ours are known again."""


@functools.cache
def packed() -> tuple[str, bytes]:
    """The code of all views, packed, and a name that changes with it."""
    code = (STATIC / "page.js").read_bytes()
    return hashlib.sha256(code).hexdigest()[:12], gzip.compress(code, mtime=0)


@functools.cache
def stub() -> str:
    """What each widget carries, which gets the bundle."""
    return (STATIC / "stub.js").read_text("utf-8")


class LiveWidget(anywidget.AnyWidget):
    """One model, in any number of pages. What changes slowly is a trait; the rest comes as messages."""

    comm: Any  # a trait of ipywidgets
    bundle = Unicode().tag(sync=True)
    kind = Unicode().tag(sync=True)
    """What the view is: "session", "cell", "table" or "player"."""
    snapshot = Unicode().tag(sync=True)
    """The text to show until the code is there, or where it never comes."""

    def __init__(self, router: Router, **traits: object) -> None:
        self._router = router
        self.answered = False
        """Whether a page has this model."""
        self._displays: list[tuple[str, dict[str, Any]]] = []
        self._esm = stub()
        super().__init__(bundle=packed()[0], **traits)

    def open(self) -> None:
        """Instead of ipywidgets' own, which tells the pages of a comm before anything of ours can be on it."""
        if self.comm is not None:
            return
        state, paths, buffers = _remove_buffers(self.get_state())
        comm = create_comm(target_name="jupyter.widget", primary=False)
        self._router.adopt(comm, self._take)
        self.comm = comm
        comm.open(
            data={"state": state, "buffer_paths": paths}, metadata={"version": __protocol_version__}, buffers=buffers
        )

    def received(self, content: Mapping[str, Any]) -> None:
        """Take in a message of a view, in the router's thread: it must not block."""
        raise NotImplementedError

    # ---- messages

    def _send(self, msg: Mapping[str, Any], buffers: Sequence[Any] | None = None) -> None:
        """What ipywidgets sends through; from any thread, which its own way does not allow."""
        if self.comm is not None:
            self._router.publish(self.comm, msg, buffers or ())

    def post(self, content: Mapping[str, Any], buffers: Sequence[bytes] = ()) -> None:
        """See Port."""
        self._send({"method": "custom", "content": content}, buffers)

    def _take(self, content: Mapping[str, Any], _buffers: Sequence[Any]) -> None:
        kind = content.get("t")
        self.answered = True
        if kind == "bundle":
            name, code = packed()
            self.post({"t": "bundle", "hash": name}, [code])
        elif kind not in ("hello", "nudge"):  # that these came was all that mattered
            self.received(content)

    # ---- in the notebook

    def present(self, still: str, metadata: Mapping[str, str]) -> None:
        """Display it in the cell that runs, with the text that stands for it; ``metadata`` says what it shows."""
        self.snapshot = strip_styles(still)
        kernel = self._router.kernel
        parent = dict(kernel.get_parent("shell")) if kernel is not None else {}
        self._metadata = {MARK: dict(metadata)}
        shown = display(self._data(still), raw=True, metadata=self._metadata, display_id=True)
        if shown is not None:
            self._displays.append((shown.display_id, parent))

    def replace_text(self, still: str) -> None:
        """Put another text into the notebook where it was displayed, from any thread."""
        self.snapshot = strip_styles(still)
        kernel = self._router.kernel
        if kernel is None:
            return
        for display_id, parent in list(self._displays):
            content = {
                "data": self._data(still),
                "metadata": self._metadata,
                "transient": {"display_id": display_id},
            }
            kernel.session.send(
                kernel.iopub_socket, "update_display_data", content, parent=parent, ident=kernel._topic("display_data")
            )

    def _data(self, still: str) -> dict[str, Any]:
        return {"text/plain": still, VIEW_TYPE: {"version_major": 2, "version_minor": 0, "model_id": self.model_id}}

    def close(self) -> None:
        """Take it out of every page; idempotent, as ipywidgets closes once more when the object goes."""
        if self.comm is not None:
            self._router.forget(self.comm.comm_id)
        super().close()
