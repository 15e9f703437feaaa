"""The magics as part of IPython: defaults, loading, errors, other magics around them, several kernels."""

from __future__ import annotations

import re
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path

import psutil
import pytest

from conftest import CELL_LIMIT, LiveKernel, Outcome
from live import live_kernel, run_with

pytestmark = pytest.mark.kernel
# Bytes that a kernel may grow by while a cell prints thirty megabytes.
GROWTH = 10 * 2**20
# A command that shows how far it is, and how one acts on that (see run_with).
Bar = tuple[str, tuple[str, Callable[[], object]]]


@pytest.fixture(scope="module")
def shared(client_loop: None) -> Iterator[LiveKernel]:
    with live_kernel() as live:
        yield live


def cell_from_python(name: str, body: str) -> str:
    return f"get_ipython().run_cell_magic('sh_session', {name!r}, {body!r})"


# ------------------------------------------------------------------ defaults


@pytest.fixture
def configured(shared: LiveKernel) -> Iterator[LiveKernel]:
    """The kernel for a test that sets defaults; IPython keeps what %config was told, also what was refused."""
    yield shared
    lines = (
        "limit = 2_000_000",
        "shell_program = 'bash'",
        "lifetime = 'kernel'",
        "timeout = None",
        "size = ''",
        "rc = True",
        "backend = 'auto'",
    )
    for line in lines:
        assert shared.run(f"%config SessionMagics.{line}").text == ""


def test_a_default_holds_where_no_option_is_given(configured: LiveKernel) -> None:
    for line in ("limit = 10", "shell_program = 'dash'", "size = '33x99'", "rc = False"):
        assert configured.run(f"%config SessionMagics.{line}").text == ""
    assert configured.run("%%sh_session default1\nstty size").text == "33 99\n"
    assert "bytes not shown" in configured.run("%%sh_session default1\nseq 100").text
    assert "bytes not shown" not in configured.run("%%sh_session default1 --limit 1MB\nseq 100").text
    assert configured.run("%%sh_session default1 --out o\nps -o comm= -p $$").status == "ok"
    assert configured.run("print(o, end='')").text == "dash\n"
    assert configured.run("%config SessionMagics.timeout = 0.2").text == ""
    assert "timed out after 0.2 s" in configured.run("%%sh_session default1\nsleep 600").error
    assert configured.run("%%sh_session default1 --timeout 25\nsleep 0.3").status == "ok"


@pytest.mark.skipif(shutil.which("tmux") is None, reason="needs tmux")
def test_tmux_can_be_preferred(configured: LiveKernel) -> None:
    assert configured.run("%config SessionMagics.backend = 'tmux'").text == ""
    assert configured.run("%session start preferred sleep 1000").status == "ok"
    assert configured.run("%session start other --backend native -- sleep 1000").status == "ok"
    assert re.search(r"backend +tmux", configured.run("%session info preferred").text)
    assert re.search(r"backend +native", configured.run("%session info other").text)
    assert configured.run("%session remove --force preferred other").status == "ok"
    assert "tmux holds no shells" in configured.run("%session start main --shell bash --backend tmux").text


def test_the_default_shell_is_taken_again_after_a_stop(configured: LiveKernel) -> None:
    configured.run("%config SessionMagics.shell_program = 'dash'")
    for _ in range(2):
        assert configured.run("%%sh_session default2\nps -o comm= -p $$").text == "dash\n"
        configured.run("%session stop default2")


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("limit = -1", "limit"),
        ("limit = 'x'", "limit"),
        ("size = '0x80'", "no terminal size"),
        ("size = 'big'", "no terminal size"),
        ("timeout = 0", "no time limit"),
        ("timeout = float('nan')", "no time limit"),
        ("timeout = 'x'", "timeout"),
        ("shell_program = ''", "empty"),
        ("lifetime = 'forever'", "forever"),
        ("backend = 'screen'", "screen"),
    ],
)
def test_a_wrong_default_is_refused_in_one_line_and_changes_nothing(
    configured: LiveKernel, line: str, message: str
) -> None:
    name = line.split()[0]
    before = configured.run(f"%config SessionMagics.{name}").text
    told = configured.run(f"%config SessionMagics.{line}").text
    assert message in told
    assert told.count("\n") == 1
    assert configured.run(f"%config SessionMagics.{name}").text == before


def test_a_default_shell_that_does_not_exist_is_told_by_the_cell(configured: LiveKernel) -> None:
    configured.run("%config SessionMagics.shell_program = 'nosuch'")
    assert "no shell 'nosuch'" in configured.run("%%sh_session default3\necho never").text


# ------------------------------------------------------------------ loading


