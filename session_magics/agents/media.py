"""Names of media files in what a terminal program prints.

Whether a name is that of a file is not asked here. Where the text leaves open how much of it is the name, a *mention*
has all that it could be, the longest first: ``"saved:/x/a.png"`` and ``"/x/a.png"``. The first that exists is meant.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from functools import lru_cache
from types import MappingProxyType
from urllib.parse import unquote

from session_magics.text.escapes import split

TYPES: Mapping[str, str] = MappingProxyType(
    {
        "png": "image/png",
        "jpg": "image/jpeg",
        "jpeg": "image/jpeg",
        "gif": "image/gif",
        "bmp": "image/bmp",
        "webp": "image/webp",
        "svg": "image/svg+xml",
        "ico": "image/x-icon",
        "tiff": "image/tiff",
        "tif": "image/tiff",
        "avif": "image/avif",
        "mp4": "video/mp4",
        "mov": "video/quicktime",
        "avi": "video/x-msvideo",
        "mkv": "video/x-matroska",
        "webm": "video/webm",
        "flv": "video/x-flv",
        "wmv": "video/x-ms-wmv",
        "m4v": "video/x-m4v",
        "ogv": "video/ogg",
    }
)
"""Extension, in lower case, to MIME type: fixed, as the tables of systems differ."""
PATH_BYTES = 4096
"""Longest name taken, as UTF-8: what Linux takes for a path, with the zero at its end."""
AROUND = 2 * PATH_BYTES
"""Bytes looked at before and behind an extension in a line without an end: a path, with colours in it."""
ALTERNATIVES = 8
"""Most that one mention could mean, so that a line full of commas stays cheap."""
_HIT_BYTES = 1024
"""Longest extension in bytes, with colours between its letters."""

Mention = tuple[str, ...]

_ESCAPE = rb"(?:\x1b(?:\[[0-?]{0,24}[@-~]|\([0-9A-Z]))"
_LETTERS = (_ESCAPE + b"{0,4}").join
# It only says where to look, and must be fast: text that is no candidate is left at the full stop or right behind it.
_HIT = re.compile(
    rb"\.(?=[\x1bpjgbwsitamfo])"
    + _ESCAPE
    + b"{0,4}(?:"
    + b"|".join(_LETTERS(re.escape(bytes((byte,))) for byte in extension.encode()) for extension in TYPES)
    + b")",
    re.I,
)
# What ends a line of the screen: also a move of the cursor.
_BREAK = re.compile(rb"[\r\n\x0b\x0c]|\x1b(?:\[[0-9;]{0,24}[ABEFGHadf`]|[78DEMc])")
_BLANK = re.compile(rb"[ \t\r\n]")
# Controls that leave a blank between what is before and behind them.
_GAP = re.compile(r"\x1b\[[0-9;]*[CDIPXZ@]|\x08+|[\r\v\f\n]+")
_LINK = re.compile(r"\x1b\]8;[^;]*;(.+?)[\x07\x9c]?", re.S)

_ENDING = rf"\.(?:{'|'.join(TYPES)})(?![A-Za-z0-9_~%/]|[.-][A-Za-z0-9_])"
_EXTENSION = re.compile(_ENDING, re.I)
_ESCAPED = r" ()\[\]{}&',$!#"
# Never part of a name without quotes: blanks, quotes of all kinds, and what frames, bullets and arrows are drawn with.
_OUTSIDE = (
    r"\s\"'`<>|;*\u2018-\u201d\u2022\u2190-\u21ff\u2300-\u23ff\u2500-\u25ff\u3000-\u3002\u3008-\u3011\u00ab\u00bb"
    r"\uff08\uff09\uff0c\uff1a\uff1b\ufffd"
)
_RUN = re.compile(rf"(?:\\[{_ESCAPED}]|[^{_OUTSIDE}])+")
_UNESCAPE = re.compile(rf"\\([{_ESCAPED}])")
# Either part of a name or before it.
_SOFT = re.compile(r"[,&=:@+\u2600-\u27bf\U0001f000-\U0001faff]+")
_LEADING = ",:&=!?#)]}"
_CLOSING = {")": "(", "]": "[", "}": "{"}
_CONTROL = re.compile(r"[\x00-\x1f\x7f-\x9f]")
_FILE = re.compile(r"(?:.*[^A-Za-z0-9+.-])?file", re.I | re.S)
_QUOTES = (('"', '"'), ("(?<![A-Za-z0-9])'", "'"), ("`", "`"), ("“", "”"), ("«", "»"), ("「", "」"))
_QUOTED = re.compile(
    "|".join(
        rf"{opening}(?=[^\s{closing}])([^{opening[-1]}{closing}]*{_ENDING})\\?{closing}" for opening, closing in _QUOTES
    ),
    re.I,
)


class MediaScanner:
    """Finds mentions in output that comes in pieces, cut anywhere; the result does not depend on the cuts.

    A mention is given once the line that it is in has ended, or once enough of the line is known.
    """

    def __init__(self) -> None:
        self._kept = b""
        self._position = 0
        self._partial = False

    def feed(self, data: bytes) -> list[Mention]:
        """Add output; the mentions that are certain now, in order."""
        if self._partial:
            blank = _BLANK.search(data)
            if blank is None:
                return []
            data, self._partial = data[blank.start() :], False
        buffer = self._kept + data if self._kept else data
        found, position = _walk(buffer, self._position, last=False)
        start = max(0, position - AROUND)
        self._kept, self._position = buffer[start:], position - start
        return found

    def rest(self) -> list[Mention]:
        """The mentions in the line that has not ended yet, as if it had; feeding may go on."""
        return _walk(self._kept, self._position, last=True)[0]

    def gap(self) -> None:
        """Output is missing here: what follows may begin within a name, which is then none."""
        self._kept, self._position, self._partial = b"", 0, True


def scan(data: bytes) -> list[Mention]:
    """Return the mentions in all of some output."""
    scanner = MediaScanner()
    return scanner.feed(data) + scanner.rest()


def mime_type(path: str) -> str | None:
    """Return the MIME type of a path by its extension; None if it is no medium."""
    return TYPES.get(path.rpartition(".")[2].lower())


def _walk(buffer: bytes, position: int, *, last: bool) -> tuple[list[Mention], int]:
    """Return the mentions behind a position, and the one to go on from when there is more."""
    found: list[Mention] = []
    while hit := _HIT.search(buffer, position):
        limit = hit.end() + AROUND
        ending = _BREAK.search(buffer, hit.end(), limit)
        if ending is None and len(buffer) <= limit and not last:
            return found, hit.start()
        end = ending.start() if ending else min(limit, len(buffer))
        if ending is None and limit < len(buffer):
            end = max(buffer.rfind(b" ", hit.end(), end), hit.end()) if b" " in buffer[hit.end() : end] else end
        found += _mentions(buffer[_line_start(buffer, hit.start()) : end])
        position = max(end, hit.end())
    return found, position if last else max(position, len(buffer) - _HIT_BYTES)


def _line_start(buffer: bytes, hit: int) -> int:
    """Return where the line of a hit begins, or in a very long line a word near enough."""
    start = max(0, hit - AROUND)
    newline = buffer.rfind(b"\n", start, hit) + 1
    breaks = [match.end() for match in _BREAK.finditer(buffer, newline or start, hit)]
    if breaks or newline or not start:
        return breaks[-1] if breaks else newline or start
    blank = buffer.find(b" ", start, hit)
    return max(blank, start)


@lru_cache(maxsize=256)  # programs that draw their screen print the same lines over and over
def _mentions(line: bytes) -> tuple[Mention, ...]:
    """Return the mentions in one line."""
    text = line.decode(errors="replace")
    if text.isprintable():
        return tuple(_named(text))
    pieces, _ = split(text)
    shown = pieces[:1]
    found: list[Mention] = []
    for control, plain in zip(pieces[1::2], pieces[2::2], strict=True):
        if link := _LINK.fullmatch(control):
            found += _named(link[1])
        shown += (" " if _GAP.fullmatch(control) else "", plain)
    return (*found, *_named("".join(shown)))


def _named(text: str) -> list[Mention]:
    """Return the mentions in text without controls."""
    quoted = {match.end(match.lastindex or 0): match[match.lastindex or 0] for match in _QUOTED.finditer(text)}
    found: dict[int, list[str]] = {}
    for run in _RUN.finditer(text):
        for end, piece in _pieces(run[0]):
            found[run.start() + end] = _alternatives(piece)
    for end, content in quoted.items():
        found[end] = [*(_alternatives(content) if "://" in content else [content]), *found.get(end, ())]
    return [mention for _, names in sorted(found.items()) if (mention := _mention(names))]


def _pieces(run: str) -> Iterator[tuple[int, str]]:
    """Part text without blanks behind each extension; yield (end, piece). What follows a foreign URL belongs to it."""
    begin, foreign = 0, False
    for ending in _EXTENSION.finditer(run):
        piece, begin = run[begin : ending.end()], ending.end()
        foreign = foreign and piece[0] not in ",)"
        if foreign:
            continue
        url = _url(piece)
        foreign = url is not None and not url
        if not foreign:
            yield begin, piece


def _alternatives(piece: str) -> list[str]:
    """Return what a piece of text that ends in an extension could mean, the longest first."""
    url = _url(piece)
    if url is not None:
        return [url]
    name = _UNESCAPE.sub(r"\1", _unbracketed(piece).lstrip(_LEADING))
    parts = [name[soft.end() :] for soft in _SOFT.finditer(name)]
    names = [name, *parts[1 - ALTERNATIVES :]]
    return [*names, unquote(name)] if "%" in name else names


def _url(piece: str) -> str | None:
    """Return the path that a URL in the text is of, "" if it is none of a file; None if there is no URL."""
    before, mark, behind = piece.rpartition("://")
    if not mark:
        return None
    return unquote(behind[behind.find("/") :]) if _FILE.fullmatch(before) and "/" in behind else ""


def _unbracketed(piece: str) -> str:
    """Return what follows the last bracket that is opened and not closed."""
    opened: list[tuple[str, int]] = []
    for position, character in enumerate(piece):
        if character in "([{":
            opened.append((character, position))
        elif opened and opened[-1][0] == _CLOSING.get(character):
            opened.pop()
    return piece[opened[-1][1] + 1 :] if opened else piece


def _mention(names: list[str]) -> Mention:
    """Keep the names that could be one, each once."""
    return tuple(dict.fromkeys(name for name in names if _is_name(name)))


def _is_name(name: str) -> bool:
    if len(name.encode(errors="replace")) >= PATH_BYTES or _CONTROL.search(name):
        return False
    stem, _, extension = re.split(r"[/\\]", name)[-1].rpartition(".")
    return bool(stem.strip()) and extension.lower() in TYPES
