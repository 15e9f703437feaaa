"""Taking out of a program's output what would make a terminal answer.

A terminal that shows a session is not the one that the program asked: its answers would be typed into the program, a
second time or long after the question. Whoever holds the session answers. All else passes unchanged.
"""

from __future__ import annotations

import re

STRING_LIMIT = 64 * 1024
"""Bytes of an OSC string that are kept back until its end is seen; longer ones are clipboards and files."""
HEAD_LIMIT = 64
"""Bytes at the beginning of a DCS string that say what it is."""
CSI_LIMIT = 1024
"""Bytes of parameters after which a CSI sequence is no sequence."""

# A control character within a sequence is carried out by terminals, and the sequence goes on.
_C0 = rb"[\x00-\x17\x19\x1c-\x1f\x7f]"
_UTF8 = rb"\xc2[\xa0-\xbf]|[\xc3-\xdf][\x80-\xbf]|[\xe0-\xef][\x80-\xbf]{2}|[\xf0-\xf4][\x80-\xbf]{3}"
_UTF8_CUT = rb"[\xc2-\xf4]|[\xe0-\xef][\x80-\xbf]|[\xf0-\xf4][\x80-\xbf]{1,2}"
_ODD = rb"\xc2(?![\x80-\x9f])|[\xa0-\xc1\xc3-\xff]"  # no UTF-8, and no control either
_USUAL = rb"\x1b\[[0-9;:]*+[@-HJ-MPSTXZ`abd-hlmrsu]"  # most of what comes, in one go
_PLAIN = re.compile(rb"(?:[^\x05\x1b\x80-\xff]++|%b|%b|%b)++" % (_USUAL, _UTF8, _ODD))
_CUT = re.compile(rb"(?:%b)\Z" % _UTF8_CUT)
# Each C1 control has three forms: ESC and a letter, one byte, and that byte as a character of UTF-8.
_ESC = rb"\x1b%b*+" % _C0
_CSI = re.compile(rb"(?:%b\[|\xc2?\x9b)([\x00-\x17\x19\x1c-\x3f\x7f]{0,%d}+)([@-~]?)" % (_ESC, CSI_LIMIT))
_STRING = re.compile(rb"(?:%b([P\]X^_])|\xc2?([\x90\x9d\x98\x9e\x9f]))" % _ESC)
_IDENTIFY = re.compile(rb"\xc2?\x9a|\x05")
_OTHER = re.compile(rb"%b([ -/]*+)%b*+([0-~]?)" % (_ESC, _C0))
_BODY = re.compile(rb"(?:[^\x07\x18\x1a\x1b\x80-\xff]++|%b|%b)*+" % (_UTF8, _ODD))
_BODY_WITH_BELL = re.compile(rb"(?:[^\x18\x1a\x1b\x80-\xff]++|%b|%b)*+" % (_UTF8, _ODD))
_END = re.compile(rb"\x1b\\|\xc2?\x9c|[\x07\x18\x1a]")

_KINDS = {0x90: b"P", 0x9D: b"]", 0x98: b"X", 0x9E: b"^", 0x9F: b"_"}
_PARTS = re.compile(rb"([<-?]?)([0-9:;]*)([ -/]*)")
_DROPPED = bytes({*range(32), 127})
_NO_CONTROLS = bytes({5, 27, *range(32, 256)})
_REPORTS = frozenset((b"11", b"13", b"14", b"15", b"16", b"18", b"19", b"20", b"21"))
"""Window operations that are answered."""
_ASKING = frozenset(
    (
        *((b"", b"c"), (b">", b"c"), (b"=", b"c")),  # what are you
        *((b"", b"n"), (b"?", b"n"), (b"", b"x")),  # state, where is the cursor
        *((b">", b"q"), (b"> ", b"q"), (b"?", b"u")),  # version, keyboard
        *((b"$", b"p"), (b"?$", b"p"), (b"$", b"u"), (b"$", b"w"), (b"*", b"y"), (b"'", b"|")),  # modes, settings
        *((b'"', b"v"), (b"&", b"u"), (b"+", b"x"), (b",", b"x"), (b",", b"u"), (b"+", b"p")),  # keys, pages
        *((b"#", b"R"), (b"#", b"|"), (b"?", b"S"), (b"?", b"m"), (b"?", b"f")),  # colours, graphics, key formats
    )
)
"""(Private marker and intermediates, final byte) of CSI sequences that are answered."""
_ANSWERED_MODES = {b"h": frozenset((b"2048",)), b"l": frozenset((b"2",))}
"""Private modes that must not be set or reset: reports of the size begin with an answer, and after ?2l the terminal
reads its input in another way, that of a VT52."""
_TEXTS = frozenset((b"0", b"1", b"2", b"7", b"8", b"9", b"133", b"633", b"777", b"l", b"L", b"I"))
"""OSC strings that carry text for people, in which a question mark asks nothing."""
_TALKS = frozenset((b"60", b"61", b"5113", b"5522"))
"""OSC strings that terminals answer whatever they say: features, transfer of files, clipboards."""
_LONG = frozenset((b"52", b"1337"))
"""OSC strings that may be long: a clipboard, a picture."""
_ASKING_DATA = re.compile(
    rb";(?:\?|[^;]*=\?(?:;|\Z))|\A1337;(?:Report|Request|Capabilities)|\A99;.*(?:c=1|report)", re.S
)
_ASKING_DCS = re.compile(rb"[0-9;:<-?]*(?:\$q|\+[qQ])|tmux;")


