"""The shell kernel as a front end and as programs that run notebooks see it."""

from __future__ import annotations

import functools
import os
import queue
import random
import signal
import subprocess
import threading
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import nbformat
import papermill
import pytest
from nbclient import NotebookClient

from conftest import LiveKernel
from homes import own_home
from live import live_kernel, run_with
from page import Page
from rounds import DEADLINE, rounds, some, until
from score_cells import load, unsupported
from session_magics.kernel import specs
from test_cells import CELLS, play

pytestmark = pytest.mark.kernel
REPLY = 20.0  # seconds, far more than any reply needs
# Of limits that keep a page waiting for an instant only, which a machine that stalls does not keep.
PATIENT = (
    f"setattr(__import__('session_magics.syntax').syntax, 'TIME_LIMIT', {DEADLINE})",
    f"setattr(__import__('session_magics.inspection').inspection, 'ANSWER_LIMIT', {DEADLINE})",
    f"[(m.complete('%session ', 9), setattr(m._completer._shells, '_limit', {DEADLINE}))"
    " for m in [get_ipython().magics_manager.registry['SessionMagics']]]",
)


@pytest.fixture(scope="module")
def shell() -> Iterator[LiveKernel]:
    """A bash kernel that the tests below share."""
    with live_kernel(target="shell-kernel") as live:
        live.run(":")  # takes in replies to what the client asked until the kernel was there
        reply, _ = execute(live, ":", user_expressions={str(at): text for at, text in enumerate(PATIENT)})
        assert {one["status"] for one in reply["user_expressions"].values()} == {"ok"}
        yield live


def request(live: LiveKernel, kind: str, content: Mapping[str, object]) -> Mapping[str, Any]:
    """Send a request of any content; the content of its reply."""
    client = live.cells.client
    message = client.session.msg(kind, dict(content))
    client.shell_channel.send(message)
    reply = client.get_shell_msg(timeout=REPLY)
    assert reply["parent_header"]["msg_id"] == message["header"]["msg_id"]
    return reply["content"]


def execute(live: LiveKernel, code: str, **how: object) -> tuple[Mapping[str, Any], list[Mapping[str, Any]]]:
    """Run a cell with flags of an execute_request; its reply, and all that was published but its status."""
    client, published = live.cells.client, list[Mapping[str, Any]]()
    reply = client.execute_interactive(code, timeout=REPLY, output_hook=published.append, **how)
    return reply["content"], [one for one in published if one["msg_type"] != "status"]


def kinds(published: list[Mapping[str, Any]]) -> list[str]:
    return [one["msg_type"] for one in published]


def test_plain_cells_are_shell_and_share_a_session_with_the_magic(shell: LiveKernel) -> None:
    assert shell.run("cd /; WHO=me; greet() { echo hello $WHO; }").text == ""
    assert shell.run("greet; pwd").text == "hello me\n/\n"
    assert shell.run("%%sh_session main\ngreet").text == "hello me\n"
    assert shell.run("%%sh_session other\necho ${WHO-nobody}").text == "nobody\n"
    assert shell.run("\n\n%session stop other\n%session remove other\n# note\ngreet").text.endswith("hello me\n")
    for nothing in ("", "\n", "# only a comment", "# two\n\n# of them\n"):
        assert shell.run(nothing).status == "ok"


def test_a_line_magic_above_shell_text_shows_its_value(shell: LiveKernel) -> None:
    shell.run("echo for the log")
    assert shell.run("%session tail main -n 1\necho below").text == "for the log\nbelow\n"
    assert shell.run("echo above\n%session tail main").status == "error"
    assert shell.run("%%time\necho timed").text.startswith("timed\n")


def test_a_failing_cell_is_an_error_in_the_reply_and_on_iopub(shell: LiveKernel) -> None:
    reply, published = execute(shell, "echo out; (exit 3)")
    assert (reply["status"], reply["ename"], reply["evalue"]) == (
        "error",
        "CellCommandError",
        "exit status 3 in session 'main'",
    )
    assert kinds(published) == ["execute_input", "stream", "error"]
    assert published[0]["content"] == {"code": "echo out; (exit 3)", "execution_count": reply["execution_count"]}


def test_an_interrupt_ends_the_command_and_not_the_shell(shell: LiveKernel) -> None:
    shell.run("KEPT=yes")
    for pid_only in (False, True):  # by a message, and by a signal
        interrupt = functools.partial(shell.cells.interrupt, pid_only)
        stopped = run_with(shell, "echo go; sleep 600", ("go", interrupt))
        assert (stopped.status, stopped.error.partition(":")[0]) == ("error", "CellInterrupted")
        assert shell.run("echo $KEPT").text == "yes\n"


