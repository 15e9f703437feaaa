"""Every option of ``%%sh_session``, in a real kernel. Each test has a session name of its own."""

from __future__ import annotations

import re
from collections.abc import Iterator

import pytest

from conftest import LiveKernel
from live import live_kernel, run_with, until

pytestmark = pytest.mark.kernel


@pytest.fixture(scope="module")
def shared(client_loop: None) -> Iterator[LiveKernel]:
    with live_kernel() as live:
        yield live


def value(live: LiveKernel, expression: str) -> str:
    """The repr of a Python expression in the kernel."""
    outcome = live.run(f"print(repr(({expression})), end='')")
    assert outcome.status == "ok", outcome.error
    return outcome.text


# ------------------------------------------------------------------ --out, --result


@pytest.mark.parametrize(
    ("body", "kept"),
    [
        ("echo a; echo b >&2", "a\nb\n"),
        (r"printf '10%%\r100%%\n'", "100%\n"),
        (r"printf '\e[31mred\e[0m no end'", "red no end"),
        (r"printf '\xff\xc3'", "��"),
        (":", ""),
    ],
)
def test_out_has_the_text_without_control_characters(shared: LiveKernel, body: str, kept: str) -> None:
    shared.run(f"%%sh_session out --out text\n{body}")
    assert value(shared, "text") == repr(kept)


def test_result_has_status_offsets_duration_and_directory(shared: LiveKernel) -> None:
    took = shared.run("%%sh_session result --result r --no-raise-error\ncd /; echo four; (exit 4)").record.elapsed
    parts = value(shared, "(r.session, r.returncode, r.state, r.cwd, r.end - r.begin, r.text.split(';')[0], r.exact)")
    assert parts == repr(("result", 4, "done", "/", 5, "cd /", True))
    assert value(shared, f"0 < r.duration < {took}") == "True"


@pytest.mark.parametrize("ending", ["false", "exit 7", "kill -9 $$"])
def test_out_and_result_are_there_after_a_failure_too(shared: LiveKernel, ending: str) -> None:
    outcome = shared.run(
        "text = r = None\n"
        f"get_ipython().run_cell_magic('sh_session', 'fails --out text --result r', '''echo shown; {ending}''')"
    )
    assert outcome.error.startswith("CellCommandError")
    assert value(shared, "text, r.returncode == _exit_code != 0") == "('shown\\n', True)"


# ------------------------------------------------------------------ --set, --get

HARD = [
    "",
    " two  spaces ",
    'it\'s "quoted" `x` $HOME $(x) \\ \\n *?[a] ~ # ! & ; |',
    "line\nline\n\n",
    "tab\tbell\x07esc\x1b[31m\r",
    "ünïcödé 日本 🦊",
    "-n",
    "a" * 100_000,
    [],
    ["", "a b", "-e", "*", "\n"],
    {"key one": "1", "a]": "$x"},
]


@pytest.mark.parametrize("hard", HARD, ids=lambda hard: repr(hard)[:20])
def test_a_value_comes_back_as_it_went(shared: LiveKernel, hard: object) -> None:
    shared.run(f"there = {hard!r}; back = None")
    copy = {
        str: "back=$there",
        list: 'back=("${there[@]}")',
        dict: 'unset back; declare -A back; for k in "${!there[@]}"; do back[$k]=${there[$k]}; done',
    }[type(hard)]
    outcome = shared.run(f"%%sh_session values --set there --get back\n{copy}")
    assert outcome.status == "ok", outcome.text + outcome.error
    assert value(shared, "back == there") == "True"


def test_numbers_paths_and_none_go_as_they_are_written(shared: LiveKernel) -> None:
    shared.run("from pathlib import Path\nn, f, p, gone = 42, 1.5, Path('/a b'), None")
    outcome = shared.run('%%sh_session values --set n,f --set p,gone\necho "$n|$f|$p|${gone-unset}"')
    assert outcome.text == "42|1.5|/a b|unset\n"


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("--set nothere", "Python has no variable nothere"),
        ("--set nothere,n2", "Python has no variable nothere, n2"),
        ("--set thing", "thing"),
        ("--set nul", "NUL"),
        ("--set UID", "UID"),
        ("--set 1x", "1x"),
        ("--set ,", "at least one"),
        ("--get __sm_x", "__sm_"),
        ("--get 'a b'", "a b"),
        ("--set locked", "readonly"),
    ],
)
def test_what_cannot_be_set_is_an_error_and_nothing_runs(shared: LiveKernel, line: str, message: str) -> None:
    shared.run("thing, nul, UID, locked = object(), 'a\\0b', 1, 2")
    shared.run("%%sh_session refused\nran=no; (readonly locked) 2>/dev/null; readonly locked 2>/dev/null; :")
    outcome = shared.run(f"%%sh_session refused {line}\nran=yes")
    assert outcome.text.startswith("UsageError: ")
    assert message in outcome.text
    assert outcome.text.count("\n") == 1
    assert shared.run("%%sh_session refused\necho $ran").text == "no\n"


