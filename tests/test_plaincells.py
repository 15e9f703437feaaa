from __future__ import annotations

from collections.abc import Iterator

import pytest
from hypothesis import given
from hypothesis import strategies as st
from IPython.core.interactiveshell import InteractiveShell

from homes import own_home
from session_magics.kernel.plaincells import LINE, Parts, Transform, parts, whole

LINES = st.sampled_from(
    [
        "",
        "  ",
        "# note",
        "%session list",
        "%session \\",
        "%%bash",
        "%1",
        "%%",
        "ls %x",
        " %x",
        "é %session",
        "a \\",
        "\f",
    ]
)
CELLS = st.builds(lambda lines, last: "\n".join(lines) + last, st.lists(LINES, max_size=6), st.sampled_from(["", "\n"]))


@pytest.mark.parametrize(
    ("code", "head", "rest"),
    [
        ("ls", "", "ls"),
        ("ls\n%session list", "", "ls\n%session list"),
        ("%session list", "%session list", ""),
        ("\n\n%session list\nls\n", "\n\n%session list\n", "ls\n"),
        ("%a\n\n# note\n%b\n# of the shell\nls", "%a\n\n# note\n%b\n", "# of the shell\nls"),
        ("%session start web -- a \\\n  b\nls", "%session start web -- a \\\n  b\n", "ls"),
        ("%%sh_session other\nls", "", "%%sh_session other\nls"),
        ("\n%%time\nls", "\n", "%%time\nls"),
        ("%a\n%%time\nls", "%a\n", "%%time\nls"),
        ("%a \\\n%%b", "%a \\\n%%b", ""),
        ("%1", "", "%1"),
        ("%%", "", "%%"),
        ("%?make", "", "%?make"),
        ("# only", "", "# only"),
        ("", "", ""),
    ],
)
def test_line_magics_at_the_head_and_a_cell_magic_are_not_shell(code: str, head: str, rest: str) -> None:
    assert parts(code) == Parts(head, rest)


@given(CELLS)
def test_no_character_is_lost_or_changed(code: str) -> None:
    cell = parts(code)
    assert cell.head + cell.rest == code
    assert whole(code) == (cell.head + LINE + cell.rest if cell.plain else code)
    assert not parts(whole(code)).plain


@pytest.fixture(scope="module")
def ran(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[InteractiveShell, list[tuple[str, str]]]]:
    """An IPython whose cells are shell, and the cell magics that it runs."""
    found: list[tuple[str, str]] = []
    with pytest.MonkeyPatch.context() as patch:
        own_home(tmp_path_factory.mktemp("home"), patch)  # others may be writing the history of the user
        shell = InteractiveShell()
    shell.run_cell_magic = lambda name, line, body: found.append((name, body))
    shell.run_line_magic = lambda *_: None
    shell.input_transformers_cleanup.insert(0, Transform(lambda cell: None))
    yield shell, found
    shell.history_manager.end_session()


@given(CELLS)
def test_shell_text_reaches_the_magic_as_it_stands(
    ran: tuple[InteractiveShell, list[tuple[str, str]]], code: str
) -> None:
    shell, found = ran
    cell = parts(code)
    found.clear()
    if cell.plain:
        exec(shell.transform_cell(code), {"get_ipython": lambda: shell})
        assert found == [("sh_session", cell.rest if code.endswith("\n") else f"{cell.rest}\n")]


def test_a_cell_that_asks_for_help_does_not_run(ran: tuple[InteractiveShell, list[tuple[str, str]]]) -> None:
    transform = Transform(lambda cell: "ls" if cell.startswith(f"{LINE}ls?") else None)
    assert transform(["%a\n", "ls?"]) == ["%a\n", "get_ipython().kernel.show_help('ls', 0)\n"]
    assert transform(["ls??"]) == ["get_ipython().kernel.show_help('ls', 1)\n"]
    assert "sh_session" in transform(["ls ?"])[0]
