"""What people write after ``%%sh_session``, and what it means."""

from __future__ import annotations

import re

import pytest

from session_magics.errors import UsageMistake
from session_magics.verbs.parser import CellOptions, HelpRequest, parse_cell


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        ("", CellOptions()),
        ("web", CellOptions(name="web")),
        ("--shell zsh --cwd '/a b'", CellOptions(shell="zsh", cwd="/a b")),
        ("--env A=1 --env B=x=y --env=C=", CellOptions(env={"A": "1", "B": "x=y", "C": ""})),
        ("--env 'A=$HOME {x}'", CellOptions(env={"A": "$HOME {x}"})),
        ("--timeout 1.5", CellOptions(timeout=1.5)),
        ("--out text --result r", CellOptions(out="text", result="r")),
        ("--no-raise-error --bg --no-rc", CellOptions(raise_error=False, bg=True, rc=False)),
        ("--set a,b --set c --get=d,e", CellOptions(set=("a", "b", "c"), get=("d", "e"))),
        ("--set 'a, b,'", CellOptions(set=("a", "b"))),
        ("--size 24x80 --lifetime detached", CellOptions(size=(24, 80), lifetime="detached")),
        ("--limit 2MB", CellOptions(limit=2_000_000)),
        ("--limit 500k", CellOptions(limit=500_000)),
        ("--limit 1.5MiB", CellOptions(limit=1_572_864)),
        ("--limit 0", CellOptions(limit=0)),
        ("--cwd=-x", CellOptions(cwd="-x")),
        (
            "--on docker:library/python:3.12,network=none",
            CellOptions("python-3.12", on="docker:library/python:3.12,network=none"),
        ),
        ("box --on ssh:me@far --exec", CellOptions("box", on="ssh:me@far", exec=True)),
        ("--on ssh:me@far.example", CellOptions("far.example", on="ssh:me@far.example")),
        ("--cwd -x", CellOptions(cwd="-x")),
    ],
)
def test_the_cell_line_is_read(line: str, expected: CellOptions) -> None:
    assert parse_cell(line) == expected


@pytest.mark.parametrize(
    "line", ["web --bg --timeout 3", "--bg web --timeout 3", "--bg --timeout 3 web", "--bg --timeout=3 -- web"]
)
def test_the_name_of_a_cell_stands_anywhere(line: str) -> None:
    assert parse_cell(line) == CellOptions(name="web", bg=True, timeout=3.0)


@pytest.mark.parametrize(
    ("line", "word"),
    [
        ("--tiemout 3", "did you mean --timeout"),
        ("--time 3", "no option '--time'"),
        ("-x", "no option '-x'"),
        ("--timeout", "--timeout: expected one argument"),
        ("--timeout --bg", "--timeout: expected one argument"),
        ("--timeout soon", "number of seconds"),
        ("--timeout 0", "above 0"),
        ("--timeout -1", "number of seconds"),
        ("--timeout nan", "number of seconds"),
        ("--timeout inf", "number of seconds"),
        ("--size 24", "ROWSxCOLUMNS"),
        ("--size 0x80", "rows 1 to 1000"),
        ("--limit much", "number of bytes"),
        ("--limit -1", "number of bytes"),
        ("--env A", "KEY=VALUE"),
        ("--env =a", "KEY=VALUE"),
        ("--out 1a", "Python variable"),
        ("--result a.b", "Python variable"),
        ("--out class", "Python variable"),
        ("--set a-b", "Python variable"),
        ("--set ä", "no shell variable"),
        ("--get a,__sm_k", "session's own"),
        ("--get ,", "at least one"),
        ("--lifetime forever", "'kernel', 'detached'"),
        ("--bg=3", "--bg"),
        ("--cwd ''", "empty"),
        ("main echo", "one session name at most"),
        ("'main", "close the quote"),
        ("main\\", "close the quote"),
    ],
)
def test_a_wrong_cell_line_is_told_in_one_line(line: str, word: str) -> None:
    with pytest.raises(UsageMistake, match=re.escape(word)) as caught:
        parse_cell(line)
    assert "\n" not in str(caught.value)


def test_environment_values_are_not_in_the_repr() -> None:
    assert "hunter2" not in repr(parse_cell("--env PASSWORD=hunter2"))


def test_help_of_the_cell_names_every_option() -> None:
    with pytest.raises(HelpRequest) as caught:
        parse_cell("web --help")
    options = "shell on exec cwd env timeout out result no-raise-error bg set get no-rc size lifetime limit"
    assert all(f"  --{option} " in caught.value.text for option in options.split())
