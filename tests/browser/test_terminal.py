from __future__ import annotations

import re
import statistics
import time
from collections.abc import Callable, Sequence

import pytest
from lab import VIEWS, Lab

pytestmark = [pytest.mark.browser, pytest.mark.timeout(120)]

Open = Callable[[Sequence[str]], Lab]

SHOUT = """%session start -- shout sh -c 'while read line; do echo "got $line"; done'"""


def test_a_started_program_is_shown_and_can_be_typed_into(opened: Open) -> None:
    lab = opened(["%session start py python3"])
    lab.run(1)
    lab.wait_text(">>>")
    lab.type("print(6 * 7)\n")
    lab.wait_text("\n42\n")
    assert lab.bar("name") == "py"
    assert lab.bar("program") == "python3"
    lab.wait_bar("badge", "running")


def test_an_editor_can_be_used(opened: Open) -> None:
    lab = opened(["%session start vi vim -u NONE -n note.txt"])
    lab.run(1)
    lab.wait_text("~\n~")
    lab.type("ihello world")
    lab.page.keyboard.press("Escape")
    lab.page.keyboard.type("0dw:wq\n")
    lab.wait_bar("badge", "exited 0")
    assert (lab.path.parent / "note.txt").read_text() == "world\n"


def test_a_pager_fills_the_height_and_scrolls(opened: Open) -> None:
    lab = opened(["!seq 1 500 > numbers.txt", "%session start pages less numbers.txt"])
    lab.run(1)
    lab.run(2)
    lab.wait_text("numbers.txt")
    lab.page.wait_for_function(
        f"""() => {{ const view = {VIEWS}[0], rows = view.term.rows;
          return view.fit.proposeDimensions().rows === rows && view.text().includes(`\\n${{rows - 1}}\\n:`) ||
            view.fit.proposeDimensions().rows === rows && view.text().endsWith(`\\n${{rows - 1}}\\nnumbers.txt`); }}"""
    )
    rows = lab.page.evaluate(f"() => {VIEWS}[0].term.rows")
    lab.type(" ")
    lab.wait_text(f"\n{2 * rows - 2}\n:")
    lab.page.keyboard.press("g")
    lab.wait_text("\n2\n3\n")


def test_keys_arrive_while_another_cell_runs(opened: Open) -> None:
    lab = opened(
        [SHOUT, "import time; time.sleep(8)", "%session start -- noise sh -c 'while sleep 0.3; do echo .; done'"]
    )
    lab.run(1)
    lab.run(3)
    lab.wait_text(".", 1)
    lab.start(2)
    lab.page.wait_for_function(
        "() => window.jupyterapp.shell.currentWidget.content.widgets[2].model.executionState === 'running'"
    )
    began = time.monotonic()
    for number in range(20):
        lab.type(f"k{number}\n")
        lab.wait_text(f"got k{number}", timeout=3000)
    assert time.monotonic() - began < 7
    state = lab.page.evaluate("() => window.jupyterapp.shell.currentWidget.content.widgets[2].model.executionState")
    assert state == "running"


def test_stop_works_while_another_cell_runs(opened: Open) -> None:
    lab = opened(["%session start -- web sleep 1000", "import time; time.sleep(8)"])
    lab.run(1)
    lab.wait_bar("badge", "running")
    lab.start(2)
    lab.page.wait_for_function(
        "() => window.jupyterapp.shell.currentWidget.content.widgets[2].model.executionState === 'running'"
    )
    lab.press("stop")
    lab.wait_bar("badge", "killed by signal", timeout=5000)
    state = lab.page.evaluate("() => window.jupyterapp.shell.currentWidget.content.widgets[2].model.executionState")
    assert state == "running"


def test_a_reload_replays_exactly_and_types_nothing(opened: Open) -> None:
    asks = r"""%session start asks -- bash --norc -c 'printf "\033[c\033[6n\033[>cready\n"; cat -v'"""
    lab = opened([asks])
    lab.run(1)
    lab.wait_text("ready")
    lab.type("first\n")
    lab.wait_text("first\nfirst")
    before = lab.text()
    lab.save()
    lab.open()
    lab.wait_text("first\nfirst")
    lab.type("second\n")
    lab.wait_text("second\nsecond")
    assert lab.text() == before.rstrip() + "\nsecond\nsecond"


def test_two_views_are_in_step(opened: Open) -> None:
    lab = opened([SHOUT, "%session show shout --read-only --rows 8"])
    lab.run(1)
    lab.run(2)
    lab.type("one\n")
    lab.wait_text("got one")
    lab.wait_text("got one", 1)
    lab.page.keyboard.type("two\n")
    lab.wait_text("got two")
    lab.wait_text("got two", 1)
    assert lab.text(0) == lab.text(1)
    lab.type("never", 1)
    lab.type("three\n")
    lab.wait_text("got three", 1)
    assert "never" not in lab.text()
    assert lab.page.locator(".sm").nth(1).locator("button[data-action=stop]").count() == 0


def test_the_end_is_shown_and_restart_begins_anew(opened: Open) -> None:
    lab = opened(["%session start -- job sh -c 'echo working; read answer; exit 3'"])
    lab.run(1)
    lab.wait_bar("badge", "waiting for input")
    lab.type("\n")
    lab.wait_bar("badge", "exited 3")
    lab.page.wait_for_function(
        """() => JSON.stringify(window.jupyterapp.shell.currentWidget.content.widgets[1].model.toJSON().outputs)
             .includes('exited 3')"""
    )
    lab.press("restart")
    lab.wait_bar("badge", "waiting for input")
    assert lab.text().count("working") == 2


