"""Reading shell text into the simple commands that it may run; bash itself is the judge of the grammar."""

from __future__ import annotations

import re
import shutil
import subprocess
import tempfile
from pathlib import Path

import pytest
from hypothesis import assume, example, given, settings
from hypothesis import strategies as st

from rounds import rounds
from session_magics.agents.verdicts.shelltext import LENGTH_LIMIT, Reading, read
from session_magics.agents.verdicts.shellvalues import UNKNOWN

HOME, CWD = "/home/user", "/home/user/project"


def reading(text: str) -> Reading:
    return read(text, cwd=CWD, home=HOME)


def commands(text: str) -> list[list[str]]:
    found = reading(text)
    assert found.whole
    return [[word.text.replace(UNKNOWN, "?") for word in command.words] for command in found.commands if command.words]


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("a b  c", [["a", "b", "c"]]),
        ("a;b&c&&d||e|f\ng", [["a"], ["b"], ["c"], ["d"], ["e"], ["f"], ["g"]]),
        ("a 'b c' \"d e\" f\\ g $'h\\ti'", [["a", "b c", "d e", "f g", "h\ti"]]),
        ("a ''", [["a", ""]]),
        ("a \"$(b 'c d')\" `e`", [["b", "c d"], ["e"], ["a", "?", "?"]]),
        ("a <(b) > c", [["b"], ["a", "/dev/fd/63"]]),
        ("a {b,c}{1..2}", [["a", "b1", "b2", "c1", "c2"]]),
        ("a ~ ~/b ~root '~' \\~ b~", [["a", HOME, f"{HOME}/b", "/root", "~", "~", "b~"]]),
        ('a $HOME "${HOME}/b" $PWD', [["a", HOME, f"{HOME}/b", CWD]]),
        ("X='b c'; a $X \"$X\" '$X'", [["a", "b", "c", "b c", "$X"]]),
        ("a # b; c\nd", [["a"], ["d"]]),
        ("a b#c", [["a", "b#c"]]),
        ("a \\\n b", [["a", "b"]]),
        ("if a; then b; elif c; then d; else e; fi", [["a"], ["b"], ["c"], ["d"], ["e"]]),
        ("for x in 1 2; do a $x; done", [["a", "1", "2"]]),
        ("while a; do b; done < c", [["a"], ["b"]]),
        ("case $x in a|b) c ;; (*) d; esac", [["c"], ["d"]]),
        ("f() { a; }; f", [["a"], ["f"]]),
        ("(a; { b; })", [["a"], ["b"]]),
        ("[[ -f a && b == c* ]] || d", [["[[", "-f", "a", "b", "==", "c*", "]]"], ["d"]]),
        ("a <<X | b\n$(c) 'd\nX\ne", [["c"], ["a"], ["b"], ["e"]]),
        ("a <<'X'\n$(c)\nX", [["a"]]),
        ("a <<-X\n\tb\n\tX\nc", [["a"], ["c"]]),
        ("a <<X <<Y\nb\nX\nc\nY\nd", [["a"], ["d"]]),
        ("a 2>&1 >b 3<c", [["a"]]),
        ("sudo -u x a b", [["sudo", "-u", "x", "a", "b"], ["a", "b"]]),
        ("env -i A=b nice -n 3 a", [["env", "-i", "A=b", "nice", "-n", "3", "a"], ["nice", "-n", "3", "a"], ["a"]]),
        ("bash -lc 'a; b'", [["bash", "-lc", "a; b"], ["a"], ["b"]]),
        ("timeout -s 9 5 a", [["timeout", "-s", "9", "5", "a"], ["a"]]),
        ("find b -exec a {} \\;", [["find", "b", "-exec", "a", "{}", ";"], ["a", "b/*"]]),
        ("echo b | xargs -n 1 a", [["echo", "b"], ["xargs", "-n", "1", "a"], ["a", "?", "b"]]),
        ("a $((1 + 2))", [["a", "?"]]),
        ("time a", [["a"]]),
        ("! a", [["a"]]),
    ],
)
def test_a_text_is_read_as_its_simple_commands(text: str, found: list[list[str]]) -> None:
    assert commands(text) == found


