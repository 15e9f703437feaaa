"""Amounts as a person reads them in a row of a table."""

from __future__ import annotations


def short_time(seconds: float) -> str:
    """Seconds in the largest unit of which there is one: 45s, 3m, 2h, 5d."""
    for unit, length in (("d", 86400), ("h", 3600), ("m", 60)):
        if seconds >= length:
            return f"{int(seconds // length)}{unit}"
    return f"{max(0, int(seconds))}s"


def fine_time(seconds: float) -> str:
    """Seconds as how long something took, in its two largest units: 38ms, 4.2s, 3m 5s, 2h 10m, 1d 3h."""
    if seconds < 0.9995:
        return f"{max(0.0, seconds) * 1000:.0f}ms"
    if seconds < 59.95:
        return f"{seconds:.1f}s"
    whole = round(seconds)
    for unit, length, lower, part in (("d", 86400, "h", 3600), ("h", 3600, "m", 60), ("m", 60, "s", 1)):
        if whole >= length:
            return f"{whole // length}{unit} {whole % length // part}{lower}"
    raise AssertionError


def short_bytes(count: int) -> str:
    """Bytes in the largest unit of which there is one: 12M."""
    for unit, size in (("G", 1 << 30), ("M", 1 << 20), ("K", 1 << 10)):
        if count >= size:
            return f"{count / size:.1f}{unit}" if count < 10 * size and unit == "G" else f"{count // size}{unit}"
    return f"{count}B"
