"""``%session expect``: what holds, what does not and how that is told, in every shell, elsewhere, and in a kernel."""

from __future__ import annotations

import contextlib
import json
import shutil
from collections.abc import Iterator, Sequence
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

import farplaces
from conftest import LiveKernel
from live import live_kernel
from rounds import until
from session_magics import Command, Registry
from session_magics.errors import UsageMistake
from session_magics.run import run_cell
from session_magics.teaching.checks import Assessment, Check
from session_magics.teaching.evidence import CONTENT_BYTES, look_there
from session_magics.teaching.spelling import distance, nearest
from session_magics.teaching.words import words_of
from session_magics.verbs.actions import Verbs
from session_magics.verbs.parser import parse_words

home, place, there = farplaces.home, farplaces.place, farplaces.there

SHELLS = ("bash", "zsh", "dash", "fish")
# What has to hold after COMMAND, and what does not, each with what the learner is told.
COMMAND = "cd lesson; mkdir notes; printf 'pear\\napple\\n' >fruit.txt; chmod +x fruit.txt; cat fruit.txt | sort"
HOLDS = (
    ("--status 0", "the command succeeded"),
    ("--contains apple", "the output has “apple”"),
    ("--lacks plum", "the output does not have “plum”"),
    ("--matches ^pear$", "the output matches “^pear$”"),
    ("--file fruit.txt", "“fruit.txt” exists"),
    ("--file notes/", "“notes/” exists"),
    ("--no-file plum.txt", "there is no “plum.txt”"),
    ("--file-contains fruit.txt=pear", "“fruit.txt” has “pear” in it"),
    ("--executable fruit.txt", "“fruit.txt” is executable"),
    ("--cwd lesson", "the shell is in the directory “lesson”"),
    ("--variable FRUIT=pear", "the variable FRUIT is “pear”"),
    ("--command-used sort", "the command uses “sort”"),
    ("--command-used |", "the command uses “|”"),
)
FAILS = (
    ("--status 1", "the command should end with status 1, but it succeeded", ""),
    ("--contains plum", "the output should have “plum”", "it was:\napple\npear"),
    ("--lacks apple", "the output should not have “apple”", "it was:\napple\npear"),
    ("--matches ^p$", "the output should match “^p$”", "it was:\napple\npear"),
    ("--file fruits.txt", "“fruits.txt” should exist", "there is no such file, but there is “fruit.txt”"),
    ("--file fruit.txt/", "“fruit.txt/” should exist", "it is a file and no directory"),
    ("--no-file notes", "“notes” should be gone", ""),
    ("--file-contains fruit.txt=plum", "“fruit.txt” should have “plum” in it", "it has:\npear\napple"),
    ("--file-contains notes=plum", "“notes” should have “plum” in it", "it is a directory"),
    ("--executable notes", "“notes” should be executable", "it is a directory"),
    ("--cwd lessons", "the shell should be in the directory “lessons”", "it is in "),
    ("--variable FRUIT=plum", "the variable FRUIT should be “plum”", "it is “pear”"),
    ("--variable VEGETABLE=plum", "the variable VEGETABLE should be “plum”", "it is not set"),
    ("--command-used grep", "the command should use “grep”", "the command was:\ncd lesson"),
)


def expect(registry: Registry, *words: str) -> Assessment:
    value = Verbs(registry, lambda text: None).call(parse_words(("expect", *words)))
    assert isinstance(value, Assessment)
    return value


@pytest.fixture
def registry(root: Path) -> Iterator[Registry]:
    registry = Registry(root)
    yield registry
    registry.stop_all()


@pytest.mark.parametrize("shell", SHELLS)
def test_each_check_says_what_holds_and_what_was_there_instead(registry: Registry, root: Path, shell: str) -> None:
    if shutil.which(shell) is None:
        pytest.skip(f"needs {shell}")
    (root / "lesson").mkdir()
    session = registry.shell("main", shell=shell, rc=False, cwd=str(root))
    run_cell(session, "set -g FRUIT pear" if shell == "fish" else "FRUIT=pear")
    run_cell(session, COMMAND)
    good = expect(registry, *[word for option, _ in HOLDS for word in option.split(" ")])
    assert sorted(check.text for check in good.checks) == sorted(text for _, text in HOLDS)
    assert (good.ok, good.score) == (True, 1.0)
    for option, text, found in FAILS:
        bad = expect(registry, *option.split(" "))
        assert [check.text for check in bad.checks] == [text]
        assert bad.checks[0].found.startswith(found)
        assert bad.checks[0].found or not found
        assert (bad.ok, bad.score) == (False, 0.0)
    half = expect(registry, "main", "--contains", "plum", "--contains", "apple", "--hint", "look for plums")
    assert half.score == 0.5
    assert str(half).endswith("Hint: look for plums")