def test_plain_text_is_answered_for_while_a_plain_cell_runs(shell: LiveKernel, tmp_path: Path) -> None:
    client, gate, begun = shell.cells.client, tmp_path / "a gate", tmp_path / "begun"
    shell.run(f"cd '{tmp_path}'; touch first_file")
    cell = client.execute("touch begun; until [ -e 'a gate' ]; do sleep 0.02; done")
    until(begun.exists)
    waits = client.complete("%%time\ncat fi", 13)  # Python's
    text = "%session list\ncat fi"
    found = request(shell, "complete_request", {"code": text, "cursor_pos": len(text)})
    assert (found["matches"], found["cursor_start"]) == (["first_file"], len(text) - 2)
    assert request(shell, "inspect_request", {"code": "export", "cursor_pos": 2, "detail_level": 0})["found"]
    assert not request(shell, "inspect_request", {"code": "'$'", "cursor_pos": 2, "detail_level": 0})["found"]
    assert request(shell, "is_complete_request", {"code": "if true; then"}) == {
        "status": "incomplete",
        "indent": "    ",
    }
    gate.touch()
    assert [client.get_shell_msg(timeout=REPLY)["parent_header"]["msg_id"] for _ in "12"] == [cell, waits]


def test_an_interrupt_at_any_moment_costs_no_reply(shell: LiveKernel) -> None:
    client, chance = shell.cells.client, random.Random(7)
    for _ in range(rounds(20, 1000)):
        wanted = {client.execute("true", stop_on_error=False), client.complete("ec"), client.is_complete("true")}
        timer = threading.Timer(chance.uniform(0, 0.02), os.kill, (shell.pid, signal.SIGINT))
        timer.start()
        replies = [client.get_shell_msg(timeout=REPLY)["parent_header"]["msg_id"] for _ in wanted]
        timer.join()
        assert sorted(replies) == sorted(wanted)
        assert shell.run("echo alive").text == "alive\n"
    with pytest.raises(queue.Empty):
        client.get_shell_msg(timeout=0.1)


