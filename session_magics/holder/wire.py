"""Frames between a holder and its clients over the Unix socket.

A frame is one byte of kind, four bytes of length (big endian) and a payload; a payload is a row of fields, each
with four bytes of length. The first frame on a connection is the holder's HELLO; a client that knows fewer kinds
than the holder goes on speaking its own.

Requests carry an id as their first field, which OK, ERROR, BEGUN and DONE repeat.
"""

from __future__ import annotations

import struct

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator

VERSION = 1
FEATURES = (b"watch", b"input", b"resize", b"interrupt", b"run", b"probe", b"stop", b"restart")

HELLO = b"H"  # version, holder pid, *features
BELL = b"B"  # log end, index size: something is new since the last WATCH
OK = b"O"  # id, *result
ERROR = b"E"  # id, code, text
BEGUN = b"S"  # id, number of the command, log offset where its output begins, what to tell the person before
DONE = b"D"  # id, then the fields of a finished cell command, see cells.Finished

WATCH = b"W"  # log offset, index size: ring once when either is passed
INPUT = b"I"  # id, bytes, b"1" if they may be written only while the terminal's echo is off
RESIZE = b"Z"  # id, rows, columns
INTERRUPT = b"C"  # id
RUN = b"R"  # id, text of the cell, b"1" if it is ours and not the user's, a token; also a WATCH for its output.
# A RUN whose token is known is not carried out again: whoever sends it hears what becomes, or became, of the first.
PROBE = b"P"  # id -> OK: wait (no, poll, read), echo, canonical
STOP = b"X"  # id, seconds of grace, b"1" to cut short a grace that runs already
RESTART = b"G"  # id, seconds of grace

MAX_FRAME = 64 * 1024 * 1024
"""Bytes; a longer frame is no request of ours (the largest cell measured was 1 MiB)."""

SIZE_MOST = (1000, 2000)
"""Rows and columns that a session's terminal may have; a record with others is read as damaged."""


class BadFrame(Exception):
    """The peer does not speak this protocol."""


def pack(*fields: bytes) -> bytes:
    """The payload that carries these fields."""
    return b"".join([struct.pack(">I", len(one)) + one for one in fields])


def unpack(payload: bytes) -> list[bytes]:
    """The fields of a payload; raises BadFrame."""
    fields, at, end = [], 0, len(payload)
    while at < end:
        if at + 4 > end:
            raise BadFrame("field cut short")
        (length,) = struct.unpack_from(">I", payload, at)
        at += 4
        if at + length > end:
            raise BadFrame("field cut short")
        fields.append(payload[at : at + length])
        at += length
    return fields


def pairs(fields: list[bytes]) -> dict[bytes, bytes]:
    """The mapping that the fields list, names and values in turn; raises BadFrame."""
    if len(fields) % 2:
        raise BadFrame("a name without a value")
    return {fields[at]: fields[at + 1] for at in range(0, len(fields), 2)}


def frame(kind: bytes, *fields: bytes) -> bytes:
    """One frame, ready to be sent."""
    payload = pack(*fields)
    return kind + struct.pack(">I", len(payload)) + payload


class Decoder:
    """Cuts a stream of bytes into frames."""

    def __init__(self) -> None:
        self._buffer = bytearray()

    def feed(self, data: bytes) -> Iterator[tuple[bytes, list[bytes]]]:
        """Take what was received; yield (kind, fields) of each frame that is whole. Raises BadFrame."""
        buffer = self._buffer
        buffer += data
        while len(buffer) >= 5:
            (length,) = struct.unpack_from(">I", buffer, 1)
            if length > MAX_FRAME:
                raise BadFrame("frame too long")
            if len(buffer) < 5 + length:
                return
            kind, payload = bytes(buffer[:1]), bytes(buffer[5 : 5 + length])
            del buffer[: 5 + length]
            yield kind, unpack(payload)


def number(field: bytes, most: int = 1 << 63) -> int:
    """The whole number from 0 to ``most`` in a field; raises BadFrame."""
    if not field.isdigit() or len(field) > 19 or int(field) > most:
        raise BadFrame("not a number")
    return int(field)


def size(rows: bytes, columns: bytes) -> tuple[int, int]:
    """The size of a terminal in two fields; raises BadFrame for one that no record may have."""
    wanted = number(rows, SIZE_MOST[0]), number(columns, SIZE_MOST[1])
    if not all(wanted):
        raise BadFrame("no size")
    return wanted


def seconds(field: bytes) -> float:
    """The duration in a field; raises BadFrame."""
    try:
        value = float(field)
    except ValueError:
        value = -1.0
    if not 0 <= value < 1e9:
        raise BadFrame("no duration")
    return value
