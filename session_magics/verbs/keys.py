"""Names of keys, and the bytes that a terminal sends for them."""

from __future__ import annotations

import difflib
from collections.abc import Mapping

from session_magics.errors import UsageMistake

_FUNCTION_KEYS = ["OP", "OQ", "OR", "OS", "[15~", "[17~", "[18~", "[19~", "[20~", "[21~", "[23~", "[24~"]

KEYS: Mapping[str, bytes] = {
    "Enter": b"\r",
    "Tab": b"\t",
    "S-Tab": b"\x1b[Z",
    "Escape": b"\x1b",
    "Space": b" ",
    "Backspace": b"\x7f",
    "Delete": b"\x1b[3~",
    "Insert": b"\x1b[2~",
    "Up": b"\x1b[A",
    "Down": b"\x1b[B",
    "Right": b"\x1b[C",
    "Left": b"\x1b[D",
    "Home": b"\x1b[H",
    "End": b"\x1b[F",
    "PageUp": b"\x1b[5~",
    "PageDown": b"\x1b[6~",
    **{f"F{number}": b"\x1b" + code.encode() for number, code in enumerate(_FUNCTION_KEYS, 1)},
    "C-Space": b"\0",
    **{f"C-{chr(code + 64).lower()}": bytes([code]) for code in range(32)},
}
"""What a terminal sends for each key, in xterm's normal cursor mode. M-KEY is Escape before any of them."""

_KEYS_BY_LOWER = {name.lower(): data for name, data in KEYS.items()}


def key_bytes(name: str) -> bytes:
    """Return what a terminal sends for a key such as ``C-c``, ``Enter``, ``M-x`` or ``F5``; case does not matter."""
    if name[:2] in ("M-", "m-") and len(name) > 2:
        rest = name[2:]
        return b"\x1b" + (rest.encode() if len(rest) == 1 and rest.isprintable() else key_bytes(rest))
    found = _KEYS_BY_LOWER.get(name.lower())
    if found is None:
        near = difflib.get_close_matches(name, KEYS, n=1)
        hint = f"did you mean {near[0]}? " if near else ""
        listed = " ".join(known for known in KEYS if known[:2] != "C-" and not known[1:].isdigit())
        raise UsageMistake(
            f"no key {name[:40]!r}: {hint}known are {listed} F1…F12 C-a…C-z C-@ C-[ C-\\ C-] C-^ C-_ C-Space M-KEY"
        )
    return found
