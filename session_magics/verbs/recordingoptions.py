"""The options of ``record`` and ``play``."""

from __future__ import annotations

import re
from argparse import Namespace

from session_magics.errors import UsageMistake
from session_magics.recording.places import Place
from session_magics.verbs import options as kind
from session_magics.verbs.options import OptionParser

SPEEDS = (0.25, 16.0)
"""Slowest and fastest playing: slower is no motion, and faster than that a page cannot draw."""
FORMATS = {"v2": 2, "v3": 3}


def place(text: str) -> Place:
    if text in ("start", "end"):
        return Place("start" if text == "start" else "end")
    if match := re.fullmatch(r"(cell:(?=-?\d)|)(-?\d{1,15})", text, re.ASCII):
        number = int(match[2])
        if match[1] or number >= 0:
            return Place("cell" if match[1] else "offset", number)
    try:
        return Place("ago", kind.seconds(text))
    except UsageMistake:
        raise UsageMistake(
            f"{text!r} is no place in a log: start, end, an offset, a time ago such as 5m, or cell:N"
        ) from None


def speed(text: str) -> float:
    try:
        value = float(text.removesuffix("x").removesuffix("×"))
    except ValueError:
        value = 0.0
    if not SPEEDS[0] <= value <= SPEEDS[1]:
        raise UsageMistake(f"{text!r} is no speed: {SPEEDS[0]:g} to {SPEEDS[1]:g}, such as 2")
    return value


def record_options(parser: OptionParser) -> None:
    places = "start, an offset, a time ago such as 5m, or cell:N"
    parser.option("--from", metavar="PLACE", dest="begin", type=place, help=f"what was, from there: {places}")
    parser.option("--to", metavar="PLACE", dest="end", type=place, help="up to there; a cell: up to its end")
    parser.option("--follow", action="store_true", help="with --from: go on with what comes")
    parser.option("--idle-limit", metavar="S", type=kind.timeout, help="players are to show no longer pause")
    for name, version in FORMATS.items():
        help_text = f"asciicast {name}" + (", which every player reads; the default" if version == 2 else "")
        parser.option(f"--{name}", dest="version", action="store_const", const=version, default=2, help=help_text)
    parser.option("--force", action="store_true", help="replace a file that exists")
    parser.option("--stop", action="store_true", help="end the recording of this session")


def finish_record(parser: OptionParser, call: Namespace) -> None:
    if call.stop:
        if call.file is not None or call.begin is not None or call.end is not None or call.follow or call.force:
            parser.error("--stop takes a NAME and nothing else")
        return
    if call.file is None:
        parser.misuse("FILE is missing")
    if call.end is not None and call.begin is None:
        parser.error("--to belongs to --from PLACE, which is missing")
    if call.end is not None and call.follow:
        parser.error("--follow has no end: leave out --to or --follow")


def play_options(parser: OptionParser) -> None:
    parser.option("--speed", metavar="N", type=speed, help="so many times as fast, 0.25 to 16")
    parser.option("--start-at", metavar="S", type=kind.seconds, help="seconds from the beginning")
    parser.option("--idle-limit", metavar="S", type=kind.seconds, help="make longer pauses so long; 0: leave them")
    parser.option("--no-autoplay", dest="autoplay", action="store_false", default=None, help="wait for the button")
    parser.option("--autoplay", dest="autoplay", action="store_true", help="play at once, which is the default")
