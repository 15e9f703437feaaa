"""Completion of cells and lines as a front end asks for it, in a real kernel."""

from __future__ import annotations

import time
from collections.abc import Iterator
from typing import Any

import pytest

import completion_rows as corpus
from completion_rows import Row, wrong
from conftest import LiveKernel
from live import live_kernel
from session_magics.completion import Completion, Completions

pytestmark = pytest.mark.kernel
# Seconds until a reply, on a machine that may be busy.
REPLY = 30.0


@pytest.fixture(scope="module")
def live(client_loop: None) -> Iterator[LiveKernel]:
    with live_kernel() as live:
        live.run("%config SessionMagics.rc = False")
        patient = "m = get_ipython().magics_manager.registry['SessionMagics']; m.complete('%session ', 9)\n"
        patient += "m._completer._shells._limit = 20"
        assert live.run(patient).status == "ok"
        live.run("%%sh_session corpus-shell\ncorpus_inside=1")
        live.run("%session start corpus-session sleep 1000")
        yield live
        live.run("%session remove --force corpus-session corpus-shell")


def replied(live: LiveKernel, text: str, cursor: int) -> dict[str, Any]:
    client = live.cells.client
    request = client.complete(text, cursor)
    deadline = time.monotonic() + REPLY
    while True:
        reply = client.get_shell_msg(timeout=deadline - time.monotonic())
        if reply["parent_header"].get("msg_id") == request:
            content: dict[str, Any] = reply["content"]
            return content


def test_a_front_end_is_answered(live: LiveKernel) -> None:
    def complete(text: str, cursor: int) -> Completions:
        content = replied(live, text, cursor)
        assert content["status"] == "ok"
        start, end = content["cursor_start"], content["cursor_end"]
        # Where nothing fits, what stands there is the answer, so that IPython adds no Python names.
        items = [one for one in content["matches"] if one != text[start:end]]
        return Completions(start, end, tuple(Completion(one) for one in items))

    failed = wrong(corpus.CELLS, complete)
    assert not failed, "\n".join(failed)


def test_python_is_completed_as_before_and_alone_once_unloaded(live: LiveKernel) -> None:
    live.run("corpus_python = 1\n%config IPCompleter.use_jedi = False")  # which takes seconds at its first time
    assert "corpus_python" in replied(live, "corpus_py", 9)["matches"]
    assert replied(live, "%%sh_session corpus-shell\ncorpus_py", 35)["matches"] == ["corpus_py"]
    shown = "print(len([m for m in get_ipython().Completer.custom_matchers if m.__name__ == 'ours']))"
    live.run("%reload_ext session_magics")
    assert live.run(shown).text == "1\n"
    live.run("%unload_ext session_magics")
    assert live.run(shown).text == "0\n"
    live.run("%load_ext session_magics")


def test_kinds_reach_the_front_end(live: LiveKernel) -> None:
    content = replied(live, "%session st", 11)
    kinds = {one["text"]: one["type"] for one in content["metadata"]["_jupyter_types_experimental"]}
    assert kinds == {"start": "verb", "stop": "verb"}


@pytest.mark.parametrize("row", [Row("%%bash\nfoo‸"), Row("x = 1‸"), Row("%%time\ncd‸")])
def test_other_cells_are_not_ours(live: LiveKernel, row: Row) -> None:
    text = row.text.replace("‸", "")
    asked = f"get_ipython().magics_manager.registry['SessionMagics'].complete({text!r}, {row.text.index('‸')})"
    assert live.run(f"print({asked})").text == "None\n"
