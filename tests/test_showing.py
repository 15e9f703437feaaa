"""Displays that functions of a shell make: their place among the text, updates by id, and who can make none."""

from __future__ import annotations

import base64
import itertools
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from conftest import LiveKernel, Outcome
from live import live_kernel, run_with, until
from session_magics.display.rich import Piece, Rich, joined, replaced
from session_magics.display.shown import Shown, bundle, mime_type
from session_magics.showing import DATA_LIMIT, FUNCTIONS_FILE, WAITING_LIMIT, Mark, Marks, fetch
from session_magics.text import plain
from test_display import Clock, Played, rendered

PNG = base64.b64decode(
    "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg=="
)
MARK = b"\x1b]7788;show;display;abcdefghijkl;an-id\x07"


# ------------------------------------------------------------------ marks


@given(st.lists(st.sampled_from([b"text", MARK, b"\x1b", MARK[:20], b"\x1b[1m", b"\x07"])), st.integers(1, 50))
def test_marks_are_found_however_the_output_is_cut(parts: list[bytes], size: int) -> None:
    data = b"".join(parts)
    whole, pieces = Marks(), Marks()
    at_once = [*whole.feed(data), whole.rest()]
    in_pieces = [one for at in range(0, len(data), size) for one in pieces.feed(data[at : at + size])]
    assert runs(at_once) == runs([*in_pieces, pieces.rest()])
    assert b"".join(one if isinstance(one, bytes) else MARK for one in at_once) == data


def runs(parts: list[bytes | Mark]) -> list[bytes | Mark]:
    """The same with neighbouring texts in one."""
    joined: list[bytes | Mark] = []
    for part in parts:
        if isinstance(part, bytes) and joined and isinstance(joined[-1], bytes):
            joined[-1] += part
        elif part != b"":
            joined.append(part)
    return joined


def test_a_mark_is_nothing_to_whoever_shows_text() -> None:
    assert plain(b"a" + MARK + b"b") == "ab"


# ------------------------------------------------------------------ types


@pytest.mark.parametrize(
    ("data", "kind"),
    [
        (PNG, "image/png"),
        (b"\xff\xd8\xff\xe0", "image/jpeg"),
        (b"GIF89a..", "image/gif"),
        (b"RIFF\n\0\0\0WEBPVP8 ", "image/webp"),
        (b"%PDF-1.4", "application/pdf"),
        (b"<svg xmlns='x'/>", "image/svg+xml"),
        (b"\xef\xbb\xbf<?xml version='1.0'?>\n<!-- made -->\n<!DOCTYPE svg>\n<svg>", "image/svg+xml"),
        (b"<html><svg>", None),
        (b"", None),
    ],
)
def test_the_type_of_an_image_is_told_by_how_it_begins(data: bytes, kind: str | None) -> None:
    assert mime_type("image", data) == kind


def test_what_is_binary_is_base64_and_all_have_a_plain_twin() -> None:
    assert bundle("image/png", PNG) == {"image/png": base64.b64encode(PNG).decode(), "text/plain": "<image/png, 70B>"}
    assert bundle("text/html", "é".encode()) == {"text/html": "é", "text/plain": "<text/html, 2B>"}


def test_a_file_is_shown_once_and_no_link_is_followed(tmp_path: Path) -> None:
    (tmp_path / "show.abcdefghijkl").write_bytes(PNG)
    (tmp_path / "secret").write_bytes(PNG)
    (tmp_path / "show.linklinklink").symlink_to("secret")
    shown = Shown(tmp_path)
    assert isinstance(shown.take(Mark("display", "abcdefghijkl", "")), tuple)
    assert shown.take(Mark("display", "abcdefghijkl", "")) is None
    assert fetch(tmp_path, Mark("display", "linklinklink", "")) is None


# ------------------------------------------------------------------ their place


@dataclass
class Board:
    """A Writer that keeps what a reader would see."""

    live: bool = True
    clearable: bool = True
    pieces: list[Piece] = field(default_factory=list)

    def append(self, text: str) -> None:
        self.pieces.append(text)

    def rewrite(self, pieces: Sequence[Piece]) -> None:
        assert self.clearable
        self.pieces = list(pieces)

    def display(self, rich: Rich, *, again: bool = False) -> None:
        if again:
            assert replaced(self.pieces, rich)
        else:
            self.pieces.append(rich)

    def notice(self, line: str) -> None:
        raise AssertionError(line)


