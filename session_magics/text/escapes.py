"""Terminal escape sequences: where they begin and end in text, and what the styling ones (SGR) say.

A *style* is a string: the parameters of the one SGR sequence that sets it, in a fixed order ("1;31"), and
"" for the default. Equal looks are equal strings.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import lru_cache
from itertools import islice

STRING_LIMIT = 4096
"""Characters after which an OSC, DCS, PM, APC or SOS string without an end is given up: what was read of it
is dropped and text resumes. Titles, links and prompt marks are far shorter; a stray ESC ] (a binary file was
shown) must not swallow the rest of the output."""
PARAMETER_LIMIT = 256
"""Characters of parameters in a CSI sequence; xterm stops at 30 numbers."""
NUMBER_LIMIT = 2000
"""Greatest number taken from a parameter: the widest terminal a session may have."""

RESET = "\x1b[0m"

_CONTROLS = r"\x00-\x08\x0b-\x1f\x7f-\x9f"
_DROPPED = r"\x00-\x07\x0b\x0c\x0e-\x1a\x1c-\x1f\x7f-\x9f"
_CSI = rf"\[[0-?]{{0,{PARAMETER_LIMIT}}}[ -/]{{0,16}}"
_OSC = rf"\][^\x07\x18\x1a\x1b\x9c]{{0,{STRING_LIMIT}}}"
_DCS = rf"[PX^_][^\x18\x1a\x1b\x9c]{{0,{STRING_LIMIT}}}"
_OTHER = r"[ -/]{0,16}"
# The pattern begins with one character class, as the engine then skips plain text several times faster
# than by trying alternatives; the look-behinds tell which character it was. Any ESC ends a string, so ESC \
# does: what is left of it is a sequence that means nothing.
_CONTROL = re.compile(
    rf"""([{_CONTROLS}](?:
        (?<=\x1b)(?:{_CSI}[@-~]?
                  | {_OSC}[\x07\x18\x1a\x9c]?
                  | {_DCS}[\x18\x1a\x9c]?
                  | {_OTHER}[0-~]?)
      | (?<=\r)\r*\n?
      | (?<=\x08)\x08*
      | (?<=[{_DROPPED}])[{_DROPPED}]*)?)""",
    re.VERBOSE,
)
_UNFINISHED = re.compile(rf"\x1b(?:{_CSI}|{_OSC}|{_DCS}|{_OTHER})")
_C1 = re.compile(r"[\x80-\x9f]")
_NUMBERS = re.compile(r"[0-9;:]*")
_SGR = re.compile(r"\x1b\[([0-9;:]*)m")

_ATTRIBUTES = {1: "1", 2: "2", 3: "3", 4: "4", 5: "5", 6: "5", 7: "7", 8: "8", 9: "9", 21: "4"}
_OFF = {22: "12", 23: "3", 24: "4", 25: "5", 27: "7", 28: "8", 29: "9", 39: "f", 49: "b"}
_COLOURS = {38: "f", 48: "b"}
_SLOTS = "12345789fb"
_UNDERLINE_COLOUR = 58


def split(text: str) -> tuple[list[str], str]:
    """Part text into plain pieces and controls, alternating, a plain piece (perhaps empty) first and last.

    A control is an escape sequence, or a run of CRs (with the LF after it, if any), of BSs, or of characters
    that mean nothing; TAB and LF are plain. A sequence that is cut off by the end of the text is left out and
    returned as the second value: to be put before the text that follows. A malformed sequence is a control as far
    as it goes.
    """
    pieces = _CONTROL.split(text)
    if len(pieces) > 1 and not pieces[-1] and _UNFINISHED.fullmatch(pieces[-2]):
        pending = pieces[-2]
        del pieces[-2:]
        return pieces, pending
    return pieces, ""


def has_c1(text: str) -> bool:
    """Whether text has one of the control characters U+0080 to U+009F."""
    return not text.isascii() and _C1.search(text) is not None


def parse_csi(control: str) -> tuple[str, list[int], str] | None:
    """Read a CSI sequence as (private marker or "", numbers, final character); an absent number is 0.

    None for any other control, and for a CSI sequence that is malformed or has intermediate characters.
    """
    if not control.startswith("\x1b[") or len(control) < 3 or not "@" <= control[-1] <= "~":
        return None
    marker = control[2] if control[2] in "<=>?" else ""
    body = control[2 + len(marker) : -1]
    if not _NUMBERS.fullmatch(body):
        return None
    numbers = [min(int(number or 0), NUMBER_LIMIT) for number in body.replace(":", ";").split(";")]
    return marker, numbers, control[-1]


@lru_cache(maxsize=4096)
def restyle(style: str, control: str) -> str:
    """Return the style that an SGR sequence makes of a style; any other control leaves it as it is.

    Blink is one speed, underline one kind; fonts, overline and the colour of underlines are left out.
    """
    match = _SGR.fullmatch(control)
    if match is None:
        return style
    slots: dict[str, str] = {}
    if style:
        _apply(slots, style)
    _apply(slots, match[1])
    return ";".join(slots[slot] for slot in _SLOTS if slot in slots)


def shift(old: str, new: str) -> str:
    """Return the shortest uniform sequence that turns one style into another."""
    if old == new:
        return ""
    if not new:
        return RESET
    return f"\x1b[0;{new}m" if old else f"\x1b[{new}m"


def parse_styled(text: str) -> Iterator[tuple[str, str]]:
    """Part text whose only sequences were made by ``shift`` into runs (style, characters)."""
    pieces = _SGR.split(text)
    style = ""
    for at in range(0, len(pieces), 2):
        if at:
            style = pieces[at - 1].removeprefix("0").removeprefix(";")
        if pieces[at]:
            yield style, pieces[at]


def strip_styles(text: str) -> str:
    """Return text without its SGR sequences."""
    return _SGR.sub("", text) if "\x1b" in text else text


def _apply(slots: dict[str, str], body: str) -> None:
    parameters = iter(body.split(";"))
    for parameter in parameters:
        head, *sub = parameter.split(":")
        code = int(head or 0)
        if code in _COLOURS or code == _UNDERLINE_COLOUR:
            colour = _sub_colour(sub) if sub else _next_colour(parameters)
            if colour and code in _COLOURS:
                slots[_COLOURS[code]] = f"{code};{colour}"
        elif code == 0:
            slots.clear()
        elif code in _OFF or (code == 4 and sub == ["0"]):
            for slot in _OFF.get(code, "4"):
                slots.pop(slot, None)
        elif code in _ATTRIBUTES:
            slots[_ATTRIBUTES[code]] = _ATTRIBUTES[code]
        elif 30 <= code <= 37 or 90 <= code <= 97:
            slots["f"] = str(code)
        elif 40 <= code <= 47 or 100 <= code <= 107:
            slots["b"] = str(code)


def _next_colour(parameters: Iterator[str]) -> str:
    """The colour in the form 38;5;N or 38;2;R;G;B, of which 38 is read."""
    kind = next(parameters, "")
    return _colour(kind, list(islice(parameters, {"5": 1, "2": 3}.get(kind, 0))))


def _sub_colour(sub: list[str]) -> str:
    """The colour in the form 38:5:N, 38:2:R:G:B or 38:2:SPACE:R:G:B."""
    if sub[0] == "5":
        return _colour("5", sub[1:2])
    return _colour(sub[0], sub[2:5] if len(sub) > 4 else sub[1:4])


def _colour(kind: str, values: list[str]) -> str:
    numbers = [int(value or 0) for value in values if ":" not in value]
    if len(numbers) != {"5": 1, "2": 3}.get(kind) or max(numbers) > 255:
        return ""
    return ";".join(map(str, (int(kind), *numbers)))
