"""Values go into real shells and come back the same."""

from __future__ import annotations

import os
import shutil
import subprocess
import threading
from collections.abc import Mapping, Sequence
from decimal import Decimal
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from session_magics.errors import SessionError, UsageMistake
from session_magics.variables import ShellValue, assignments, check_variable_names, query, quoted, values

SHELLS = {
    "bash": ["bash", "--norc", "--noprofile"],
    "zsh": ["zsh", "-f"],
    "sh": ["sh"],
    "fish": ["fish", "--no-config"],
}
DIALECTS = [
    pytest.param(name, marks=pytest.mark.skipif(shutil.which(argv[0]) is None, reason=f"{argv[0]} is not installed"))
    for name, argv in SHELLS.items()
]
NUMBER = 7

# Each has tripped a quoting scheme: also as whole values, in the order that joins them to what stands before.
TRAPS = [
    "", " ", "\n", "\n\n", "\r", "\r\n", "a\r\nb\r\n", "\t", "'", "''", "'''", "\\", "\\\\", "\\'", "\\\n",
    '"', "$", "$HOME", "$(id)", "`id`", "!", "!!", "*", "?", "[0]=x", "[a]", "]", "@", "-n", "--", "-e", "(",
    ")", "=", "!=", "~", "#", "{a,b}", ";", "&", "%s", "%", "a:b", "\x01", "\x01G\t7\tx", "\x1b[0m", "\x7f",
    "\x81", "é", "\u0301", "日本", "🙂", "\udcff", "\udcc3", "\uf600", "\ufdd0", "\ufeff", "\u2028",
    "\U0010ffff", "x" * 5000,
]  # fmt: skip
TEXT = st.one_of(
    st.sampled_from(TRAPS),
    st.lists(st.sampled_from(TRAPS), max_size=4).map("".join),
    st.text(st.characters(exclude_characters="\0", exclude_categories=["Cs"]), max_size=20),
    st.binary(max_size=12).map(lambda raw: raw.replace(b"\0", b"").decode("utf-8", "surrogateescape")),
).map(lambda text: text.encode("utf-8", "surrogateescape").decode("utf-8", "surrogateescape"))


def value_of(dialect: str) -> st.SearchStrategy[ShellValue]:
    """Every value that the dialect gives back in the same form."""
    kinds: list[st.SearchStrategy[ShellValue]] = [TEXT, st.none()]
    if dialect != "sh":
        kinds.append(st.lists(TEXT, max_size=5).filter(lambda words: dialect != "fish" or len(words) != 1))
    if dialect in ("bash", "zsh"):
        kinds.append(st.dictionaries(TEXT.filter(lambda key: dialect != "bash" or key != ""), TEXT, max_size=5))
    return st.one_of(kinds)


def run(dialect: str, script: str, fifo: Path) -> tuple[list[bytes], subprocess.CompletedProcess[bytes]]:
    """Run the script in a real shell; return the payloads that it wrote to the FIFO, and what it printed."""
    os.mkfifo(fifo)
    text = fifo.with_suffix(".script")
    text.write_bytes(script.encode("utf-8", "surrogateescape"))
    reading = os.open(fifo, os.O_RDONLY | os.O_NONBLOCK)
    holding = os.open(fifo, os.O_WRONLY)
    os.set_blocking(reading, True)
    chunks: list[bytes] = []

    def drain() -> None:
        while chunk := os.read(reading, 1 << 16):
            chunks.append(chunk)

    thread = threading.Thread(target=drain)
    thread.start()
    try:
        done = subprocess.run([*SHELLS[dialect], str(text)], stdin=subprocess.DEVNULL, capture_output=True, timeout=30)
    finally:
        os.close(holding)
        thread.join()
        os.close(reading)
        fifo.unlink()
    head = f"\x01G\t{NUMBER}\t".encode()
    records = b"".join(chunks).split(b"\0")
    assert records.pop() == b""
    assert all(record.startswith(head) for record in records), records
    return [record.removeprefix(head) for record in records], done


