"""text/fit.py: lines that fit into a terminal."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from wcwidth import wcswidth

from session_magics.text.fit import fit


@pytest.mark.parametrize(
    ("line", "width", "shown"),
    [
        ("short", 5, "short"),
        ("longer", 5, "long…"),
        ("日本日本", 8, "日本日本"),
        ("日本日本", 7, "日本日…"),
        ("日本日本", 6, "日本…"),
        ("ab", 1, "…"),
        ("ab", 0, ""),
        ("", 0, ""),
    ],
)
def test_a_line_is_cut_by_the_columns_it_takes(line: str, width: int, shown: str) -> None:
    assert fit(line, width) == shown


@given(st.text(st.sampled_from("ab 日é\u0301🙂")), st.integers(0, 20))
def test_it_never_takes_more(line: str, width: int) -> None:
    cut = fit(line, width)
    assert wcswidth(cut) <= width and (cut == line or line.startswith(cut.removesuffix("…")))
