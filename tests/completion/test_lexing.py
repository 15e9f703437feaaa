"""The place of the cursor: what is found for any text, and that reading never fails."""

from __future__ import annotations

import shlex
import subprocess
import sys
import time

from hypothesis import given
from hypothesis import strategies as st

from session_magics.completion.lexing import place
from session_magics.completion.words import Word, escaped

ENDLESS = 8.0  # seconds; what is linear needs far less than one, what was quadratic minutes

SNIPPETS = st.lists(
    st.sampled_from(
        [
            "a",
            "é",
            " ",
            "'",
            '"',
            "\\",
            "$",
            "`",
            "(",
            ")",
            "{",
            "}",
            "<<E",
            "\n",
            "E",
            "#",
            "|",
            "&",
            ";",
            ">",
            "=",
            "~",
            "/",
            "$(",
            "${",
            "$((",
            "1",
        ]
    ),
    max_size=14,
).map("".join)


@given(SNIPPETS, SNIPPETS)
def test_any_text_has_a_place_and_what_follows_does_not_matter(text: str, rest: str) -> None:
    found = place(text + rest, len(text))
    assert found == place(text, len(text))
    assert 0 <= found.word.start <= len(text)
    assert found.kind == "nothing" or text[found.word.start :] == found.word.raw


@given(st.lists(st.text(min_size=1).filter(lambda word: "\0" not in word), min_size=1, max_size=4))
def test_words_that_are_quoted_are_read_back(words: list[str]) -> None:
    text = shlex.join(["cmd", *words, "end"])
    found = place(text, len(text))
    assert found.kind == "argument"
    assert [word.literal for word in found.before] == ["cmd", *words]


@given(
    st.lists(
        st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\0"), min_size=1), min_size=1, max_size=8
    )
)
def test_what_is_written_means_the_same_to_a_shell(names: list[str]) -> None:
    written = [escaped(name, "") for name in names]
    for quote in ("'", '"', "$'"):
        written += [quote + escaped(name, quote) + quote[-1] for name in names]
    done = subprocess.run(["bash", "-c", "printf '%s\\0' " + " ".join(written)], capture_output=True, check=True)
    assert done.stdout.decode().split("\0")[:-1] == names * 4


def test_the_directory_of_a_word() -> None:
    def directory(text: str) -> tuple[list[str], str] | None:
        word: Word = place(f"cat {text}", len(text) + 4).word
        path = word.path()
        return None if path is None else ([part.text for part in path[0]], path[1])

    assert directory("ab") == ([], "ab")
    assert directory("a\\ b/c'd e") == (["a b/"], "cd e")
    assert directory("~/x") == (["~", "/"], "x")
    assert directory("$HOME/x/y") == (["HOME", "/x/"], "y")
    assert directory("$(pwd)/x") is None


def test_what_nobody_writes_is_read_in_a_blink_and_without_an_error() -> None:
    depth = sys.getrecursionlimit()
    assert place("$(" * depth + "ech", 2 * depth + 3).kind == "nothing"
    for text, kind in (("echo " + "x" * 2_000_000 + " $HOM", "variable"), ("a " * 100_000 + "ech", "argument")):
        began = time.process_time()
        assert place(text, len(text)).kind == kind
        assert time.process_time() - began < ENDLESS, text[:9]