def play(parts: Sequence[str], cuts: Sequence[int], board: Board, limit: int) -> list[str]:
    """What is seen of a command that prints these parts; those in brackets are displays, the letter in it their id."""
    with TemporaryDirectory() as name:
        directory, output = Path(name), b""
        (directory / FUNCTIONS_FILE).touch()
        for number, part in enumerate(parts):
            if part.startswith("<"):
                (directory / f"show.{number:012}").write_text(f"{part}{number}")
                output += b"\x1b]7788;show;displayHTML;%012d;%s\x07" % (number, part[1:-1].encode())
            else:
                output += part.encode()
        played = Played(directory, Clock(), board, limit)  # type: ignore[arg-type]
        edges = sorted({0, len(output), *(one % (len(output) + 1) for one in cuts)})
        for begin, end in pairwise(edges):  # the last piece is seen at the end only
            played.sink.advance(played, played._file.end)  # type: ignore[arg-type]
            played.write(output[begin:end])
        played.sink.finish(played, played._file.end)  # type: ignore[arg-type]
        played.log.close()
        played._file.close()
        assert not [*directory.glob("show.*")]
    return [one if isinstance(one, str) else one.data["text/html"] for one in joined(board.pieces)]


PARTS = st.lists(
    st.sampled_from(["a", "line\n", "5%\r", "\x1b[A", "\x1b[31mred\x1b[m", "<>", "<k>", "<l>"]), max_size=12
)
CUTS = st.lists(st.integers(0, 10**6), max_size=8)


@settings(deadline=None)
@given(PARTS, CUTS, st.sampled_from([(True, True), (True, False), (False, False)]))
def test_text_and_displays_are_in_order_and_a_later_one_takes_the_place_of_its_id(
    parts: list[str], cuts: list[int], kind: tuple[bool, bool]
) -> None:
    board = Board(*kind)
    if board.live and not board.clearable:  # what was shown and has changed is shown once more
        parts = [one if one.isprintable() else "line\n" for one in parts]
    wanted, text, places = [""], "", dict[str, int]()
    for number, part in enumerate(parts):
        if not part.startswith("<"):
            text += part
        elif part in places:  # does not part the text
            wanted[places[part]] = f"{part}{number}"
        else:
            wanted += [rendered(text.encode()), f"{part}{number}"]
            text = ""
            places |= {part: len(wanted) - 1} if part != "<>" else {}
    assert play(parts, cuts, board, 10**6) == [
        *filter(None, wanted),
        *filter(None, [rendered(text.encode())]),
    ]


def test_a_line_that_cannot_be_drawn_again_is_there_before_the_display_behind_it() -> None:
    cuts = [3, 6, 9, 60]
    shown = play(["5%\r", "9%\n", "<>", "line\n"], cuts, Board(clearable=False), 10**6)
    assert shown == ["5%\n9%\n", "<>2", "line\n"]


@settings(deadline=None)
@given(PARTS, CUTS, st.booleans(), st.integers(0, 60))
def test_no_display_is_lost_where_text_is_left_out(parts: list[str], cuts: list[int], live: bool, limit: int) -> None:
    shown = play(parts, cuts, Board(live=live, clearable=live), limit)
    ids = [part for part in parts if part in ("<k>", "<l>")]
    assert sum(one.startswith("<") for one in shown) == parts.count("<>") + len(set(ids))


# ------------------------------------------------------------------ in a kernel


@pytest.fixture(scope="module")
def shared(client_loop: None) -> Iterator[LiveKernel]:
    with live_kernel() as live:
        live.run("%config SessionMagics.displays = True")
        yield live


def shapes(outcome: Outcome) -> list[str]:
    """What the cell shows, in order."""
    parts = [(one["display"], one["html"] or one["text"]) for one in outcome.record.outputs]
    groups = itertools.groupby(parts, lambda one: one[0])
    return [
        text
        for rich, group in groups
        for text in ([one for _, one in group] if rich else ["".join(t for _, t in group)])
    ]