class QueryFilter:
    """Takes output piece by piece, cut anywhere, and hands on all of it but the questions.

    A sequence that is not whole yet waits for the rest. One that is malformed is left out, as terminals do.
    """

    def __init__(self) -> None:
        self._kept = b""
        self._string: bool | None = None
        """Within a string that is longer than what is kept back: whether it passes. None: within none."""
        self._kind = b""

    def feed(self, data: bytes) -> bytes:
        """Take bytes; those that may go to a terminal now."""
        if not self._kept and self._string is None and b"\x1b" not in data and b"\x05" not in data and data.isascii():
            return data
        data = self._kept + data
        cut = _CUT.search(data, max(0, len(data) - 3))  # a character that is not whole is no control
        data, tail = (data[: cut.start()], cut[0]) if cut is not None else (data, b"")
        self._kept = b""
        out: list[bytes] = []
        at = 0
        while 0 <= at < len(data):
            at = self._within(data, at, out) if self._string is not None else self._step(data, at, out)
        self._kept += tail
        return b"".join(out)

    @property
    def inside(self) -> bool:
        """Whether the terminal has been given the beginning of a string without its end."""
        return bool(self._string)

    def _step(self, data: bytes, at: int, out: list[bytes]) -> int:
        """Deal with what begins at ``at``; where to go on, or -1 when the rest is kept back."""
        plain = _PLAIN.match(data, at)
        if plain is not None:
            out.append(plain[0])
            return plain.end()
        for pattern, deal in ((_CSI, self._csi), (_STRING, self._begin_string), (_OTHER, self._other)):
            found = pattern.match(data, at)
            if found is not None:
                return deal(found, data, out)
        # ENQ and C1's 9A ask what the terminal is; other C1 controls are no introducers.
        asks = _IDENTIFY.match(data, at)
        if asks is None:
            out.append(data[at : at + 1])
        return asks.end() if asks is not None else at + 1

    def _keep(self, data: bytes, at: int) -> int:
        self._kept = data[at:]
        return -1

    def _csi(self, found: re.Match[bytes], data: bytes, out: list[bytes]) -> int:
        body, final = found.groups()
        if not final:
            if found.end() == len(data) and len(body) < CSI_LIMIT:
                return self._keep(data, found.start())
            return found.end()  # malformed
        controls = found[0].translate(None, _NO_CONTROLS)
        parts = _PARTS.fullmatch(body.translate(None, _DROPPED))
        if parts is None:
            out.append(controls)
            return found.end()
        marker, numbers, between = parts.groups()
        if _asks(marker, numbers, between, final):
            out.append(controls)
        elif marker == b"?" and final in _ANSWERED_MODES and not _ANSWERED_MODES[final].isdisjoint(numbers.split(b";")):
            left = [number for number in numbers.split(b";") if number not in _ANSWERED_MODES[final]]
            out.append(controls + (b"\x1b[?" + b";".join(left) + final if left else b""))
        else:
            out.append(found[0].replace(b"\x05", b""))
        return found.end()

    def _other(self, found: re.Match[bytes], data: bytes, out: list[bytes]) -> int:
        between, final = found.groups()
        if not final:
            return self._keep(data, found.start()) if found.end() == len(data) else found.end()
        # ESC Z asks what the terminal is. ESC % @ leaves UTF-8, so that other bytes would be controls.
        if final != b"Z" and not between.startswith(b"%"):
            out.append(found[0].replace(b"\x05", b""))
        return found.end()

    # ---- strings

    def _begin_string(self, found: re.Match[bytes], data: bytes, out: list[bytes]) -> int:
        kind = found[1] or _KINDS[found[2][0]]
        body = (_BODY if kind == b"]" else _BODY_WITH_BELL).match(data, found.end())
        assert body is not None  # it may be empty
        ended = body.end() < len(data) and data[body.end() :] != b"\x1b"
        limit = STRING_LIMIT if kind == b"]" else HEAD_LIMIT
        if not ended and len(body[0]) < limit:
            return self._keep(data, found.start())
        self._kind, self._string = kind, _string_passes(kind, body[0], whole=ended)
        if self._string:
            out.append(data[found.start() : found.end()].replace(b"\x05", b""))
        return found.end()

    def _within(self, data: bytes, at: int, out: list[bytes]) -> int:
        """Go on with a string, of which it is known whether it passes."""
        body = (_BODY if self._kind == b"]" else _BODY_WITH_BELL).match(data, at)
        assert body is not None
        end = body.end()
        if self._string:
            out.append(body[0].replace(b"\x05", b""))
        if end == len(data) or data[end:] == b"\x1b":
            return self._keep(data, end)
        over = _END.match(data, end)
        if over is not None and self._string:
            out.append(over[0])
        self._string = None
        return over.end() if over is not None else end  # anything else ends a string too, and is what it is


def _asks(marker: bytes, numbers: bytes, between: bytes, final: bytes) -> bool:
    if (marker + between, final) in _ASKING:
        return True
    return final == b"t" and not marker and not between and numbers.split(b";")[0].lstrip(b"0") in _REPORTS


def _string_passes(kind: bytes, body: bytes, *, whole: bool) -> bool:
    """Whether a string may go to the terminal; unless ``whole``, by its beginning."""
    body = body.translate(None, _DROPPED)
    if kind == b"P":
        return not _ASKING_DCS.match(body)
    if kind != b"]":
        return not (kind == b"_" and body[:1] == b"G")  # pictures of kitty, each of which is acknowledged
    number = body.partition(b";")[0].lstrip(b"0") or body[:1]
    if number in _TEXTS:
        return True
    return number not in _TALKS and (whole or number in _LONG) and not _ASKING_DATA.search(body)
