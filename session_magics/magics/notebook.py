"""The notebook at the other end: writing into a cell's output and asking the person, through ipykernel.

Messages are handed to the kernel's own output thread one by one instead of through ``print``: IPython keeps all that
is printed in memory, and a thread's prints go to whichever cell runs. All calls are for the thread of the cell,
except that a Page may be written to from one other thread (for ``--bg``).
"""

from __future__ import annotations

import contextlib
import getpass
import importlib.util
import os
import sys
import uuid
from collections.abc import Mapping, Sequence
from typing import Any

import zmq
from IPython.core.interactiveshell import InteractiveShell
from IPython.display import publish_display_data

from session_magics.display.cell import Writer
from session_magics.display.rich import Piece, Rich
from session_magics.foreground import EOF, Asker
from session_magics.magics.shellcell import ShellCell
from session_magics.text import strip_styles
from session_magics.verbs.progress import Show, on_terminal


class Page:
    """A Writer for one cell in a notebook front end."""

    live = True

    def __init__(self, stream: Any, *, clearable: bool) -> None:
        """Bind to the cell that runs now, whose output stays the target."""
        self.clearable = clearable
        self._session, self._thread = stream.session, stream.pub_thread
        self._parent, self._topic = dict(stream.parent_header), stream.topic
        self._notices: list[str] = []
        self._line = ""
        if not clearable:  # what was printed before in the same cell waits there for a fifth of a second
            stream.flush()
            with contextlib.suppress(AttributeError):
                sys.stderr.flush()

    def append(self, text: str) -> None:
        """See Writer."""
        self._send("stream", {"name": "stdout", "text": text})

    def rewrite(self, pieces: Sequence[Piece]) -> None:
        """See Writer."""
        self._send("clear_output", {"wait": bool(pieces or self._notices)})
        if self._notices:
            self._send("stream", {"name": "stderr", "text": "".join(self._notices)})
        for piece in pieces:
            if isinstance(piece, str):
                self.append(piece)
            else:
                self.display(piece)

    def display(self, rich: Rich, *, again: bool = False) -> None:
        """See Writer."""
        self._display(rich.data, rich.key, again=again)

    def notice(self, line: str) -> None:
        """See Writer."""
        self._notices.append(f"session-magics: {line}\n")
        self._send("stream", {"name": "stderr", "text": self._notices[-1]})

    def line(self, text: str, _last: bool) -> None:
        """See Progress."""
        again, self._line = bool(self._line), self._line or uuid.uuid4().hex
        self._display({"text/plain": text}, self._line, again=again)

    def _display(self, data: Mapping[str, str], key: str, *, again: bool) -> None:
        content = {"data": dict(data), "metadata": {}, "transient": {"display_id": key} if key else {}}
        self._send("update_display_data" if again else "display_data", content)

    def _send(self, kind: str, content: dict[str, Any]) -> None:
        message = self._session.msg(kind, content, parent=self._parent)
        self._session.send(self._thread, message, ident=self._topic)


class Captured:
    """A Writer where output is captured or redirected: everything once, at the end."""

    live = False
    clearable = False

    def __init__(self, stream: Any) -> None:
        """Bind to what stands for the output now; None: nothing does."""
        self._stream = stream

    def append(self, text: str) -> None:
        """See Writer."""
        if self._stream is None:
            return
        write = getattr(type(self._stream), "write", None)
        if write is not None:
            write(self._stream, text)  # an instance's own may be IPython's, which keeps all that is printed
        else:
            self._stream.write(text)

    def rewrite(self, pieces: Sequence[Piece]) -> None:
        """Never asked of a Writer that is not clearable."""
        raise NotImplementedError

    def display(self, rich: Rich, *, again: bool = False) -> None:
        """See Writer. Given to IPython, so that ``%%capture`` has it."""
        publish_display_data(dict(rich.data))

    def notice(self, line: str) -> None:
        """See Writer."""
        print(f"session-magics: {line}", file=sys.stderr)


class TerminalWriter(Captured):
    """A Writer in a terminal IPython: text as it comes."""

    live = True

    def append(self, text: str) -> None:
        """See Writer."""
        super().append(text)
        self._stream.flush()

    def display(self, rich: Rich, *, again: bool = False) -> None:
        """See Writer."""
        if not again:
            self.append(f"{rich.text}\n")