@pytest.mark.kernel
@pytest.mark.parametrize("shell", ["bash", "zsh", "dash", "fish"])
def test_a_display_stands_between_the_text_before_and_after(shared: LiveKernel, shell: str, tmp_path: Path) -> None:
    (tmp_path / "dot.png").write_bytes(PNG)
    code = f"%%sh_session in-{shell} --shell {shell}\necho before; echo '<b>Dog</b>' | displayHTML\necho between\n"
    outcome = shared.run(code + f"display < {tmp_path}/dot.png\necho after; echo 'alert(1)' | displayJS 'an id'")
    assert shapes(outcome) == [
        "before\n", "<b>Dog</b>\n", "between\n", "<image/png, 70B>", "after\n", "<application/javascript, 9B>"
    ]  # fmt: skip


@pytest.mark.kernel
def test_an_id_updates_in_place_within_one_run_of_a_cell(shared: LiveKernel) -> None:
    code = """%%sh_session ids
for n in 1 2 3; do echo $n; echo "<i>${more-}$n</i>" | displayHTML same; sleep 0.1; done; more=4"""
    first = shared.run(code)
    assert shapes(first) == ["1\n", "<i>3</i>\n", "2\n3\n"]
    assert shapes(shared.run(code)) == ["1\n", "<i>43</i>\n", "2\n3\n"]
    assert shapes(first)[1] == "<i>3</i>\n"  # which its page may show elsewhere


@pytest.mark.kernel
def test_a_progress_bar_beside_displays_leaves_them_where_they_are(shared: LiveKernel) -> None:
    body = r"""printf 'a 1%%\r'; sleep 0.1; printf 'a 2%%\n'; echo X | displayHTML
    printf 'b 1%%\r'; sleep 0.1; printf 'b 2%%\r'; sleep 0.1; printf 'b 3%%\n'; echo Y | displayHTML; echo c"""
    assert shapes(shared.run(f"%%sh_session bars\n{body}")) == ["a 2%\n", "X\n", "b 3%\n", "Y\n", "c\n"]


@pytest.mark.kernel
def test_javascript_is_run_once_and_not_with_each_frame_of_a_bar(
    shared: LiveKernel, monkeypatch: pytest.MonkeyPatch
) -> None:
    code = r"""%%sh_session once
    echo a; echo 'one()' | displayJS; for n in 1 2 3; do printf "$n%%\r"; sleep 0.1; done; echo; echo b"""
    cells, sent = shared.cells, []

    def note(message: dict[str, Any]) -> None:
        sent.append(message["content"].get("data", {}).get("application/javascript"))
        type(cells)._iopub(cells, message)

    monkeypatch.setattr(cells, "_iopub", note)
    first, script, rest = shapes(shared.run(code))
    assert (first, script) == ("a\n", "<application/javascript, 6B>") and rest.endswith("3%\nb\n")
    assert [*filter(None, sent)] == ["one()\n"]


@pytest.mark.kernel
def test_nobody_without_the_file_shows_anything(shared: LiveKernel) -> None:
    forged = MARK.decode().replace("\x1b", r"\033").replace("\x07", r"\007")
    assert shapes(shared.run(f"%%sh_session forged\nprintf 'a{forged}b\\n'; echo '<b>' ")) == ["ab\n<b>\n"]


@pytest.mark.kernel
def test_captured_displays_are_where_the_capture_has_them(shared: LiveKernel) -> None:
    outcome = shared.run(
        "from IPython.utils.capture import capture_output\n"
        "with capture_output() as got:\n"
        "    get_ipython().run_cell_magic('sh_session', 'captured', 'echo a; echo H | displayHTML k; echo b; "
        "echo I | displayHTML k')\n"
        "print([got.stdout, [one.data['text/html'] for one in got.outputs]])"
    )
    assert outcome.text == "['a\\nb\\n', ['I\\n']]\n"


@pytest.mark.kernel
def test_what_cannot_be_shown_says_so_in_one_line(shared: LiveKernel) -> None:
    assert "the 4 bytes are no image that is known here" in shared.run("%%sh_session odd\necho abc | display").text
    assert shared.run("%%sh_session odd\ndisplay").text == "display: the data comes on standard input: display < FILE\n"
    big = shared.run(f"%%sh_session odd --no-raise-error\nhead -c {DATA_LIMIT + 1} /dev/zero | display; echo $?")
    assert big.text == "display: not shown, as it is more than 32 MB\n1\n"


