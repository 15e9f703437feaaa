"""A Jupyter kernel whose plain cells are shell; the session is that of ``%%sh_session``.

All that makes a cell what it is comes from the extension, which is loaded here. This module turns Jupyter's requests
into calls of it, and sees to it that each request gets one reply.
"""

from __future__ import annotations

import contextlib
import functools
import importlib.metadata
import traceback
from collections.abc import Awaitable, Callable, Iterator
from pathlib import Path
from typing import Any

from ipykernel.ipkernel import IPythonKernel
from ipykernel.zmqshell import ZMQInteractiveShell
from IPython.core import page
from IPython.utils.capture import capture_output
from traitlets import Type

from session_magics.kernel import plaincells
from session_magics.kernel.gate import Gate
from session_magics.kernel.languages import language
from session_magics.magics import replies

HISTORY = "session_history.sqlite"
"""The file of the kernel's own history, so that it is not mixed with that of Python."""
ON_HERE = ("status_line", "displays")
"""Traits of the magics that are on in a shell kernel, unless a configuration says otherwise."""

Handler = Callable[[Any, Any, dict[str, Any]], Awaitable[None]]


class Shell(ZMQInteractiveShell):
    """IPython below a shell kernel: it has a history of its own, and can be told to show nothing."""

    silent = False

    def init_history(self) -> None:
        """See InteractiveShell."""
        if "hist_file" not in self.config.HistoryManager and self.profile_dir is not None:
            self.config.HistoryManager.hist_file = str(Path(self.profile_dir.location) / HISTORY)
        super().init_history()

    def _showtraceback(self, etype: Any, evalue: Any, stb: list[str]) -> None:
        if self.silent:
            self._last_traceback = stb  # the reply has it
        else:
            super()._showtraceback(etype, evalue, stb)