def test_words_that_only_running_tells_are_not_sure() -> None:
    for text in (
        "a $X",
        "a $(b)",
        "a `b`",
        "a ${X:-b}",
        "X=b; a $X",
        "a $((1))",
        "cd b; a $PWD",
        "HOME=b; a $HOME",
    ):
        assert not reading(text).commands[-1].words[-1].sure, text
    assert not reading("a $1").whole
    for text in ("a b", "a '$X'", "a ~", "a $HOME", "a \\$X", "a *"):
        assert reading(text).commands[-1].words[-1].sure, text


def test_a_command_knows_what_feeds_it() -> None:
    found = reading("a; b | (c; d) | e")
    assert [command.fed for command in found.commands] == [range(0), range(0), range(1, 2), range(1, 2), range(1, 4)]


def test_the_directories_that_a_text_may_be_in() -> None:
    assert reading("a").directories == [CWD]
    assert reading("cd b; a").directories == [CWD, f"{CWD}/b"]
    assert reading("cd; a").directories == [CWD, HOME]
    assert reading("cd $X; a").directories == [CWD, None]


def test_a_long_text_is_not_read_whole() -> None:
    assert reading("a " * (LENGTH_LIMIT // 2)).whole
    assert not reading("a " * LENGTH_LIMIT).whole


@given(st.text(max_size=120))
@settings(deadline=None)
def test_a_quoted_text_is_one_word_as_it_stands(text: str) -> None:
    assume(not any(char in text for char in "'…\0") and text.isprintable())
    assert commands(f"a '{text}'") == [["a", text]]


# ------------------------------------------------------- compared with bash

# Each command that bash does not find is written down, in one write; no program and no builtin has such a name.
SPY = (
    """command_not_found_handle() { local IFS=$'\\1'; builtin printf "%s\\1\\0" "$*" >> "$SPY_LOG"; }; """
    "PATH=/nonexistent\n"
)
TOKENS = (
    "a",
    "b",
    "ab",
    " ",
    " ",
    ";",
    "\n",
    "&&",
    "||",
    "|",
    "&",
    "(",
    ")",
    "{ ",
    "; }",
    "'",
    '"',
    "\\",
    "$(",
    "`",
    "$'",
)
TOKENS += (
    "${a",
    "${b:-",
    "}",
    "<",
    ">",
    "<<a\n",
    "\na\n",
    "<<'b'\n",
    "\nb\n",
    "#",
    "=",
    "a=b ",
    "$a",
    "if ",
    "; then ",
    "; fi",
)
TOKENS += ("<(", ">(", "$((", "))", "!", "{a,b}", "[[ ", " ]]", "case a in ", "a) ", ";;", " esac")
tokens = st.sampled_from(TOKENS)
scripts = st.lists(tokens, max_size=14).map("".join)


@pytest.mark.skipif(shutil.which("bash") is None, reason="no bash")
@given(st.lists(scripts, min_size=8, max_size=8))
@example(
    [
        "a <<a\nb\na\nab",
        "a $(b <<a\n`ab`\na\n)",
        "a \\\nb",
        "a#b",
        "case a in a) b;; esac",
        "a=b ab",
        "a $'\\'b' ; ab",
        "$((a))",
    ]
)
@settings(max_examples=rounds(50, 150), deadline=None)
def test_whatever_bash_runs_of_a_text_that_is_read_whole_was_read(texts: list[str]) -> None:
    texts = [text for text in texts if not re.search(r"\([ \t]*\)", text)]  # functions could call themselves
    with tempfile.TemporaryDirectory() as directory:
        for text in texts:
            found = reading(text)
            if not found.whole:
                continue
            log = Path(directory, "log")
            log.write_text("")
            subprocess.run(
                [shutil.which("bash") or "bash", "--norc", "-c", SPY + text],
                cwd=directory,
                env={"SPY_LOG": str(log), "HOME": directory},
                stdin=subprocess.DEVNULL,
                capture_output=True,
                timeout=20,
                check=False,
            )
            ran = {tuple(entry.split("\1")[:-1]) for entry in log.read_text().split("\0")[:-1]}
            read_ = [command.words for command in found.commands if command.words]
            if all(word.sure and not word.glob for words in read_ for word in words):
                assert ran <= {tuple(word.text for word in words) for words in read_}, text
            elif all(words[0].sure for words in read_):
                assert {words[0] for words in ran} <= {words[0].text for words in read_}, text