def test_a_variable_that_the_shell_lacks_is_named_and_the_others_are_there(shared: LiveKernel) -> None:
    outcome = shared.run("%%sh_session lacks --get have,lack\nhave=1")
    assert (outcome.status, outcome.text) == ("error", "UsageError: --get: the shell has no variable lack\n")
    outcome = shared.run("%%sh_session lacks --get lack --no-raise-error\nfalse")
    assert (outcome.status, outcome.text) == ("error", "UsageError: --get: the shell has no variable lack\n")
    assert value(shared, "have") == "'1'"


def test_the_error_of_a_command_is_not_hidden_by_what_it_did_not_set(shared: LiveKernel) -> None:
    outcome = shared.run("%%sh_session lacks2 --get before,after\nbefore=1; exit 3; after=2")
    assert "exit status 3" in outcome.error


# ------------------------------------------------------------------ how the shell is started


def test_environment_directory_and_size_are_those_asked_for(shared: LiveKernel) -> None:
    outcome = shared.run(
        '%%sh_session fresh --cwd /usr --env "A=1 $x" --env B= --size 30x99\necho "$A|${B-unset}|$PWD"; stty size'
    )
    assert outcome.text == "1 $x||/usr\n30 99\n"


@pytest.mark.parametrize(
    ("option", "again"), [("--cwd /", "--cwd /usr"), ("--env A=1", "--env A=2"), ("--size 30x99", "--size 31x99")]
)
def test_an_option_that_comes_too_late_is_told_and_the_same_again_is_not(
    shared: LiveKernel, option: str, again: str
) -> None:
    name = "late" + option[2:5]
    for _ in range(2):
        assert shared.run(f"%%sh_session {name} {option}\necho ok").text == "ok\n"
    told = f"session-magics: {option.split()[0]} had no effect: the shell of session '{name}' runs already\nok\n"
    assert shared.run(f"%%sh_session {name} {again}\necho ok").text == told


def test_the_start_up_file_is_read_unless_told_not_to(shared: LiveKernel) -> None:
    (shared.cells.root / "home" / ".bashrc").write_text("RC=read\n")
    assert shared.run("%%sh_session rc1\necho [$RC]").text == "[read]\n"
    assert shared.run("%%sh_session rc2 --no-rc\necho [$RC]").text == "[]\n"


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("bad1 --shell nosuch", "no shell 'nosuch' on this machine"),
        ("bad2 --cwd /nosuch", "no such file or directory: '/nosuch'"),
        ("bad3 --size 0x80", "no terminal size"),
        ("bad4 --lifetime forever", "forever"),
        ("bad5 --env novalue", "no KEY=VALUE"),
        ("../x", "no session name"),
        ("two words", "one session name at most"),
        ("--nope", "no option '--nope'"),
        ("--timeout 0", "leaves no time"),
        ("--limit -1", "--limit"),
        ("--out 1x", "no name of a Python variable"),
        ("--bg --get x", "--bg"),
        ("'open", "inside a quote"),
    ],
)
def test_a_wrong_line_is_one_line_of_error(shared: LiveKernel, line: str, message: str) -> None:
    outcome = shared.run(f"%%sh_session {line}\necho never")
    assert outcome.status == "error"
    assert re.fullmatch(r"UsageError: .*\n", outcome.text), outcome.text
    assert message in outcome.text


def test_a_session_that_runs_a_program_is_no_shell(shared: LiveKernel) -> None:
    shared.run("%session start program -- sleep 600")
    assert "runs sleep, no shell" in shared.run("%%sh_session program\necho never").text
    shared.run("%%sh_session bashed\n:")
    assert "/bash already" in shared.run("%%sh_session bashed --shell dash\necho never").text
    assert shared.run("%%sh_session bashed --shell bash\necho ok").text == "ok\n"


# ------------------------------------------------------------------ --limit, --timeout, --no-raise-error