def test_the_status_is_what_counts_where_nothing_is_said(registry: Registry) -> None:
    session = registry.shell("other", shell="bash", rc=False)
    assert expect(registry, "other").checks[0].text == "no command has been run yet in session 'other'"
    run_cell(session, "nosuchcommand", check=False)
    assert expect(registry, "other").checks[0].text == "the command should succeed, but it was not found (status 127)"
    assert expect(registry, "other", "--status", "127").ok
    run_cell(session, "\n# nothing")
    assert expect(registry, "other").checks[0].text == "there is no command in the last cell in session 'other'"
    assert expect(registry, "other", "--file", "/").ok
    assert "no command has been run yet" in expect(registry).checks[0].text
    with contextlib.closing(session.cell("read line")) as cell:
        until(lambda: session.command())
        assert "still running" in expect(registry, "other").checks[0].text
        cell.interrupt()
        until(lambda: session.command() is None)


def test_a_program_has_no_commands_to_check(registry: Registry) -> None:
    registry.start("program", Command(("sleep", "1000")))
    with pytest.raises(UsageMistake, match="no shell of ours"):
        expect(registry, "program")


def test_looking_leaves_no_trace_in_the_shell(registry: Registry) -> None:
    session = registry.shell("main", shell="bash", rc=False)
    run_cell(session, "trap 'echo trapped' DEBUG; set -x; X=1; false", check=False)
    expect(registry, "--variable", "X=1", "--file", "x")
    shown = run_cell(session, 'echo "$?"')
    assert session.output(shown.begin, shown.end).decode().splitlines()[-1:] == ["1"]


# ---------------------------------------------------------------- elsewhere


@pytest.mark.parametrize("shell", ["bash", "sh"])
def test_files_elsewhere_are_seen_by_the_shell_there(there: Registry, shell: str) -> None:
    session = there.shell("s", shell=shell, rc=False)
    run_cell(
        session,
        r"mkdir 'a b'; cd 'a b'; printf 'x\000y\n' >-f; chmod +x ./-f; mkfifo pipe; head -c 300000 /dev/zero >big",
    )
    run_cell(session, "set -eu; ls() { echo mine; }; false || echo 'on'")
    real, home, found = look_there(session, "", ("-f", "pipe", "big", ".", "~/a b/-f", "gone", "~/nowhere/x", "/"))
    assert (Path(real).name, Path(home) in Path(real).parents) == ("a b", True)
    assert (found["-f"].kind, found["-f"].executable, found["-f"].content) == ("file", True, "xy\n")
    assert found["~/a b/-f"] == found["-f"]
    kinds = {path: one.kind for path, one in found.items()}
    assert kinds == {
        "-f": "file", "pipe": "other", "big": "file", ".": "directory", "~/a b/-f": "file",
        "gone": "", "~/nowhere/x": "", "/": "directory",
    }  # fmt: skip
    assert sorted(found["gone"].names) == ["-f", "big", "pipe"]
    assert found["~/nowhere/x"].names == ()
    run_cell(session, "echo still here")


# ---------------------------------------------------------------- a kernel


@pytest.fixture(scope="module")
def kernel_cells(client_loop: None) -> Iterator[LiveKernel]:
    with live_kernel() as live:
        yield live


@pytest.mark.kernel
def test_a_cell_shows_it_as_text_and_as_a_page(kernel_cells: LiveKernel) -> None:
    live = kernel_cells
    assert "no command has been run yet" in live.run("%session expect").text
    live.run("%%sh_session\necho '<b>'\ngrep x /dev/null; true")
    shown = live.run("%session expect --contains plum --command-used grep --hint 'a & b'")
    assert shown.status == "ok"
    [output] = [one for one in shown.record.outputs if one["html"]]
    assert output["text"].splitlines()[:3] == [
        "✗ Not yet: 1 of 2 checks hold", "  ✓ the command uses “grep”", "  ✗ the output should have “plum”",
    ]  # fmt: skip
    for part in ("&lt;b&gt;", "a &amp; b", "✗", "✓"):
        assert part in output["html"]


