"""What ``tail -f`` prints of output as it comes."""

from __future__ import annotations

from session_magics.text import Append, LineModel, strip_styles

MODEL_LIMIT = 256 * 1024
"""Characters after which the model of the lines begins anew, in the middle of a line only if the line alone has as
many: it keeps all it was fed."""

KNOWN = 64
"""Characters before the line that is written, by which it is told whether what was printed is still there."""


class Follower:
    """Lines of text made of a program's bytes; ``live`` for a terminal, on which the last line can be written over.

    Elsewhere a line is printed once it is whole, and without its colours. Only the line that is being written can
    still change: what a program does further up is left to views that show a screen.
    """

    def __init__(self, *, live: bool) -> None:
        self._live = live
        self._model = LineModel(rows=1)
        self._done = 0
        self._last = self._known = ""

    def feed(self, data: bytes) -> str:
        """Take bytes in; what to print."""
        if self._model.size < MODEL_LIMIT:
            return self._feed(data)
        cut = data.rfind(b"\n") + 1
        printed = self._feed(data[:cut])
        if len(self._last) >= MODEL_LIMIT or not self._last:
            printed += "" if self._live else strip_styles(self._last)
            self._model.drop()
            self._done = 0
            self._last = self._known = ""
        return printed + self._feed(data[cut:])

    def _feed(self, data: bytes) -> str:
        self._model.feed(data)
        return self._changed()

    def _changed(self) -> str:
        change = self._model.take()
        if change is None:
            return ""
        if isinstance(change, Append):
            fresh, text = change.text, self._last + change.text
        else:
            if not change.text[: self._done].endswith(self._known):
                self._done = 0  # the program has cleared what was printed
            text = change.text[self._done :]
            fresh = f"\r\x1b[K{text}"
        lines, newline, self._last = text.rpartition("\n")
        whole = lines + newline
        self._done += len(whole)
        self._known = (self._known + whole)[-KNOWN:]
        return fresh if self._live else strip_styles(whole)

    def finish(self) -> str:
        """The end of the output; what is left to print."""
        self._model.finish()
        printed = self._changed()
        rest, self._last = self._last, ""
        if self._live:
            return printed + ("\n" if rest else "")
        return printed + (strip_styles(rest) + "\n" if rest else "")