@pytest.mark.kernel
def test_the_shell_shows_nothing_of_ours_but_three_names(shared: LiveKernel) -> None:
    shared.run("%%sh_session clean --out names\ndeclare -F | grep -v __sm_ | sed 's/declare -f //'; false | true")
    assert shared.run("print(names)").text.split() == ["display", "displayHTML", "displayJS"]
    traced = shared.run("%%sh_session clean\nset -x; echo x | displayHTML; set +x")
    assert [line for line in shapes(traced) if "sh_session" in line or "/bin/sh" in line or "printf" in line] == []
    assert shapes(shared.run("%%sh_session clean\n(exit 5); : | displayHTML x; echo $? ${PIPESTATUS[@]} $(jobs)"))


@pytest.mark.kernel
def test_a_shell_that_was_started_anew_has_the_functions_too(shared: LiveKernel) -> None:
    shared.run("%%sh_session anew --no-raise-error\nkill -9 $$")
    assert "<b>" in shapes(shared.run("%%sh_session anew\necho '<b>' | displayHTML"))[-1]


@pytest.mark.kernel
def test_an_interrupt_while_data_comes_leaves_nothing(shared: LiveKernel) -> None:
    shared.run("%%sh_session stopped\n:")
    shared.run("from session_magics import Registry; place = Registry().get('stopped').directory")
    spooled = f"ls {shared.run('print(place)').text.strip()}/show.* >/dev/null 2>&1"
    body = f"until {spooled}; do sleep 0.02; done; echo on >&2; exec sleep 60"
    code = f"%%sh_session stopped\n{{ {body}; }} | displayHTML"
    outcome = run_with(shared, code, ("on", lambda: shared.cells.interrupt(False)))
    assert "".join(shapes(outcome)).strip() == "on" and outcome.error.startswith("CellInterrupted")
    assert shared.run("print([*place.glob('show.*')])").text == "[]\n"


@pytest.mark.kernel
def test_files_that_nobody_shows_are_few_and_those_that_are_shown_go(shared: LiveKernel) -> None:
    shared.run("%%sh_session many\necho x | displayHTML")
    shared.run("from session_magics import Registry; place = Registry().get('many').directory")
    waiting = "print(len([*place.glob('show.*')]))"
    assert shared.run(waiting).text == "0\n"
    shared.run(f"for n in range({WAITING_LIMIT}): (place / f'show.{{n:012}}').touch()")
    refused = shared.run("%%sh_session many --no-raise-error\necho x | displayHTML").text
    assert refused == "displayHTML: not shown, as too many wait for a cell to show them\n"
    assert shared.run(waiting).text == f"{WAITING_LIMIT}\n"
    shared.run("import os; [os.utime(one, (0, 0)) for one in place.glob('show.*')]")
    assert shapes(shared.run("%%sh_session many\necho x | displayHTML")) == ["x\n"]
    assert shared.run(waiting).text == "0\n"


@pytest.mark.kernel
def test_no_other_view_of_the_session_shows_the_mark(shared: LiveKernel) -> None:
    shared.run("%%sh_session views --out kept\nprintf 'a'; echo '<b>' | displayHTML; echo b")
    looks = ("%session tail views", "%session snapshot views", "print(kept)")
    assert [shared.run(look).text.split() for look in looks] == [["ab"]] * 3
    still = "from session_magics.display.still import still; print(still(Registry().get('views').directory, (24, 80)))"
    assert shared.run(f"from session_magics import Registry; {still}").text == "ab\n"


@pytest.mark.kernel
def test_displays_in_output_that_is_left_out_are_shown(shared: LiveKernel) -> None:
    body = "seq 5000; echo '<b>' | displayHTML; seq 5000"
    first, display, last = shapes(shared.run(f"%%sh_session long --limit 1000\n{body}"))
    assert first.startswith("1\n2\n") and display == "<b>\n" and last.endswith("4999\n5000\n")
    assert re.search(r"bytes not shown", last)


@pytest.mark.kernel
def test_in_the_background_they_come_to_the_cell_that_began_it(shared: LiveKernel) -> None:
    outcome = shared.run("%%sh_session behind --bg\nsleep 0.2; echo a; echo '<b>' | displayHTML; echo c")
    until(shared, lambda: shapes(outcome)[-1:] == ["c\n"])
    assert shapes(outcome) == ["a\n", "<b>\n", "c\n"]