@pytest.mark.kernel
def test_strict_is_one_line_and_an_error_of_the_cell(kernel_cells: LiveKernel) -> None:
    live = kernel_cells
    live.run("%%sh_session strict\necho apple")
    assert live.run("%session expect strict --contains apple --strict").status == "ok"
    bad = live.run("%session expect strict --contains plum --contains apple --strict --hint 'look again'")
    told = "1 of 2 checks failed: the output should have “plum”; hint: look again"
    assert bad.error == f"CheckFailed: {told}"
    assert len(bad.record.error["traceback"]) == 1
    values = live.run("r = %session expect strict --contains plum --contains apple\nprint(r.ok, r.score)")
    assert values.text == "False 0.5\n"
    told_json = json.loads(live.run("x = %session expect strict --json\nprint(x)").text)
    assert (told_json["value"]["ok"], told_json["value"]["score"]) == (True, 1.0)


# ---------------------------------------------------------------- the pure parts


@pytest.mark.parametrize(
    ("command", "words"),
    [
        ("ls -l|sort>out # grep", "ls -l | sort > out"),
        ("echo 'use grep' a#b \"x $(wc -l)\"", "echo use·grep a#b x·$(wc·-l) wc -l"),
        ('for f in *.txt; do\n  cat "$f" \\\n  && rm a\\ b; done', "for f in *.txt ; do ⏎ cat $f && rm a·b done"),
        ("cat <<< a >> b 2>&1", "cat <<< a >> b 2 > & 1"),
        ("it's open", "it's open"),
    ],
)
def test_words_are_what_the_shell_reads(command: str, words: str) -> None:
    assert words_of(command) == {word.replace("·", " ").replace("⏎", "\n") for word in words.split()}


@given(st.one_of(st.text(), st.text(alphabet="abc '\"$()#|\\\n")))
def test_any_text_is_read_to_its_end(text: str) -> None:
    assert words_of("first " + text + "\n' \";last") & {"first"}
    assert "last" in words_of(text + "\n'\"';last") | words_of(text + '\n"\'";last') | words_of(text + "\n;last")


def slips(one: Sequence[str], other: Sequence[str]) -> int:
    """The distance by its definition, slowly."""
    if not one or not other:
        return len(one) + len(other)
    ways = [slips(one[1:], other) + 1, slips(one, other[1:]) + 1, slips(one[1:], other[1:]) + (one[0] != other[0])]
    if len(one) > 1 < len(other) and one[0] == other[1] and one[1] == other[0]:
        ways.append(slips(one[2:], other[2:]) + 1)
    return min(ways)


@given(st.text("abc", max_size=5), st.text("abc", max_size=5), st.integers(0, 6))
def test_the_distance_is_that_of_the_definition(one: str, other: str, limit: int) -> None:
    assert distance(one, other, limit) == min(slips(one, other), limit + 1)


@pytest.mark.parametrize(
    ("word", "names", "near"),
    [
        ("grpe", ["grep", "gawk", "tree"], ["grep"]),
        ("sl", ["ls", "sh", "ll"], ["ls"]),
        ("LS", ["ls", "lsd"], ["ls"]),
        ("fruits.txt", ["fruit.txt", "friends.txt"], ["fruit.txt"]),
        ("x", ["y", "ls"], []),
        ("xyzzy", ["bash", "cat"], []),
    ],
)
def test_what_was_meant_is_near_or_not_guessed(word: str, names: list[str], near: list[str]) -> None:
    assert nearest(word, names, frozenset({"ls", "grep"})) == near


def test_a_file_is_looked_at_up_to_a_limit(registry: Registry, tmp_path: Path) -> None:
    (tmp_path / "big").write_text("a" * CONTENT_BYTES + "end")
    run_cell(registry.shell("main", shell="bash", rc=False, cwd=str(tmp_path)), "true")
    assert not expect(registry, "--file-contains", "big=end").ok
    assert expect(registry, "--file-contains", "big=aa").ok


def test_an_assessment_without_a_failure_shows_no_hint() -> None:
    assert str(Assessment("main", (Check("status", "0", True, "fine"),), "never shown")) == "✓ Correct\n  ✓ fine"
