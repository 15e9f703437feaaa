"""Text with styles as HTML that stands alone: inline styles, no script, everything escaped."""

from __future__ import annotations

import html
from itertools import islice

from session_magics.text.escapes import parse_styled

_BASIC = (
    *("#3b4252", "#f07178", "#a6d189", "#e8c57a", "#82aaff", "#c792ea", "#7fd5e6", "#d5dae5"),
    *("#7a849c", "#ff8b92", "#bfe6a3", "#ffdc96", "#a0c0ff", "#ddb3ff", "#a1e8f5", "#ffffff"),
)
"""The sixteen colours of the live terminal in its dark theme."""
_FOREGROUND, _BACKGROUND = "#d8dee9", "#15181e"
_CUBE = (0, 95, 135, 175, 215, 255)
"""Levels of the 216 colours from number 16 on, as xterm has them."""
_FRAME = (
    f"margin:0;padding:10px 12px;border-radius:8px;overflow-x:auto;background:{_BACKGROUND};color:{_FOREGROUND};"
    "font:13px/1.3 ui-monospace,SFMono-Regular,Menlo,Consolas,monospace;white-space:pre"
)
_ATTRIBUTES = {
    "1": "font-weight:bold",
    "2": "opacity:.65",
    "3": "font-style:italic",
    "8": "visibility:hidden",
}


def to_html(text: str) -> str:
    """Return a ``<pre>`` that shows text as the dark terminal does; its only sequences are those that we make."""
    runs = (_span(style, html.escape(run, quote=False)) for style, run in parse_styled(text))
    return f'<pre style="{_FRAME}">{"".join(runs)}</pre>'


def _span(style: str, run: str) -> str:
    css = _css(style)
    return f'<span style="{css}">{run}</span>' if css else run


def _css(style: str) -> str:
    attributes: set[str] = set()
    colours = {"38": _FOREGROUND, "48": _BACKGROUND}
    numbers = iter(style.split(";") if style else ())
    for number in numbers:
        if number in colours:
            colours[number] = _extended(list(islice(numbers, 1 if (kind := next(numbers)) == "5" else 3)), kind)
        elif len(number) == 1:
            attributes.add(number)
        else:
            slot = "38" if number[0] in "39" else "48"
            colours[slot] = _BASIC[int(number[-1]) + (8 if int(number) >= 90 else 0)]
    front, back = colours["38"], colours["48"]
    if "7" in attributes:
        front, back = back, front
    rules = [f"color:{front}"] if front != _FOREGROUND else []
    rules += [f"background:{back}"] if back != _BACKGROUND else []
    rules += [_ATTRIBUTES[one] for one in sorted(attributes & _ATTRIBUTES.keys())]
    lines = [line for one, line in (("4", "underline"), ("9", "line-through")) if one in attributes]
    return ";".join([*rules, f"text-decoration:{' '.join(lines)}"] if lines else rules)


def _extended(values: list[str], kind: str) -> str:
    """The colour that 38;5;N or 38;2;R;G;B means."""
    if kind == "2":
        return "#{:02x}{:02x}{:02x}".format(*map(int, values))
    number = int(values[0])
    if number < 16:
        return _BASIC[number]
    if number > 231:
        return f"#{8 + 10 * (number - 232):02x}" + 2 * f"{8 + 10 * (number - 232):02x}"
    number -= 16
    return f"#{_CUBE[number // 36]:02x}{_CUBE[number // 6 % 6]:02x}{_CUBE[number % 6]:02x}"
