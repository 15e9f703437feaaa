"""What a program has switched on in its terminal, beside the characters it shows.

So that a terminal that comes later can be brought into the same state, and out of it again.
"""

from __future__ import annotations

import re

MODE_BYTES = 2 * 1024 * 1024
"""Bytes before the end of a log in which modes are looked for; takes 25 ms of a coloured log, 125 of a dense one."""
TITLE_LIMIT = 512
"""Bytes of a title."""
STACK_LIMIT = 32
"""Entries of the keyboard's stack of flags; kitty keeps fewer."""

_SEQUENCE = re.compile(
    rb"\x1b(?:"
    rb"\[(?P<private>\?)?(?P<numbers>[0-9;]*)(?P<set>[hl])"
    rb"|\[(?P<keyboard>[>=<])(?P<flags>[0-9;]*)u"
    rb"|\[>4(?:;(?P<other>[0-9]*))?m"
    rb"|\[(?P<cursor>[0-9]?) q"
    rb"|(?P<keypad>[=>])"
    rb"|\][02];(?P<title>[^\x07\x1b\x9c]{0,%d})(?:\x07|\x1b\\)"
    rb"|(?P<soft>\[!p)"
    rb"|(?P<hard>c)"
    rb")" % TITLE_LIMIT
)
_SCREENS = frozenset((47, 1047, 1049))
_ON_AT_FIRST = frozenset((7, 8, 25))
"""Private modes that a fresh terminal has set: wrapping, repeating keys, the cursor."""
_NOT_RESTORED = frozenset((2, 3, 40, 1048, 2026, *_SCREENS))
"""Modes that change the size, belong to one moment, or are the screens', which are told apart."""


class Modes:
    """The modes of a terminal, as the sequences that it was sent have made them; in the beginning those of a fresh one.

    Not known are the modes that a terminal has by its user's settings: ``leave`` assumes the usual ones.
    """

    def __init__(self) -> None:
        self._private: dict[int, bool] = {}
        self._ansi: dict[int, bool] = {}
        self._keyboard: list[int] = []
        self._other_keys = 0
        self._keypad = False
        self.cursor_style = 0
        self.title: bytes | None = None
        self.alternate = False
        """Whether the alternate screen is shown."""

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Modes) and vars(self) == vars(other)

    def see(self, data: bytes) -> None:
        """Take in output; sequences are whole, or else have no effect."""
        for found in _SEQUENCE.finditer(data):
            self._take(found)

    @property
    def origin(self) -> bool:
        """Whether rows are counted from the first one that scrolls."""
        return self._private.get(6, False)

    @property
    def inserts(self) -> bool:
        """Whether what is written moves the rest of the line."""
        return self._ansi.get(4, False)

    @property
    def cursor_shown(self) -> bool:
        """Whether the cursor is visible."""
        return self._private.get(25, True)

    def _take(self, found: re.Match[bytes]) -> None:
        match found.lastgroup:
            case "set":
                self._switch(found)
            case "flags":
                self._flag(found["keyboard"], [int(number or 0) for number in found["flags"].split(b";")])
            case "other":
                self._other_keys = int(found["other"] or 0)
            case "cursor":
                self.cursor_style = int(found["cursor"] or 0)
            case "keypad":
                self._keypad = found["keypad"] == b"="
            case "title":
                self.title = found["title"]
            case "soft":
                for mode in (1, 6, 7, 25):
                    self._private.pop(mode, None)
                self._ansi.clear()
                self._keypad = False
            case "hard":
                self.__init__()  # type: ignore[misc]
            case None:
                self._other_keys = 0  # ESC [ > 4 m

    def _switch(self, found: re.Match[bytes]) -> None:
        on = found["set"] == b"h"
        modes = self._private if found["private"] else self._ansi
        for number in found["numbers"].split(b";"):
            mode = int(number[:9] or 0)
            if found["private"] and mode in _SCREENS:
                self.alternate = on
            elif not (found["private"] and mode in _NOT_RESTORED):
                modes[mode] = on

    def _flag(self, how: bytes, numbers: list[int]) -> None:
        first = min(numbers[0], 255)
        if how == b">":
            self._keyboard = [*self._keyboard, first][-STACK_LIMIT:]
        elif how == b"<":
            del self._keyboard[-max(1, first) :]
        elif numbers[1:2] in ([], [1], [0]):
            self._keyboard[-1:] = [first]

    def enter(self) -> bytes:
        """What brings a fresh terminal, whose screen is drawn already, into these modes."""
        out = [_switched(b"?", mode, on) for mode, on in self._private.items() if on != (mode in _ON_AT_FIRST)]
        out += [_switched(b"", mode, on) for mode, on in self._ansi.items() if on]
        out += [b"\x1b[>%du" % flags for flags in self._keyboard]
        if self._other_keys:
            out.append(b"\x1b[>4;%dm" % self._other_keys)
        if self._keypad:
            out.append(b"\x1b=")
        if self.cursor_style:
            out.append(b"\x1b[%d q" % self.cursor_style)
        if self.title is not None:
            out.append(b"\x1b]2;%b\x07" % self.title)
        return b"".join(out)

    def leave(self) -> bytes:
        """What brings a terminal in these modes back to a fresh one's, and to its main screen."""
        # Letters are letters, no style, and the whole screen scrolls, which would send the cursor home.
        out = [b"\x0f\x1b(B\x1b[0m", b"\x1b[r" if self.alternate else b"\x1b7\x1b[r\x1b8"]
        out += [_switched(b"?", mode, not on) for mode, on in self._private.items() if on != (mode in _ON_AT_FIRST)]
        out += [_switched(b"", mode, not on) for mode, on in self._ansi.items() if on]
        if self._keyboard:
            out.append(b"\x1b[<%du" % len(self._keyboard))
        if self._other_keys:
            out.append(b"\x1b[>4m")
        if self._keypad:
            out.append(b"\x1b>")
        if self.cursor_style:
            out.append(b"\x1b[0 q")
        if self.alternate:
            out.append(b"\x1b[?1049l")
        return b"".join(out)


def _switched(marker: bytes, mode: int, on: bool) -> bytes:
    return b"\x1b[%b%d%b" % (marker, mode, b"h" if on else b"l")