@pytest.mark.parametrize(
    ("limit", "shown"),
    [
        ("0", "… 3,893 bytes not shown: %session tail limits has them …\n"),
        ("100", r"1\n2\n(\d+\n)*… 3,\d{3} bytes not shown: %session tail limits has them …\n(\d+\n)*999\n1000\n"),
        ("3893", r"1\n(\d+\n){998}1000\n"),
        ("3892", r"1\n(\d+\n)*… 1?\d bytes not shown: %session tail limits has them …\n(\d+\n)*1000\n"),
        ("1kB", r"1\n(\d+\n)*… 2,\d{3} bytes not shown: %session tail limits has them …\n(\d+\n)*1000\n"),
    ],
)
def test_the_limit_bounds_what_is_shown(shared: LiveKernel, limit: str, shown: str) -> None:
    outcome = shared.run(f"%%sh_session limits --limit {limit} --out whole\nseq 1000")
    assert re.fullmatch(shown, outcome.text), outcome.text
    assert value(shared, "len(whole)") == "3893"


@pytest.mark.parametrize("body", ["sleep 600", "while :; do :; done", "trap '' INT; sleep 600"])
def test_the_time_limit_ends_what_runs_and_says_so(shared: LiveKernel, body: str) -> None:
    shared.run("%%sh_session timed\nKEPT=1")
    outcome = shared.run(f"%%sh_session timed --timeout 0.3\n{body}")
    assert outcome.error.startswith("CellCommandError: ")
    assert "timed out after 0.3 s" in outcome.error
    assert shared.run("%%sh_session timed\necho $KEPT; trap - INT; unset KEPT").text == "1\n"


def test_a_failure_that_is_allowed_raises_nothing_and_keeps_its_status(shared: LiveKernel) -> None:
    outcome = shared.run("%%sh_session allowed --no-raise-error\necho x; exit 5")
    assert outcome.status == "ok"
    assert value(shared, "_exit_code") == "5"
    assert shared.run("%%sh_session allowed --no-raise-error --timeout 0.2\nsleep 9").status == "ok"
    assert value(shared, "_exit_code") == "130"


# ------------------------------------------------------------------ --bg


def test_background_output_belongs_to_the_cell_that_started_it(shared: LiveKernel) -> None:
    started = shared.run(
        "%%sh_session bg1 --bg --out text --result r\n"
        "echo one; until [ -e go ]; do sleep 0.02; done; echo two; (exit 3)"
    )
    assert started.status == "ok"  # although it waits for the next cell
    other = shared.run("open('go', 'w').close()\nprint('other')")
    until(shared, lambda: "status 3" in started.record.text())
    assert started.record.text() == "one\ntwo\nsession-magics: the background command ended with status 3\n"
    assert other.record.text() == "other\n"
    assert value(shared, "text, r.returncode") == "('one\\ntwo\\n', 3)"


def test_a_background_command_keeps_its_session_busy_and_no_other(shared: LiveKernel) -> None:
    started = shared.run("%%sh_session bg2 --bg\nsleep 600 # long")
    for line in ("bg2", "bg2 --bg"):
        refused = shared.run(f"%%sh_session {line}\necho never")
        assert refused.text == (
            "UsageError: session 'bg2' is busy (sleep 600 # long): wait for it, or %session interrupt bg2\n"
        )
    stopped = run_with(shared, "%%sh_session bg3\necho go; sleep 600", ("go", lambda: shared.cells.interrupt(False)))
    assert stopped.error.startswith("CellInterrupted")
    assert "busy" in shared.run("%%sh_session bg2\necho never").text
    shared.run("%session interrupt bg2")
    until(shared, lambda: "status 130" in started.record.text())
    assert shared.run("%%sh_session bg2\necho free").text == "free\n"


def test_a_background_command_has_its_time_limit_and_nobody_to_ask(shared: LiveKernel) -> None:
    started = shared.run("%%sh_session bg4 --bg --timeout 0.2\nsleep 600")
    until(shared, lambda: "timed out after 0.2 s" in started.record.text())
    started = shared.run("%%sh_session bg4 --bg\nread -p 'Name? ' name")
    until(shared, lambda: "it asked for input" in started.record.text())
    assert not started.record.asked


def test_a_progress_bar_in_the_background_rewrites_its_own_cell(shared: LiveKernel) -> None:
    started = shared.run(r"%%sh_session bg5 --bg" "\nfor i in 1 2 3; do printf '\\r%d%%' $i; sleep 0.1; done; echo")
    other = shared.run("print('stays')")
    until(shared, lambda: started.record.text() == "3%\n")
    assert other.record.text() == "stays\n"