def test_loading_twice_is_harmless_and_a_reload_keeps_the_sessions(shared: LiveKernel) -> None:
    shared.run("%%sh_session loaded\nV=1")
    for line in ("%load_ext session_magics", "%reload_ext session_magics", "%reload_ext session_magics"):
        assert shared.run(line).status == "ok"
        assert shared.run("%%sh_session loaded\necho $V").text == "1\n"
    assert (
        shared.run("print(sum(type(c).__name__ == 'SessionMagics' for c in get_ipython().configurables))").text == "1\n"
    )


def test_unloading_takes_the_magics_away_and_leaves_the_sessions(shared: LiveKernel) -> None:
    shared.run("%%sh_session unloaded\nV=1")
    assert shared.run("%unload_ext session_magics").status == "ok"
    assert "not found" in shared.run("%%sh_session unloaded\necho $V").text
    assert "not found" in shared.run("%session list").text
    shared.run("%load_ext session_magics")
    assert shared.run("%%sh_session unloaded\necho $V").text == "1\n"


def test_a_default_that_is_set_after_a_reload_counts(configured: LiveKernel) -> None:
    configured.run("%reload_ext session_magics")
    configured.run("%config SessionMagics.limit = 10")
    assert "bytes not shown" in configured.run("%%sh_session reloaded\nseq 100").text


def test_help_is_text_and_no_error(shared: LiveKernel) -> None:
    for line in ("--help", "-h", "somewhere --help"):
        outcome = shared.run(f"%%sh_session {line}\necho never")
        assert outcome.status == "ok"
        assert "usage: %%sh_session [NAME] [options]" in outcome.text
        assert "never" not in outcome.text
    shown = shared.run("print(get_ipython().find_cell_magic('sh_session').__doc__)").text
    assert shown.startswith("Run the cell in a shell that lives on between cells.")


# ------------------------------------------------------------------ errors


def test_a_failure_is_a_called_process_error_of_two_lines(shared: LiveKernel) -> None:
    outcome = shared.run("%%sh_session error1\n\nls /nosuch  # what failed\necho more; (exit 3)")
    plain = [re.sub(r"\x1b\[\d*m", "", line) for line in outcome.record.error["traceback"]]
    assert plain == ["CellCommandError: exit status 3 in session 'error1'", "  in: ls /nosuch  # what failed"]
    assert outcome.record.error["ename"] == "CellCommandError"


@pytest.mark.parametrize(
    ("body", "status", "after"),
    [
        ("true", "0", ""),
        ("false", "1", ""),
        ("exit 9", "9", "restarted"),
        ("nosuchcommand", "127", ""),
        ("kill -9 $$", "-9", "restarted"),
        ("exec false", "1", "restarted"),
        ("if", "2", ""),
    ],
)
def test_the_status_is_in_the_error_in_exit_code_and_in_the_shell(
    shared: LiveKernel, body: str, status: str, after: str
) -> None:
    shared.run("%%sh_session error2\ntrue")
    outcome = shared.run(
        "import subprocess\n_exit_code = None\ntry:\n"
        f"    {cell_from_python('error2', body)}\n    print('ok 0', end='')\n"
        "except subprocess.CalledProcessError as error:\n    print(type(error).__name__, error.returncode, end='')"
    )
    assert outcome.text.endswith("ok 0" if status == "0" else f"CellCommandError {status}"), outcome.text
    assert after in outcome.text
    assert shared.run("print(_exit_code, end='')").text == status


def test_a_failing_cell_stops_run_all(shared: LiveKernel) -> None:
    client, gate = shared.cells.client, shared.cells.root / "run-all"
    body = f"until [ -e {gate} ]; do sleep 0.02; done; sleep 0.2; false"  # till the kernel has the second cell as well
    first = client.execute(f"%%sh_session error3\n{body}", stop_on_error=True)
    second = client.execute("%%sh_session error3\necho never")
    gate.touch()
    replies = {}
    while len(replies) < 2:
        reply = client.get_shell_msg(timeout=CELL_LIMIT)
        replies[reply["parent_header"]["msg_id"]] = reply["content"]["status"]
    assert replies == {first: "error", second: "aborted"}
    shared.run("pass")


# ------------------------------------------------------------------ Python around the cell


@pytest.fixture
def bar(shared: LiveKernel) -> Iterator[Bar]:
    """A bar that has its first state until that is seen."""
    seen = shared.cells.root / "seen"
    yield (
        rf"printf '\r1%%'; until [ -e {seen} ]; do sleep 0.02; done; printf '\r2%%'; printf '\r3%%'; echo",
        ("1%", seen.touch),
    )
    seen.unlink(missing_ok=True)


def test_what_was_printed_before_stays_before_and_is_not_cleared(shared: LiveKernel, bar: Bar) -> None:
    outcome = run_with(
        shared,
        "import sys\nprint('one'); print('err', file=sys.stderr); print('two', end=' ')\n"
        f"{cell_from_python('python1', 'echo three')}\nprint('four')\n"
        f"{cell_from_python('python1', bar[0])}\nprint('five')",
        bar[1],
    )
    # ipykernel does not keep the order between the two streams
    assert outcome.text.replace("err\n", "") == "one\ntwo three\nfour\n1%\n3%\nfive\n"
    assert outcome.text.index("err") < outcome.text.index("three")


