"""What happens in a session as the events of a cast."""

from __future__ import annotations

import codecs
import re
from collections.abc import Iterator

from session_magics.log import Event
from session_magics.recording.formats import CastEvent

NOTED = ("begin", "end", "resize", "restart", "exit")
"""Events of the index that a cast tells."""
TRAILING = 0.1
"""Seconds in which nothing happens at the end of a recording that are worth an event."""
_SWITCH = re.compile(r"\x1b\[\?(?:[0-9]+;)*(?:47|1047|1049)(?:;[0-9]+)*([hl])")
_CUT = re.compile(r"\x1b(?:\[(?:\?[0-9;]{0,32})?)?\Z")


class OutputText:
    """Decodes output piece by piece; a character is never cut.

    With ``returns`` LF becomes CR LF, as the terminal of a shell session leaves it alone. Programs that draw on the
    alternate screen know that, and mean "one row down".
    """

    def __init__(self, *, returns: bool) -> None:
        self._returns = returns
        self._decoder = codecs.getincrementaldecoder("utf-8")("replace")
        self._held = ""
        self._alternate = False

    def feed(self, data: bytes, *, final: bool = False) -> str:
        """Take bytes; the text that is certain now. ``final``: nothing comes after them."""
        text = self._held + self._decoder.decode(data, final)
        self._held = ""
        if not self._returns:
            return text
        cut = _CUT.search(text)
        if cut is not None and not final:
            text, self._held = text[: cut.start()], cut[0]
        made, at = [], 0
        for switch in _SWITCH.finditer(text):
            made.append(self._line_ends(text[at : switch.end()]))
            at, self._alternate = switch.end(), switch[1] == "h"
        return "".join([*made, self._line_ends(text[at:])])

    def _line_ends(self, text: str) -> str:
        return text if self._alternate else text.replace("\r\n", "\n").replace("\n", "\r\n")


class Transcript:
    """Makes events of one recording, whose times are counted from ``base`` (Unix time)."""

    def __init__(self, base: float, *, returns: bool) -> None:
        self.base = base
        self.last = 0.0
        """Seconds at which something has happened last."""
        self._told = 0.0
        self._text = OutputText(returns=returns)
        self._exit = ""

    def output(self, moment: float, data: bytes) -> Iterator[CastEvent]:
        """Output that came at a Unix time."""
        if text := self._text.feed(data):
            yield self._event(moment, "o", text)

    def gap(self, moment: float, count: int) -> Iterator[CastEvent]:
        """So many bytes are not in the log."""
        rest = self._text.feed(b"", final=True)
        yield self._event(moment, "o", f"{rest}\x1b[0m\r\n\x1b[2m… {count:,} bytes are missing …\x1b[0m\r\n")

    def note(self, event: Event, moment: float) -> Iterator[CastEvent]:
        """An event of the index."""
        data = event.data
        if event.kind == "begin":
            yield self._event(moment, "m", str(data.get("text", "")))
        elif event.kind == "restart":
            yield self._event(moment, "m", f"start {data.get('generation', '')}".rstrip())
            self._exit = ""
        elif event.kind == "resize" and (size := size_of(event)) is not None:
            yield self._event(moment, "r", f"{size[1]}x{size[0]}")
        elif event.kind == "exit":
            code, signal = data.get("code"), data.get("signal")
            status = code if isinstance(code, int) else 128 + signal if isinstance(signal, int) else ""
            self._exit = str(status)
        self.last = max(self.last, moment - self.base)

    def finish(self) -> Iterator[CastEvent]:
        """Nothing comes any more; only now is it known that an exit was the last."""
        rest = self._text.feed(b"", final=True)
        if rest or (self.last > self._told + TRAILING and not self._exit):
            yield CastEvent(self.last, "o", rest)  # without text it tells how long it has lasted
        if self._exit:
            yield CastEvent(self.last, "x", self._exit)

    def _event(self, moment: float, code: str, data: str) -> CastEvent:
        self.last = self._told = max(self.last, moment - self.base)
        return CastEvent(self.last, code, data)


def size_of(event: Event) -> tuple[int, int] | None:
    """The rows and columns that an event of a resize tells."""
    rows, columns = event.data.get("rows"), event.data.get("columns")
    return (rows, columns) if isinstance(rows, int) and isinstance(columns, int) else None
