"""The exit record, and the JSON that the holder writes.

The exit record is one line in a file of fixed size that exists before the program starts, so that it can be
written on a full disk::

    1 GENERATION KIND VALUE TIME CRC\\n

padded with spaces to 512 bytes. KIND is ``code``, ``signal`` or ``failed``; VALUE is a number, or for
``failed`` a percent-escaped reason; CRC is the CRC-32, as 8 hex digits, of all that stands before it.
"""

from __future__ import annotations

import binascii

EXIT_BYTES = 512
"""Size of the file ``exit``: one disk sector, which is written whole or not at all."""

VERSION = b"1"
KINDS = (b"code", b"signal", b"failed")
_CRC_DIGITS = 8
_BLANK = b" \n\0"
# A file whose data never reached the disk before a power cut reads as zeros.

_SHORT_ESCAPES = {'"': '\\"', "\\": "\\\\", "\n": "\\n", "\r": "\\r", "\t": "\\t"}


def blank_record() -> bytes:
    """Return what ``exit`` holds while the program has not ended."""
    return b" " * (EXIT_BYTES - 1) + b"\n"


def format_exit(generation: int, kind: str, value: str | int, at: float) -> bytes:
    """Return the record: always EXIT_BYTES long; a reason that is too long is cut between characters."""
    head = b"%s %d %s " % (VERSION, generation, kind.encode())
    tail = b" %s " % repr(float(at)).encode()
    room = EXIT_BYTES - 2 - _CRC_DIGITS - len(head) - len(tail)
    body = head + _escape(str(value), room) + tail
    line = b"%s%08x\n" % (body, binascii.crc32(body))
    return line + b" " * (EXIT_BYTES - 1 - len(line)) + b"\n"


def parse_exit(data: bytes) -> tuple[int, str, str, float] | None:
    """Return (generation, kind, value, Unix time), or None if nothing was recorded.

    Raises:
        ValueError: the record is damaged.
    """
    if not data.strip(_BLANK):
        return None
    line, newline, _ = data.partition(b"\n")
    fields = line.split(b" ")
    if not newline or len(fields) != 6:
        raise ValueError("not an exit record")
    version, generation, kind, value, at, crc = fields
    if crc != b"%08x" % binascii.crc32(line[:-_CRC_DIGITS]):
        raise ValueError("wrong checksum")
    number = value[1:] if value.startswith(b"-") else value
    if version != VERSION or kind not in KINDS or not generation.isdigit():
        raise ValueError("unknown kind of exit record")
    if kind != b"failed" and not number.isdigit():
        raise ValueError("the exit status is not a number")
    return int(generation), kind.decode(), _unescape(value), float(at)


def _escape(text: str, room: int) -> bytes:
    kept = []
    for character in text:
        try:
            raw = character.encode("utf-8", "surrogateescape")
        except UnicodeEncodeError:  # half a surrogate pair: no byte of any file name
            raw = b"?"
        piece = b"".join(b"%c" % byte if 0x20 < byte < 0x7F and byte != 0x25 else b"%%%02X" % byte for byte in raw)
        room -= len(piece)
        if room < 0:
            break
        kept.append(piece)
    return b"".join(kept)


def _unescape(value: bytes) -> str:
    first, *rest = value.split(b"%")
    return (first + b"".join(binascii.unhexlify(part[:2]) + part[2:] for part in rest)).decode(
        "utf-8", "surrogateescape"
    )


def to_json(value: object) -> bytes:
    """Return ``value`` (dict, list, str, int, float, bool or None) as one line of ASCII, without a newline.

    A byte that is no UTF-8 (a lone surrogate in the text) survives ``json.loads``.
    """
    return _json(value).encode("ascii")


def _json(value: object) -> str:
    if value is None:
        return "null"
    if isinstance(value, str):
        return _quote(value)
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, int):
        return int.__repr__(value)
    if isinstance(value, float):
        return _float(value)
    if isinstance(value, (list, tuple)):
        return "[" + ", ".join(map(_json, value)) + "]"
    if isinstance(value, dict):
        return "{" + ", ".join(_quote(str(key)) + ": " + _json(item) for key, item in value.items()) + "}"
    raise TypeError(f"{type(value).__name__} has no JSON form")


def _float(value: float) -> str:
    if value != value:
        return "NaN"
    if value in (float("inf"), float("-inf")):
        return "Infinity" if value > 0 else "-Infinity"
    return float.__repr__(value)


def _quote(text: str) -> str:
    if text.isascii() and text.isprintable() and '"' not in text and "\\" not in text:
        return '"' + text + '"'
    return '"' + "".join(map(_quote_character, text)) + '"'


def _quote_character(character: str) -> str:
    code = ord(character)
    if character in _SHORT_ESCAPES:
        return _SHORT_ESCAPES[character]
    if 0x20 <= code < 0x7F:
        return character
    if code < 0x10000:
        return f"\\u{code:04x}"
    code -= 0x10000
    return f"\\u{0xD800 | code >> 10:04x}\\u{0xDC00 | code & 0x3FF:04x}"