def test_a_bar_in_a_cell_of_its_own_leaves_its_last_state(shared: LiveKernel, bar: Bar) -> None:
    assert run_with(shared, f"%%sh_session python2\necho head\n{bar[0]}", bar[1]).text == "head\n3%\n"


def test_the_notice_of_a_restart_is_no_output_and_a_bar_spares_it(shared: LiveKernel, bar: Bar) -> None:
    shared.run("%%sh_session python3\n( sleep 0.1; kill -9 $$ ) &")
    shared.run(
        "import time; from session_magics import Registry\n"
        "while Registry().get('python3').info().generation == 1: time.sleep(0.02)"
    )
    text = run_with(shared, f"%%sh_session python3\n{bar[0]}", bar[1]).text
    assert re.fullmatch(r"session-magics: the shell was killed by signal 9; .*\n3%\n", text), text


@pytest.mark.parametrize(
    ("cell", "shown"),
    [
        ("%%capture got\n%%sh_session around\n{body}", ""),
        ("import io, contextlib\ngot = io.StringIO()\nwith contextlib.redirect_stdout(got):\n    {python}", ""),
        ("got = open('got', 'w+')\nwith contextlib.redirect_stdout(got):\n    {python}", ""),
        ("%%time\n%%sh_session around\n{body}", "a\n2\n"),
        ("%%timeit -n1 -r1\n{python}", "a\n2\n"),
        ("%%prun -q\n{python}", "a\n2\n"),
    ],
    ids=["capture", "redirect", "file", "time", "timeit", "prun"],
)
def test_other_magics_and_redirections_see_the_final_text(shared: LiveKernel, cell: str, shown: str) -> None:
    body = r"echo a; printf '1\r2\n'"
    shared.run("got = None")
    outcome = shared.run(cell.format(body=body, python=cell_from_python("around", body)))
    assert outcome.status == "ok", outcome.error
    assert outcome.text.startswith(shown)
    if not shown:
        assert outcome.text == ""
        shared.run("import io")
        code = (
            "got.seek(0) if hasattr(got, 'seek') else None; print(getattr(got, 'stdout', None) or got.read(), end='')"
        )
        assert shared.run(code).text == "a\n2\n"


@pytest.mark.parametrize("line", ["a b", "--nope"])
def test_a_usage_error_is_catchable_from_python(shared: LiveKernel, line: str) -> None:
    call = cell_from_python(line, "x")
    code = f"from IPython.core.error import UsageError\ntry: {call}\nexcept UsageError: print('caught')"
    assert shared.run(code).text == "caught\n"


def test_the_kernel_does_not_grow_with_what_cells_print(shared: LiveKernel) -> None:
    body = "%%sh_session memory\nfor i in 1 2 3; do seq 1 500000; done"
    shared.run("%%sh_session memory\nseq 1 300000")
    process = psutil.Process(shared.pid)
    before = process.memory_info().rss
    for _ in range(3):
        shared.run(body)
    assert process.memory_info().rss - before < GROWTH


# ------------------------------------------------------------------ two kernels


def restart(live: LiveKernel) -> None:
    with open(live.cells.root / "kernel.log", "ab") as log:
        live.cells.manager.restart_kernel(now=True, stdout=log, stderr=log)
    live.cells.client.wait_for_ready(timeout=60)
    assert live.run("%load_ext session_magics").status == "ok"


def test_two_kernels_share_a_detached_session_and_adopt_it_after_a_restart(kernel: LiveKernel, root: Path) -> None:
    other = LiveKernel(root)
    other.start()
    try:
        detached = "%%sh_session together --lifetime detached\n"
        kernel.run(detached + "V=1; cd /usr")
        assert other.run(detached + "echo $V $PWD; V=2").text == "1 /usr\n"
        assert kernel.run("%%sh_session together\necho $V").text == "2\n"
        assert kernel.run("%%sh_session alone\nV=mine").status == "ok"
        assert other.run("%%sh_session alone\necho [$V]").text == "[]\n"

        def refused() -> None:
            texts.append(other.run("%%sh_session together\necho never").text)
            other.run("%session interrupt together")

        texts: list[str] = []
        ended = run_with(kernel, "%%sh_session together\necho go; sleep 600", ("go", refused))
        assert "session 'together' is busy (echo go; sleep 600)" in texts[0]
        assert ended.error.startswith("CellCommandError: exit status 130")
        restart(kernel)
        assert adopted(kernel) == "2 /usr\n"
        assert kernel.run("%%sh_session alone\necho [$V]").text == "[]\n"
    finally:
        other.stop()


def adopted(live: LiveKernel) -> str:
    outcome: Outcome = live.run("%%sh_session together\necho $V $PWD")
    return outcome.text