class ShellKernel(IPythonKernel):
    """See the module."""

    shell: Any
    shell_class = Type(Shell)
    implementation = "session-magics"
    implementation_version = importlib.metadata.version("session-magics")

    def __init__(self, **kwargs: Any) -> None:
        """Load the extension; the shell itself is started by the first cell."""
        self._gate = Gate()
        self._languages: dict[str, dict[str, object]] = {}
        self._magics: Any = None
        super().__init__(**kwargs)
        self.shell.ast_node_interactivity = "all"  # a line magic shows its value, also above shell text
        for trait in ON_HERE:
            self.shell.config.SessionMagics.setdefault(trait, True)
        self.shell.extension_manager.load_extension("session_magics")
        spoken = language(self.magics.shell_program)
        self.help_links = [{"text": f"{spoken.name} manual", "url": spoken.manual}]
        for handlers in (self.shell_handlers, self.control_handlers):
            for kind, handler in handlers.items():
                if kind.endswith("_request"):
                    handlers[kind] = functools.partial(self._answer, kind, handler)

    @property
    def magics(self) -> Any:
        """The extension's magics, which may be loaded anew; once they are unloaded, still the last ones."""
        self._magics = self.shell.magics_manager.registry.get("SessionMagics", self._magics)
        return self._magics

    def start(self) -> None:
        """See Kernel. From here on cells are shell: lines of a configuration, which were run before, are Python."""
        self.shell.input_transformers_cleanup.insert(0, plaincells.Transform(lambda cell: self.magics.asks_help(cell)))
        super().start()

    def show_help(self, word: str, detail: int = 0) -> None:
        """What a cell does that is ``NAME?`` alone, or with detail ``NAME??``."""
        found = self.magics.inspect(plaincells.LINE + word, len(plaincells.LINE) + len(word), detail)
        if found is None:
            print(f"nothing is known about {word!r}")
            return
        text = found["text/plain"]
        more = f" ({word}?? shows all)" if text.endswith("…") and not detail else ""
        page.page({**found, "text/plain": text + more})

    whole = staticmethod(plaincells.whole)
    asked = staticmethod(plaincells.asked)

    # ---- who we are

    @property
    def language_info(self) -> dict[str, Any]:  # type: ignore[override]
        """See Kernel. It follows the trait, which ``%config`` may set."""
        program = self.magics.shell_program
        if program not in self._languages:
            self._languages[program] = language(program).info(program)
        return self._languages[program]

    @property
    def banner(self) -> str:  # type: ignore[override]
        """See Kernel."""
        info = self.language_info
        return f"{info['name']} {info['version']} in a session ({self.implementation} {self.implementation_version})\n"

    @property
    def kernel_info(self) -> dict[str, Any]:
        """See Kernel. The debugger is one of Python."""
        info: dict[str, Any] = super().kernel_info
        features = info.get("supported_features", [])
        return {**info, "supported_features": [feature for feature in features if feature != "debugger"]}

    # ---- one reply for each request

    def pre_handler_hook(self) -> None:
        """See Kernel."""
        self._gate.enter()

    def post_handler_hook(self) -> None:
        """See Kernel."""
        self._gate.leave()

    async def _answer(self, kind: str, handler: Handler, stream: Any, ident: Any, parent: dict[str, Any]) -> None:
        """Handle a request, and reply with the error if that did not come to its reply."""
        try:
            await handler(stream, ident, parent)
        except (Exception, KeyboardInterrupt) as error:
            self.log.exception("%s failed", kind)
            if self.session:
                self.session.send(stream, f"{kind.removesuffix('request')}reply", _failure(error), parent, ident=ident)

    async def do_execute(self, code: str, silent: bool, *args: Any, **kwargs: Any) -> dict[str, Any]:
        """See Kernel."""
        try:
            with self._gate.opened(), self._quiet() if silent else contextlib.nullcontext():
                reply: dict[str, Any] = await super().do_execute(code, silent, *args, **kwargs)
            return reply
        except (Exception, KeyboardInterrupt) as error:
            return self._broken(error, silent)

    def _broken(self, error: BaseException, silent: bool) -> dict[str, Any]:
        """The reply for a cell that failed where IPython reports nothing."""
        failure = _failure(error)
        if not silent:
            content = {key: value for key, value in failure.items() if key != "status"}
            self.send_response(self.iopub_socket, "error", content, ident=self._topic("error"))
        count = self.shell.execution_count
        return {**failure, "execution_count": count, "user_expressions": {}, "payload": []}

    @contextlib.contextmanager
    def _quiet(self) -> Iterator[None]:
        """Publish nothing."""
        self.shell.silent = True
        try:
            with capture_output():
                yield
        finally:
            self.shell.silent = False

    # ---- what a front end asks about text

    async def do_complete(self, code: str, cursor_pos: int | None) -> dict[str, Any]:
        """See Kernel."""
        cursor = len(code) if cursor_pos is None else max(0, min(cursor_pos, len(code)))
        cell, at, start = self.asked(code, cursor)
        found = self.magics.complete(cell, at)
        if found is None:
            reply: dict[str, Any] = super().do_complete(code, cursor) if code[:1] == "%" else _nothing(cursor)
            return reply
        return replies.completed(found, start)

    async def do_inspect(
        self, code: str, cursor_pos: int, detail_level: int = 0, omit_sections: Any = ()
    ) -> dict[str, Any]:
        """See Kernel."""
        cell, at, _ = self.asked(code, cursor_pos)
        found = self.magics.inspect(cell, at, detail_level)
        if found is None and cell[:1] == "%" and not cell.startswith(plaincells.LINE):
            reply: dict[str, Any] = super().do_inspect(cell, at, detail_level, omit_sections)
            return reply
        return replies.inspected(found)

    async def do_is_complete(self, code: str) -> dict[str, Any]:
        """See Kernel."""
        cell = plaincells.parts(code)
        if not cell.plain:
            reply: dict[str, Any] = super().do_is_complete(code)
            return reply
        return replies.judged(*self.magics.is_complete(plaincells.LINE + cell.rest))

    def do_history(self, *args: Any, **kwargs: Any) -> Any:
        """See Kernel. IPython calls the session of now 0 where it gives a range; front ends know it by its number."""
        reply = super().do_history(*args, **kwargs)
        now = self.shell.history_manager.session_number
        return {**reply, "history": [(session or now, *entry) for session, *entry in reply["history"]]}


def _nothing(cursor: int) -> dict[str, Any]:
    return {"status": "ok", "matches": [], "cursor_start": cursor, "cursor_end": cursor, "metadata": {}}


def _failure(error: BaseException) -> dict[str, Any]:
    return {
        "status": "error",
        "ename": type(error).__name__,
        "evalue": str(error),
        "traceback": "".join(traceback.format_exception(error)).splitlines(),
    }