def test_a_renewed_output_keeps_its_view(opened: Open) -> None:
    lab = opened(["%session start -- job sh -c 'echo working; read answer; exit 3'"])
    lab.run(1)
    lab.wait_bar("badge", "waiting for input")
    lab.page.evaluate("() => { window.first = document.querySelector('.sm-outer'); }")
    lab.type("\n")
    lab.page.wait_for_function(
        """() => JSON.stringify(window.jupyterapp.shell.currentWidget.content.widgets[1].model.toJSON().outputs)
             .includes('exited 3')"""
    )
    lab.wait_bar("badge", "exited 3")
    lab.page.wait_for_function("() => document.querySelector('.sm-outer') === window.first")


def test_hidden_input_is_announced(opened: Open) -> None:
    lab = opened(["""%session start -- ask bash -c 'read -s -p "Password: " word; echo; echo "${#word} letters"'"""])
    lab.run(1)
    lab.wait_bar("badge", "hidden")
    lab.type("secret\n")
    lab.wait_text("6 letters")
    assert "secret" not in lab.text()


def test_the_leave_key_gives_the_keyboard_back(opened: Open) -> None:
    lab = opened(["%session start py python3"])
    lab.run(1)
    lab.wait_text(">>>")
    lab.type("1")
    lab.page.keyboard.press("Control+Shift+Enter")
    assert lab.page.evaluate("() => !document.activeElement.closest('.sm')")


def test_the_program_learns_its_size(opened: Open) -> None:
    lab = opened(["%session start -- size sh -c 'trap \"stty size\" WINCH; while :; do sleep 0.1; done'"])
    lab.run(1)
    lab.page.wait_for_function(f"() => /^\\d+ \\d+$/m.test({VIEWS}[0]?.text())")
    lab.press("full")
    rows, columns = lab.page.evaluate(f"() => [{VIEWS}[0].term.rows, {VIEWS}[0].term.cols]")
    lab.page.wait_for_function(f"() => {VIEWS}[0].term.rows > {rows}")
    rows, columns = lab.page.evaluate(f"() => [{VIEWS}[0].term.rows, {VIEWS}[0].term.cols]")
    lab.wait_text(f"{rows} {columns}")


def test_a_saved_notebook_gains_little_and_has_the_text(opened: Open) -> None:
    lab = opened(["%session start -- job sh -c 'echo hello; exit 3'"])
    lab.run(1)
    lab.page.wait_for_function(
        """() => JSON.stringify(window.jupyterapp.shell.currentWidget.content.widgets[1].model.toJSON().outputs)
             .includes('exited 3')"""
    )
    saved = lab.save()
    output = saved["cells"][1]["outputs"][0]
    assert "hello" in "".join(output["data"]["text/plain"])
    assert len(str(output)) < 600
    assert "widgets" not in saved["metadata"]


def test_many_lines_come_whole_and_in_order(opened: Open) -> None:
    lab = opened(["%session start -- flood sh -c 'read go; seq 1 40000; read stay'"])
    lab.run(1)
    lab.wait_bar("badge", "waiting for input")
    lab.page.evaluate(f"() => {{ {VIEWS}[0].term.options.scrollback = 50000 }}")
    lab.type("\n")
    lab.wait_text("\n40000")
    numbers = [int(line) for line in lab.text().split("\n") if re.fullmatch(r"\d+", line)]
    assert numbers == list(range(1, 40001))


def test_a_lost_connection_loses_no_line(opened: Open) -> None:
    lab = opened(["%session start -- flood sh -c 'read go; seq 1 20000; sleep 1; seq 20001 40000; read stay'"])
    lab.run(1)
    lab.wait_bar("badge", "waiting for input")
    lab.page.evaluate(f"() => {{ {VIEWS}[0].term.options.scrollback = 50000 }}")
    lab.type("\n")
    lab.page.evaluate("() => window.jupyterapp.shell.currentWidget.context.sessionContext.session.kernel.reconnect()")
    lab.wait_text("\n40000")
    numbers = [int(line) for line in lab.text().split("\n") if re.fullmatch(r"\d+", line)]
    assert numbers == list(range(1, 40001))


def test_twenty_terminals_in_a_page(opened: Open) -> None:
    start = "for n in range(20): display(get_ipython().run_line_magic('session', f'start t{n} sh -c \"echo I am {n}; cat\"'))"
    lab = opened([start])
    began = time.monotonic()
    lab.run(1)
    for number in range(20):
        lab.wait_text(f"I am {number}", number)
    print(f"20 terminals: {time.monotonic() - began:.1f} s")
    lab.type("typed\n", 19)
    lab.wait_text("typed\ntyped", 19)


def test_the_echo_is_quick(opened: Open, record_property: Callable[[str, object], None]) -> None:
    lab = opened(["%session start -- echo cat"])
    lab.run(1)
    lab.wait_bar("badge", "waiting for input")
    lab.focus()
    times = lab.page.evaluate(
        f"""async () => {{
          const view = {VIEWS}[0], times = [];
          for (let n = 0; n < 60; n++) {{
            const written = new Promise((done) => {{ const once = view.term.onWriteParsed(() => {{ once.dispose(); done(); }}); }});
            const began = performance.now();
            view.term.input('x');
            await written;
            times.push(performance.now() - began);
            await new Promise((done) => setTimeout(done, 60 + 40 * Math.random()));
          }}
          return times; }}"""
    )
    median = statistics.median(times[10:])
    record_property("echo median ms", round(median, 1))
    print(f"echo: median {median:.1f} ms, p90 {sorted(times[10:])[44]:.1f} ms")
    assert median < 60
