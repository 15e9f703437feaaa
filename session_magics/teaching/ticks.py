"""Lists of ticks and crosses, and hints, as text and as HTML that fits light and dark pages."""

from __future__ import annotations

import html
import re
from collections.abc import Iterable

EXCERPT_LINES = 6
"""Lines of output or of a file that a learner is shown: enough to see what went wrong."""
EXCERPT_WIDTH = 100
"""Characters of such a line."""

_BOX = (
    '<div style="border-left:4px solid {colour};padding:6px 12px;margin:2px 0;'
    'background-color:{back};line-height:1.5">{{}}</div>'
)
GREEN, RED, AMBER = "#2e9e5b", "#d1553f", "#c98a1b"
HTML_FRAME = {
    True: _BOX.format(colour=GREEN, back="rgba(46,158,91,0.10)"),
    False: _BOX.format(colour=RED, back="rgba(209,85,63,0.10)"),
}
HINT_FRAME = _BOX.format(colour=AMBER, back="rgba(201,138,27,0.12)")
_CODE = (
    '<pre style="margin:2px 0 4px 22px;padding:4px 8px;background-color:rgba(128,128,128,0.12);'
    'white-space:pre-wrap;font-size:90%;line-height:1.35">{}</pre>'
)
_MARKS = {True: "✓", False: "✗"}


def excerpt(title: str, text: str) -> str:
    """The title, a colon, and the first lines of a text below it; one short line on the same; "" for no text."""
    lines = text.rstrip("\n").split("\n") if text.strip() else []
    if not lines:
        return ""
    cut = [line if len(line) <= EXCERPT_WIDTH else line[:EXCERPT_WIDTH] + "…" for line in lines[:EXCERPT_LINES]]
    if len(lines) > EXCERPT_LINES:
        cut.append(f"… ({len(lines) - EXCERPT_LINES} more lines)")
    return "\n".join([f"{title}:", *cut])


def plain_lines(title: tuple[bool, str], rows: Iterable[tuple[bool, str, str]], hint: str) -> list[str]:
    """A title, a line for each row, what was found below it, and the hint."""
    lines = [f"{_MARKS[title[0]]} {title[1]}"]
    for ok, text, found in rows:
        lines.append(f"  {_MARKS[ok]} {text}")
        first, *more = found.split("\n") if found else [""]
        if first:
            lines.append(f"      {first}")
        lines += [f"      | {line}" for line in more]
    return [*lines, f"  Hint: {hint}"] if hint else lines


def html_lines(title: tuple[bool, str], rows: Iterable[tuple[bool, str, str]], hint: str) -> str:
    """The same as HTML."""
    parts = [f"<div>{_mark(title[0])} <b>{html.escape(title[1])}</b></div>"]
    for ok, text, found in rows:
        parts.append(f'<div style="margin-left:16px">{_mark(ok)} {html.escape(text)}{_found(found)}</div>')
    if hint:
        parts.append(f'<div style="margin-top:4px"><b>Hint:</b> {html.escape(hint)}</div>')
    return "".join(parts)


def _mark(ok: bool) -> str:
    return f'<span style="color:{GREEN if ok else RED};font-weight:bold">{_MARKS[ok]}</span>'


def _found(found: str) -> str:
    first, *more = found.split("\n") if found else [""]
    shown = f'<div style="margin-left:22px;opacity:0.8">{html.escape(first)}</div>' if first else ""
    return shown + (_CODE.format(html.escape("\n".join(more))) if more else "")


def hint_html(text: str) -> str:
    """A hint as HTML; what stands between backticks is code."""
    shown = re.sub(r"`([^`]+)`", r"<code>\1</code>", html.escape(text, quote=False))
    return HINT_FRAME.format(f"<b>Tip:</b> {shown}")
