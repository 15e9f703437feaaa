"""Any words, variables and bytes get through any login shell to the program as they are."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

import sshds
from session_magics.errors import UsageMistake
from session_magics.model import Command
from session_magics.sandbox.quoting import READ_LINE, executing, input_line, login_line

SHELLS = {"sh": "sh", **sshds.SHELLS}
SHOW = (
    "import os, sys; sys.stdout.buffer.write(b'\\0'.join([*map(os.fsencode, sys.argv[1:]), *map(os.environb.get, {})]))"
)
HARD = "".join(map(chr, range(1, 256))) + "ünï ✓ 漢字 \\' \\\\ !! !x %s%%\\c \\0 \\n\n"

words = st.text(st.characters(exclude_characters="\0", exclude_categories=["Cs"]), max_size=40)
raw = st.binary(max_size=40).filter(lambda data: b"\0" not in data).map(os.fsdecode)
names = st.sampled_from(
    ["ONE", "line", "code", "IFS", "PS4", "OPTIND", "UID", "_", "a.b", "BASH_FUNC_f%%", "PWD", "SECONDS"]
)


@pytest.fixture(params=SHELLS)
def login_shell(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> str:
    """The path of a login shell, by the name that it is to be called by."""
    found = sshds.program(SHELLS[request.param])
    if found is None:
        pytest.skip(f"{request.param} is not installed")
    if Path(found).name == request.param:
        return found
    link = tmp_path_factory.mktemp("bin") / request.param
    link.symlink_to(found)
    return str(link)


def through(shell: str, line: str, stdin: bytes = b"") -> bytes:
    return subprocess.run([shell, "-c", line], input=stdin, capture_output=True, check=True, timeout=20).stdout


def shown(values: list[str], env: dict[str, str]) -> tuple[Command, bytes]:
    """A command that prints its words and the values of its variables, and what it is to print."""
    program = (sys.executable, "-I", "-S", "-c", SHOW.format([os.fsencode(name) for name in env]), *values)
    return Command(program, env=dict(env)), b"\0".join(map(os.fsencode, [*values, *env.values()]))


@settings(max_examples=25, deadline=None, suppress_health_check=list(HealthCheck))
@given(st.lists(words | raw, max_size=4), st.dictionaries(names, words | raw, max_size=3))
@example([HARD, "", " ", "-n", "\n", "'", "\\", "!"], {"ONE": HARD})
def test_words_and_variables_get_through_a_login_shell(
    login_shell: str, values: list[str], env: dict[str, str]
) -> None:
    command, wanted = shown(values, env)
    assert through(login_shell, login_line(executing(command), {"MARK": "one"})) == wanted


@settings(max_examples=25, deadline=None, suppress_health_check=list(HealthCheck))
@given(st.lists(words | raw, max_size=4), st.binary(max_size=200))
@example([HARD], bytes(range(256)))
def test_a_line_of_input_is_a_script_and_the_rest_is_the_programs(
    login_shell: str, values: list[str], rest: bytes
) -> None:
    script = executing(Command(("sh", "-c", "printf '%s\\0' \"$@\"; cat", "sh", *values)))
    found = through(login_shell, login_line(READ_LINE), input_line(script) + rest)
    assert found == b"".join(os.fsencode(value) + b"\0" for value in values or [""]) + rest


@settings(max_examples=100, deadline=None, suppress_health_check=list(HealthCheck))
@given(st.lists(words | raw, min_size=1))
@example([HARD])
def test_no_shell_sees_a_character_that_it_may_treat_specially(values: list[str]) -> None:
    line = login_line(executing(Command(("true", *values))))
    quoted = line.split("'")
    assert len(quoted) == 3 and not set(quoted[1]) & set("!\n\r\t") and quoted[1].isascii()
    assert all(after.isdigit() for after in (part[0] for part in quoted[1].split("\\")[1:]))


def test_a_variable_is_removed(login_shell: str) -> None:
    command = Command(("env",), env={"HOME": None, "PPID": None, "a.b": None})
    assert b"HOME=" not in through(login_shell, login_line(executing(command)))


def test_a_program_whose_name_would_be_an_option_is_refused() -> None:
    with pytest.raises(UsageMistake, match="begins with no '-'"):
        executing(Command(("-x",)))