@pytest.mark.parametrize(
    ("kind", "content"),
    [
        ("execute_request", {"code": "true", "user_expressions": 7}),
        ("complete_request", {"code": "ls", "cursor_pos": "end"}),
        ("inspect_request", {"code": "ls"}),
        ("is_complete_request", {"code": None}),
        ("history_request", {"hist_access_type": "tail", "output": False, "raw": True, "colour": "blue"}),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_what_goes_wrong_inside_is_a_reply_too(shell: LiveKernel, kind: str, content: Mapping[str, object]) -> None:
    reply = request(shell, kind, content)
    assert reply["status"] == "error"
    assert reply["ename"] and reply["traceback"]
    assert shell.run("echo alive").text == "alive\n"


def test_a_cursor_beyond_the_cell_is_at_its_nearer_end(shell: LiveKernel) -> None:
    for cursor, end in ((-5, 0), (10**9, 4)):
        reply = request(shell, "complete_request", {"code": "true", "cursor_pos": cursor})
        assert (reply["status"], reply["cursor_end"]) == ("ok", end)


def test_without_the_extension_each_request_is_answered_and_a_cell_says_what_is_missing(shell: LiveKernel) -> None:
    shell.run("%unload_ext session_magics")
    try:
        assert request(shell, "kernel_info_request", {})["language_info"]["name"] == "bash"
        assert request(shell, "is_complete_request", {"code": "if true"})["status"] == "incomplete"
        assert request(shell, "complete_request", {"code": "ec", "cursor_pos": 2})["status"] == "ok"
        assert "%%sh_session` not found" in shell.run("echo unheard").text
    finally:
        shell.run("%load_ext session_magics")
    assert shell.run("echo heard").text == "heard\n"


def test_a_silent_cell_publishes_nothing_and_is_in_no_history(shell: LiveKernel) -> None:
    shell.run("echo counted")
    before, _ = execute(shell, "true", store_history=False)
    reply, published = execute(shell, "echo unheard; SILENT=ran", silent=True)
    assert (reply["status"], kinds(published)) == ("ok", [])
    reply, published = execute(shell, "echo unheard; (exit 4)", silent=True)
    assert (reply["status"], reply["evalue"], kinds(published)) == ("error", "exit status 4 in session 'main'", [])
    assert shell.run("echo $SILENT").text == "ran\n"
    after, _ = execute(shell, "true", store_history=False)
    assert after["execution_count"] == before["execution_count"] + 1


def test_user_expressions_are_python(shell: LiveKernel) -> None:
    shell.run("%%sh_session --out said\necho text")
    reply, _ = execute(shell, "true", user_expressions={"said": "said.strip()", "bad": "nothing_here"})
    assert reply["user_expressions"]["said"]["data"]["text/plain"] == "'text'"
    assert reply["user_expressions"]["bad"]["status"] == "error"


@pytest.mark.parametrize(("stop", "statuses"), [(True, ["error", "aborted"]), (False, ["error", "ok"])])
def test_cells_behind_a_failing_one_are_given_up_if_that_is_asked_for(
    shell: LiveKernel, tmp_path: Path, stop: bool, statuses: list[str]
) -> None:
    client, gate, begun = shell.cells.client, tmp_path / "gate", tmp_path / "begun"
    failing = f"touch '{begun}'; until [ -e '{gate}' ]; do sleep 0.02; done; (exit 1)"
    for code in (failing, "true"):
        client.execute(code, stop_on_error=stop)
    until(begun.exists)
    request(shell, "complete_request", {"code": "ec", "cursor_pos": 2})  # which is answered once both have come
    gate.touch()
    assert [client.get_shell_msg(timeout=REPLY)["content"]["status"] for _ in statuses] == statuses


def test_what_is_usual_in_a_shell_kernel_outlives_a_reload(shell: LiveKernel) -> None:
    assert shell.run("%reload_ext session_magics\n%config SessionMagics.displays").text.strip() == "True"


def test_the_kernel_says_what_it_is(shell: LiveKernel) -> None:
    info = request(shell, "kernel_info_request", {})
    assert info["language_info"] | {"version": ""} == {
        "name": "bash",
        "version": "",
        "mimetype": "text/x-sh",
        "file_extension": ".sh",
        "codemirror_mode": "shell",
        "pygments_lexer": "bash",
        "nbconvert_exporter": "script",
    }
    assert info["language_info"]["version"][0].isdigit()
    assert info["banner"].startswith("bash ")
    assert "debugger" not in info["supported_features"]


def test_a_longer_cell_is_a_terminal_while_it_runs_and_text_in_the_end(shell: LiveKernel) -> None:
    pytest.importorskip("anywidget")
    page = Page(shell.cells.client)
    cell = page.execute("echo before; read word; echo after $word")
    page.until(lambda: page.models)
    page.sync(page.models[0])
    page.until(lambda: "display_data" in [kind for kind, _ in page.outputs])
    page.send(page.models[0], {"t": "in", "view": "v", "d": "typed\n"})
    page.until(lambda: ("idle", cell) in page.statuses)
    assert [(kind, content.get("text")) for kind, content in page.outputs] == [
        ("stream", "before\ntyped\nafter typed\n")
    ]


# ---- programs that run notebooks


@pytest.fixture
def home(root: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A home of the notebook's own, with the kernels."""
    own_home(tmp_path, monkeypatch)
    monkeypatch.setenv("TERM", "xterm")
    specs.install(tmp_path / "kernels", [name for name in specs.names() if name != "session-python"])
    return tmp_path


def notebook(*cells: str, name: str = "session-bash", parameters: bool = False) -> nbformat.NotebookNode:
    """A notebook of a shell kernel, its first cell with papermill's tag if it has parameters."""
    spec = {"name": name, "display_name": name, "language": "bash"}
    language = {"name": "bash", "file_extension": ".sh", "nbconvert_exporter": "script"}
    book = nbformat.v4.new_notebook(metadata={"kernelspec": spec, "language_info": language})
    book.cells = [nbformat.v4.new_code_cell(one) for one in cells]
    if parameters:
        book.cells[0].metadata["tags"] = ["parameters"]
    return book


def text_of(cell: nbformat.NotebookNode) -> str:
    return "".join(output.text for output in cell.outputs if output.output_type == "stream")


def test_papermill_sets_the_parameters_of_a_shell_notebook(home: Path) -> None:
    nbformat.write(notebook("name=nobody\ncount=1", 'echo "$count: $name"', parameters=True), home / "in.ipynb")
    parameters = {"name": "it's me", "count": 7}
    papermill.execute_notebook(home / "in.ipynb", home / "out.ipynb", parameters, progress_bar=False, iopub_timeout=60)
    made = nbformat.read(home / "out.ipynb", as_version=4)
    assert text_of(made.cells[-1]) == "7: it's me\n"
    assert made.metadata.language_info.pygments_lexer == "bash"


def test_a_notebook_is_exported_as_a_script_that_runs(home: Path) -> None:
    exporters = pytest.importorskip("nbconvert.exporters")
    book = notebook("cd /tmp", 'for one in a b; do\n  echo "$one"\ndone', "pwd")
    script, resources = exporters.ScriptExporter().from_notebook_node(book)
    assert resources["output_extension"] == ".sh"
    assert subprocess.run(["bash", "-c", script], capture_output=True, text=True).stdout == "a\nb\n/tmp\n"


def test_a_notebook_of_another_bash_kernel_runs_unchanged(home: Path) -> None:
    book = notebook(
        "alias ll='ls -l'\nexport PS1='mine> '",
        "cat <<'END'\nbash_kernel $HOME\nEND",
        "for i in 1 2 3; do echo $i; done | tail -1",
        "f() { return ${1:-0}; }; f",
        "ls nowhere 2>/dev/null || echo none",
        "printf 'no line end'",
        "trap 'echo trapped' USR1; kill -USR1 $$",
        name="bash",
    )
    client = NotebookClient(book, kernel_name="session-bash", timeout=60, iopub_timeout=60)
    client.execute()
    assert [text_of(cell) for cell in book.cells] == [
        "",
        "bash_kernel $HOME\n",
        "3\n",
        "",
        "none\n",
        "no line end",
        "trapped\n",
    ]


@pytest.mark.slow
def test_cases_of_other_bash_kernels() -> None:
    cases = [case for case in load(CELLS / "cells.toml") if not unsupported(case, "shell-kernel")]
    reported = [case["id"] for case in cases if "bash_kernel" in case["source"]]
    report = play("bash", "ABCDEFGH", list(some(reported, 9)), target="shell-kernel")
    assert not report, "\n" + report
