"""Text with styles as HTML."""

from __future__ import annotations

import re
from html import unescape
from html.parser import HTMLParser

import pytest
from hypothesis import given
from hypothesis import strategies as st

from session_magics.text import LineModel, strip_styles
from session_magics.text.html import to_html

SEQUENCES = "m 1m 3;4;9m 7m 38;5;9m 48;5;200m 38;5;244m 91m 38;2;1;2;255m 102m 44m 2;8m 5m 0K"
CONTROLS = st.sampled_from([*(f"\x1b[{one}" for one in SEQUENCES.split()), "\x1b]0;<b>\x07", "\n"])


class Reader(HTMLParser):
    """Takes the text out, and notes tags and styles."""

    def __init__(self) -> None:
        super().__init__(convert_charrefs=True)
        self.text, self.open, self.styles = "", [], []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        assert tag in ("pre", "span") and [name for name, _ in attrs] == ["style"]
        self.open.append(tag)
        self.styles.append(attrs[0][1])

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        self.text += data


def resolved(data: str) -> str:
    model = LineModel()
    model.feed(data.encode())
    model.finish()
    return model.text()


@pytest.mark.parametrize(
    ("sequence", "css"),
    [
        ("31", "color:#f07178"),
        ("1;92", "color:#bfe6a3;font-weight:bold"),
        ("7", "color:#15181e;background:#d8dee9"),
        ("7;31;44", "color:#82aaff;background:#f07178"),
        ("38;5;196", "color:#ff0000"),
        ("38;5;1", "color:#f07178"),
        ("48;5;240", "background:#585858"),
        ("38;2;1;2;3;48;2;4;5;6", "color:#010203;background:#040506"),
        ("3;4;9", "font-style:italic;text-decoration:underline line-through"),
        ("2;8", "opacity:.65;visibility:hidden"),
        ("100", "background:#7a849c"),
    ],
)
def test_a_style_is_shown_as(sequence: str, css: str) -> None:
    assert f'<span style="{css}">x</span>' in to_html(resolved(f"\x1b[{sequence}mx"))


def test_blinking_is_left_out() -> None:
    assert to_html(resolved("\x1b[5mx")).endswith(">x</pre>")


@given(st.lists(st.one_of(CONTROLS, st.text(st.characters(codec="utf-8"), max_size=8))).map("".join))
def test_any_text_comes_back_whole_and_nothing_of_it_is_markup(data: str) -> None:
    styled = resolved(data)
    reader = Reader()
    reader.feed(to_html(styled))
    reader.close()
    assert not reader.open
    assert reader.text == strip_styles(styled)
    assert all(re.fullmatch(r"[-a-z0-9#:;., /%]*", style, re.IGNORECASE) for style in reader.styles)


def test_markup_is_escaped() -> None:
    shown = to_html("<script>alert(1)</script> & more")
    assert "<script" not in shown and unescape(shown).endswith("<script>alert(1)</script> & more</pre>")