def pass_through(
    dialect: str, given_values: Mapping[str, object], fifo: Path, *, before: str = "", between: str = ""
) -> dict[str, ShellValue]:
    """Assign, ask for the same names, and return what came back; nothing may be printed on the way."""
    ask = query(list(given_values), dialect, NUMBER, str(fifo))
    script = "\n".join([before, assignments(given_values, dialect), between, ask, ""])
    records, done = run(dialect, script, fifo)
    assert (done.returncode, done.stdout, done.stderr) == (0, b"", b"")
    return values(records)


@pytest.fixture(scope="module")
def fifo(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A path for the FIFO that needs quoting itself."""
    return tmp_path_factory.mktemp("it's $HOME") / "fifo"


@pytest.mark.parametrize("dialect", DIALECTS)
def test_every_trap_arrives_exactly(dialect: str, fifo: Path) -> None:
    given_values = {f"v{index}": text for index, text in enumerate(TRAPS)}
    assert pass_through(dialect, given_values, fifo) == given_values


@pytest.mark.parametrize("dialect", DIALECTS)
@settings(max_examples=40, deadline=None, suppress_health_check=list(HealthCheck))
@given(data=st.data())
def test_any_values_come_back_the_same(dialect: str, fifo: Path, data: st.DataObject) -> None:
    drawn = data.draw(st.lists(value_of(dialect), min_size=1, max_size=12))
    given_values = {f"v{index}": value for index, value in enumerate(drawn)}
    assert pass_through(dialect, given_values, fifo) == given_values


@pytest.mark.parametrize("locale", ["C", "C.UTF-8"])
@pytest.mark.parametrize("dialect", DIALECTS)
def test_the_locale_changes_no_byte(dialect: str, locale: str, fifo: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("LC_ALL", locale)
    given_values = {f"v{index}": text for index, text in enumerate(TRAPS)}
    assert pass_through(dialect, given_values, fifo) == given_values


FORMS: list[ShellValue] = ["text", "", ["a", "b c"], [], {"k": "v", "": "e"}, {}, None, "again"]


@pytest.mark.parametrize("dialect", DIALECTS)
def test_a_variable_changes_its_form(dialect: str, fifo: Path) -> None:
    fit = [form for form in FORMS if not (isinstance(form, dict) and dialect in ("sh", "fish"))]
    fit = [form for form in fit if not (isinstance(form, list) and dialect == "sh")]
    fit = [form for form in fit if not (dialect == "bash" and isinstance(form, dict) and "" in form)]
    for first in fit:
        befores = "\n".join(assignments({f"v{index}": first}, dialect) for index in range(len(fit)))
        given_values = {f"v{index}": form for index, form in enumerate(fit)}
        assert pass_through(dialect, given_values, fifo, before=befores) == given_values


HOSTILE = {
    "bash": r"""
shopt -s expand_aliases nullglob extglob nocasematch; set -f -C -T -u
printf() { echo mine; }; test() { echo mine; }; declare() { echo mine; }; unset() { echo mine; }; set() { echo mine; }
alias builtin='echo mine' trap='echo mine' true=false
IFS=aA0123456789-""",
    "zsh": r"""
setopt ksh_arrays sh_word_split rc_quotes noglob noclobber nounset glob_subst null_glob err_exit
printf() { echo mine; }; test() { echo mine; }; typeset() { echo mine; }; unset() { echo mine; }; set() { echo mine; }
alias builtin='echo mine' trap='echo mine' true=false; alias -g printf='|cat' test='|cat' unset=';false' low=';false'
IFS=aA0123456789-""",
    "sh": r"""
set -fCue
printf() { echo mine; }; test() { echo mine; }; true() { echo mine; }
alias command='echo mine'
IFS=aA0123456789-""",
    "fish": r"""
function printf; echo mine; end; function count; echo mine; end; function true; echo mine; end
set -g IFS aA0123456789-""",
}


@pytest.mark.parametrize("dialect", DIALECTS)
def test_options_aliases_functions_and_ifs_do_not_matter(dialect: str, fifo: Path) -> None:
    given_values: dict[str, object] = {"one": "'a A0\n* -1'", "none": None, "low": "it''s"}
    if dialect != "sh":
        given_values |= {"many": ["a-1 b*", "", "'*'"], "empty": []}
    if dialect in ("bash", "zsh"):
        given_values |= {"map": {"k 1]": "a-0 *", "@": "$x"}, "no": {}}
    assert pass_through(dialect, given_values, fifo, before=HOSTILE[dialect]) == given_values


@pytest.mark.parametrize("dialect", ["bash", "zsh", "sh"])
def test_a_query_under_errexit_and_traps_goes_on(dialect: str, fifo: Path) -> None:
    if shutil.which(dialect) is None:
        pytest.skip(f"{dialect} is not installed")
    debug = {"bash": "set -ETx; trap 'echo D' DEBUG ERR", "zsh": "set -x; trap 'echo D' DEBUG", "sh": "set -x"}
    script = f"x=1; set -eu; {debug[dialect]}\n{query(['nothing', 'x'], dialect, NUMBER, str(fifo))}\n"
    records, done = run(dialect, script, fifo)
    assert done.returncode == 0
    assert values(records) == {"nothing": None, "x": "1"}


@pytest.mark.parametrize("dialect", DIALECTS)
def test_nothing_of_ours_is_left_behind(dialect: str, fifo: Path) -> None:
    given_values: dict[str, object] = {"x": "1"} | ({"m": {"k": "v"}} if dialect in ("bash", "zsh") else {})
    _, done = run(
        dialect, f"{assignments(given_values, dialect)}\n{query(['x'], dialect, NUMBER, str(fifo))}\nset\n", fifo
    )
    assert b"\n__sm_" not in done.stdout


@pytest.mark.parametrize("dialect", DIALECTS)
def test_a_query_that_cannot_write_fails(dialect: str, fifo: Path) -> None:
    missing = fifo.parent / "no" / "such"
    _, done = run(dialect, query(["HOME"], dialect, NUMBER, str(missing)) + "\n", fifo)
    assert done.returncode != 0


@pytest.mark.parametrize("dialect", DIALECTS)
def test_an_exported_variable_stays_exported(dialect: str, fifo: Path) -> None:
    export = "set -gx SHOWN old" if dialect == "fish" else "export SHOWN=old"
    _, done = run(dialect, f"{export}\n{assignments({'SHOWN': 'new'}, dialect)}\nenv\n", fifo)
    assert b"\nSHOWN=new\n" in b"\n" + done.stdout


@pytest.mark.parametrize("dialect", ["bash", "zsh"])
def test_values_of_the_shells_own_making_are_read(dialect: str, fifo: Path) -> None:
    if shutil.which(dialect) is None:
        pytest.skip(f"{dialect} is not installed")
    script = "typeset -i n=41+1; typeset -r fixed=1; typeset -a bare; typeset -x later; export out=2\n"
    names = ["n", "fixed", "bare", "out", "SECONDS", "PATH"]
    records, _ = run(dialect, script + query(names, dialect, NUMBER, str(fifo)) + "\n", fifo)
    found = values(records)
    assert found["n"] == "42" and found["fixed"] == "1" and found["bare"] == [] and found["out"] == "2"
    assert found["SECONDS"] and found["PATH"] == os.environ["PATH"]


@pytest.mark.skipif(shutil.which("fish") is None, reason="fish is not installed")
def test_fish_reads_lists_of_one_and_paths_as_strings(fifo: Path) -> None:
    given_values = {"one": ["a"], "MY_PATH": "/a:/b", "PATH": ["/a", "/b"]}
    found = pass_through("fish", given_values, fifo)
    assert found == {"one": "a", "MY_PATH": "/a:/b", "PATH": "/a:/b"}


@pytest.mark.skipif(shutil.which("fish") is None, reason="fish is not installed")
def test_fish_keeps_values_that_a_function_assigns(fifo: Path) -> None:
    given_values = {"one": "a", "many": ["a", "b"]}
    script = f"function cell\n{assignments(given_values, 'fish')}\nend\ncell\n"
    records, _ = run("fish", script + query(list(given_values), "fish", NUMBER, str(fifo)) + "\n", fifo)
    assert values(records) == given_values


def test_numbers_paths_and_arrays_of_other_libraries_become_text(fifo: Path) -> None:
    class Array:
        def tolist(self) -> list[object]:
            return [1, 2.5, True]

    given_values = {
        "i": 10**30, "f": 1.5, "b": True, "d": Decimal("1.10"), "p": Path("/x y"), "raw": b"\xff", "t": (1, "a"),
        "r": range(3), "a": Array(), "m": {1: Path("z")},
    }  # fmt: skip
    assert pass_through("bash", given_values, fifo) == {
        "i": "1" + "0" * 30, "f": "1.5", "b": "True", "d": "1.10", "p": "/x y", "raw": "\udcff", "t": ["1", "a"],
        "r": ["0", "1", "2"], "a": ["1", "2.5", "True"], "m": {"1": "z"},
    }  # fmt: skip


@pytest.mark.parametrize(
    ("value", "dialect", "word"),
    [
        ("a\0b", "bash", "NUL"),
        (["a\0b"], "fish", "NUL"),
        ({"a\0": "b"}, "zsh", "NUL"),
        ("\ud800", "bash", "surrogate"),
        ({1, 2}, "bash", "a set cannot"),
        ([["a"]], "bash", "a list cannot"),
        ([None], "zsh", "a NoneType cannot"),
        (["a"], "sh", "no arrays"),
        ({}, "sh", "no associative arrays"),
        ({"a": "b"}, "fish", "no associative arrays"),
        ({"": "b"}, "bash", "empty key"),
        ("a", "tcsh", "known are bash, zsh, sh, fish"),
    ],
)
def test_what_a_shell_cannot_hold_is_refused_in_one_line(value: object, dialect: str, word: str) -> None:
    with pytest.raises(UsageMistake, match=word) as caught:
        assignments({"v": value}, dialect)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize("name", ["", "1a", "a-b", "a b", "é", "a\n", "__sm_k", "a" * 200 + "!"])
def test_a_bad_name_is_refused_both_ways(name: str) -> None:
    with pytest.raises(UsageMistake):
        assignments({name: "x"}, "bash")
    with pytest.raises(UsageMistake):
        query([name], "bash", 1, "/f")
    with pytest.raises(UsageMistake):
        check_variable_names([name])


@pytest.mark.parametrize(("name", "dialect"), [("_", "sh"), ("BASHOPTS", "bash"), ("path", "zsh"), ("status", "fish")])
def test_names_of_the_shell_itself_can_be_read_but_not_set(name: str, dialect: str) -> None:
    with pytest.raises(UsageMistake, match="another name"):
        assignments({name: "x"}, dialect)
    assert query([name], dialect, 1, "/f")


def test_a_line_end_of_two_characters_never_stands_in_the_text() -> None:
    assert all("\r\n" not in quoted("a\r\nb\r\n\r\n", dialect) for dialect in SHELLS)


@pytest.mark.parametrize(
    "records",
    [
        [b"x"], [b"x\tstring\t1"], [b"x\tarray\t2", b"a"], [b"x\tmap\t1", b"a"], [b"x\tarray\t-1"],
        [b"x\twhat\t0"], [b"\xff"],
    ],
)  # fmt: skip
def test_damaged_answers_are_an_error(records: Sequence[bytes]) -> None:
    with pytest.raises(SessionError, match="ask again"):
        values(records)