def writer(ip: InteractiveShell) -> Writer:
    """What the running cell's output is written with."""
    stream = sys.stdout
    if hasattr(stream, "pub_thread") and hasattr(stream, "session"):
        return Page(stream, clearable=_is_whole_cell(ip))
    if getattr(stream, "isatty", bool)():
        return TerminalWriter(stream)
    return Captured(stream)


def line(ip: InteractiveShell | None) -> Show | None:
    """What shows a line that changes, in the running cell or in a terminal; None where nobody would see it change."""
    stream = sys.stdout
    if hasattr(stream, "pub_thread") and hasattr(stream, "session"):
        return Page(stream, clearable=False).line if has_person(ip) else None
    if getattr(ip, "kernel", None) is None and getattr(sys.stderr, "isatty", bool)():
        return on_terminal(sys.stderr)
    return None


def _is_whole_cell(ip: InteractiveShell) -> bool:
    """Whether the cell that runs is a shell cell as a whole, so that all its output is ours."""
    with contextlib.suppress(Exception):  # an embedded or older kernel: then nothing may be cleared
        code = ip.kernel.get_parent("shell")["content"]["code"]  # type: ignore[attr-defined]
        whole = getattr(ip.kernel, "whole", str)  # type: ignore[attr-defined]  # a shell kernel knows plain cells
        return ShellCell.of(whole(code)) is not None
    return False


def has_person(ip: InteractiveShell | None) -> bool:
    """Whether a person with a page may be at the other end.

    Who runs a notebook as a program allows no input, which is how that is known; voila does so too and has a page.
    """
    kernel = getattr(ip, "kernel", None)
    if kernel is None:
        return False
    return bool(getattr(kernel, "_allow_stdin", False)) or os.environ.get("SERVER_SOFTWARE", "").startswith("voila")


def shows_widgets(ip: InteractiveShell | None) -> bool:
    """Whether a page that shows live widgets may be at the other end. Looks for a package, so not for every cell."""
    return has_person(ip) and importlib.util.find_spec("anywidget") is not None


class StdinAsker:
    """An Asker by Jupyter's ``input_request``, which does not block: the command may end meanwhile."""

    def __init__(self, kernel: Any) -> None:
        self._kernel = kernel
        self._question = ""

    def ask(self, prompt: str, *, masked: bool) -> None:
        """See Asker. Replies to earlier questions are thrown away."""
        kernel = self._kernel
        with contextlib.suppress(zmq.ZMQError):
            while True:
                kernel.stdin_socket.recv_multipart(zmq.NOBLOCK)
        parent = kernel.get_parent("shell")
        ident = _shell_ident(kernel)
        content = {"prompt": strip_styles(prompt), "password": masked}
        request = kernel.session.send(kernel.stdin_socket, "input_request", content, parent, ident=ident)
        self._question = request["header"]["msg_id"]

    def answer(self) -> str | None:
        """See Asker. Where the front end says which question it answers, an answer to an earlier one is passed over."""
        if not self._kernel.stdin_socket.poll(0):
            return None
        _, reply = self._kernel.session.recv(self._kernel.stdin_socket, zmq.NOBLOCK)
        if reply is None or reply["parent_header"].get("msg_id", self._question) != self._question:
            return None
        return str(reply["content"]["value"])


def _shell_ident(kernel: Any) -> Any:
    """The address of the front end that runs this cell, where the versions of ipykernel keep it."""
    if hasattr(kernel, "_get_shell_context_var"):
        return kernel._get_shell_context_var(kernel._shell_parent_ident)
    return kernel._parent_ident["shell"]


class TerminalAsker:
    """An Asker in a terminal IPython; it blocks until Enter."""

    def __init__(self) -> None:
        self._answer: str | None = None

    def ask(self, prompt: str, *, masked: bool) -> None:
        """See Asker."""
        try:
            self._answer = getpass.getpass("") if masked else input()
        except EOFError:
            self._answer = EOF

    def answer(self) -> str | None:
        """See Asker."""
        answer, self._answer = self._answer, None
        return answer


def asker(ip: InteractiveShell) -> Asker | None:
    """Who can answer questions of the running cell; None where nobody can."""
    kernel = getattr(ip, "kernel", None)
    if kernel is not None:
        return StdinAsker(kernel) if getattr(kernel, "_allow_stdin", False) else None
    return TerminalAsker() if sys.stdin is not None and sys.stdin.isatty() else None
