"""Checks of what every sandbox has to do, one function each. Public through ``session_magics.testing``.

They take a sandbox of their own: the last one closes it. They need a POSIX shell and the usual small programs there,
no Python; what they make there lies in a folder below the sandbox's root, which is removed.
"""

from __future__ import annotations

import contextlib
import time
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor

from session_magics.errors import SessionError, UsageMistake
from session_magics.model import Command
from session_magics.sandbox import Sandbox
from session_magics.testing import liveprocesses
from session_magics.testing.rig import LIMIT, raises, same
from session_magics.testing.there import EVERY_BYTE, HARD_TEXTS, MUCH, all_end, differs, folder, pwd, sh

TIME = 2.0
"""Seconds for a command that does not end: more than it takes to begin, on a machine that is busy."""


# ------------------------------------------------------------------ commands


def an_exit_status_is_a_result(sandbox: Sandbox) -> None:
    """Every one, and nothing is an error; 126 and 127 as shells have them."""
    for code in (0, 1, 3, 126, 127, 128, 255):
        result = sandbox.exec(Command(("sh", "-c", f"exit {code}")))
        same((result.code, result.timed_out, result.dropped), (code, False, 0), f"exit {code}")
    same(sandbox.exec(Command(("no-such-program-anywhere", "x"))).code, 127, "status of a program that is not there")
    with folder(sandbox) as name:
        sh(sandbox, f"echo text > {name}/plain")
        same(sandbox.exec(Command((f"./{name}/plain",))).code, 126, "status of a file that is no program")
        same(sandbox.exec(Command((f"./{name}",))).code, 126, "status of a folder as a program")


def a_signal_is_told(sandbox: Sandbox) -> None:
    """Minus its number if the program itself died of it, and 128 more if a shell tells of its child."""
    for number in (9, 15):
        result = sandbox.exec(Command(("sh", "-c", f"kill -{number} $$")))
        same(result.code in (-number, 128 + number), True, f"status after signal {number}, which is {result.code}")
        result = sandbox.exec(Command(("sh", "-c", f"sh -c 'kill -{number} $$'; exit $?")))
        same(result.code, 128 + number, f"status of a shell whose child had signal {number}")


def outputs_are_apart_and_exact(sandbox: Sandbox) -> None:
    """Without a byte added, changed or lost."""
    result = sandbox.exec(Command(("sh", "-c", r"printf 'out\r\n\n'; printf 'err\t' >&2")))
    same((result.stdout, result.stderr), (b"out\r\n\n", b"err\t"), "output")
    same(0 < result.duration < LIMIT, True, f"duration of {result.duration} s")


def any_bytes_go_both_ways(sandbox: Sandbox) -> None:
    """Every byte value, and 8 MB at once through each stream."""
    for data in (b"", EVERY_BYTE, MUCH):
        result = sandbox.exec(Command(("cat",)), stdin=data)
        same(differs(result.stdout, data), "", f"{len(data)} bytes through cat")
    result = sandbox.exec(Command(("sh", "-c", "cat >&2")), stdin=MUCH)
    same(differs(result.stderr, MUCH), "", "8 MB of error output")


def input_ends_or_is_left_alone(sandbox: Sandbox) -> None:
    """Without input there is an end of file at once; what a program does not read holds up nobody."""
    same(sandbox.exec(Command(("cat",)), timeout=LIMIT).stdout, b"", "output of cat without input")
    result = sandbox.exec(Command(("sh", "-c", "exit 5")), stdin=MUCH, timeout=LIMIT)
    same((result.code, result.timed_out), (5, False), "status of a program that does not read")


def words_arrive_as_they_are(sandbox: Sandbox) -> None:
    """No shell on the way makes anything of them."""
    result = sandbox.exec(Command(("sh", "-c", r"""for one; do printf '%s\0' "$one"; done""", "sh", *HARD_TEXTS)))
    same(result.stdout.decode().split("\0")[:-1], list(HARD_TEXTS), "words as the program got them")


def variables_arrive_as_they_are(sandbox: Sandbox) -> None:
    """Those of the command are added, and None removes one."""
    env: dict[str, str | None] = {f"CHECK_{number}": text for number, text in enumerate(HARD_TEXTS)}
    script = "".join(rf"""printf '%s\0' "${name}";""" for name in env)
    given = dict(env)
    result = sandbox.exec(Command(("sh", "-c", script), env=env))
    same(result.stdout.decode().split("\0")[:-1], list(HARD_TEXTS), "values as the program got them")
    same(env, given, "the mapping that was given")
    names = {line.partition("=")[0] for line in sh(sandbox, "env").stdout.decode(errors="replace").splitlines()}
    same("CHECK_1" in names, False, "a variable of an earlier command is there")
    same("PATH" in names, True, "PATH is there")
    gone = sandbox.exec(Command(("env",), env={"HOME": None, "CHECK_NONE": None})).stdout.splitlines()
    same([line for line in gone if line.startswith(b"HOME=")], [], "a variable that was removed")


def many_run_at_once(sandbox: Sandbox) -> None:
    """Twelve, each with input and output of its own."""

    def run(number: int) -> tuple[int, bytes]:
        result = sandbox.exec(Command(("sh", "-c", f"cat; exit {number}")), stdin=b"%d " % number * 10_000)
        return result.code, result.stdout

    with ThreadPoolExecutor(12) as pool:
        found = list(pool.map(run, range(12)))
    same(found, [(number, b"%d " % number * 10_000) for number in range(12)], "what each gave")


# --------------------------------------------------------------- directories


def commands_run_at_the_root_or_below(sandbox: Sandbox) -> None:
    """A relative directory begins at the root; an absolute one lies below it."""
    at_root = pwd(sandbox, None)
    same([pwd(sandbox, cwd) for cwd in ("", ".", sandbox.root)], [at_root] * 3, "the root, in other words")
    with folder(sandbox) as name:
        deep = f"{name}/a b's/ü"
        sandbox.exec(Command(("mkdir", "-p", deep)))
        wanted = f"{at_root.rstrip('/')}/{deep}"
        inside = (deep, f"{name}/../{deep}", f"{sandbox.root.rstrip('/')}/{deep}")
        same([pwd(sandbox, cwd) for cwd in inside], [wanted] * 3, "a directory below")


def a_directory_outside_is_refused(sandbox: Sandbox) -> None:
    """As it is written, or through a symbolic link, and nothing runs."""
    with folder(sandbox) as name:
        sh(sandbox, f"cd {name} && ln -s / out && ln -s .. up && mkdir in && ln -s in also")
        same(pwd(sandbox, f"{name}/also") != "", True, "a link to what lies below is followed")
        if sandbox.root == "/":
            return
        outside = ["..", f"{name}/../..", "/", "/etc", f"{sandbox.root}/..", f"{sandbox.root}-not"]
        for cwd in [*outside, f"{name}/out", f"{name}/out/etc", f"{name}/up/.."]:
            command = Command(("touch", f"{sandbox.root}/{name}/ran"), cwd)
            raises(UsageMistake, lambda command=command: sandbox.exec(command), f"exec in {cwd}")  # type: ignore[misc]
            for call in (sandbox.start_process, sandbox.wrap):
                if call is sandbox.start_process or name not in cwd:  # what is wrapped may not have asked there yet
                    raises(UsageMistake, lambda call=call, command=command: call(command), f"in {cwd}")  # type: ignore[misc]
        same(sandbox.exec(Command(("ls", f"{name}/ran"))).code != 0, True, "nothing has run")


def a_directory_that_is_not_there_runs_nothing(sandbox: Sandbox) -> None:
    """Whether that is an error or a status is the place's to say."""
    with contextlib.suppress(SessionError):
        result = sandbox.exec(Command(("sh", "-c", "echo ran"), "no-such-folder-anywhere"))
        same((result.code != 0, result.stdout), (True, b""), "failed, output")


# ----------------------------------------------------------------- time, jobs


def a_timeout_kills_all_that_was_started(sandbox: Sandbox) -> None:
    """With the children; what was printed until then is there."""
    with folder(sandbox) as name:
        script = "sleep 60 & echo $! > pids; (sleep 60; :) & echo $! >> pids; echo $$ >> pids; echo so far; sleep 60"
        began = time.monotonic()
        result = sandbox.exec(Command(("sh", "-c", script), name), timeout=TIME)
        lasted = time.monotonic() - began
        same(
            (result.timed_out, result.code != 0, result.stdout), (True, True, b"so far\n"), "timed out, failed, output"
        )
        same(TIME <= lasted < TIME + LIMIT, True, f"{lasted:.2f} s for a command with a time of {TIME:g} s")
        all_end(sandbox, f"{name}/pids", 3)


def a_timeout_that_is_not_reached_changes_nothing(sandbox: Sandbox) -> None:
    """A failure is not called a timeout."""
    result = sandbox.exec(Command(("sh", "-c", "exit 3")), timeout=LIMIT)
    same((result.code, result.timed_out), (3, False), "status, timed out")


def a_job_left_behind_holds_up_nobody(sandbox: Sandbox) -> None:
    """Though it has the output open, and goes on."""
    with folder(sandbox) as name:
        began = time.monotonic()
        result = sandbox.exec(Command(("sh", "-c", "sleep 60 & echo $! > pids; echo done"), name), timeout=LIMIT)
        same((result.code, result.stdout, result.timed_out), (0, b"done\n", False), "status, output, timed out")
        same(time.monotonic() - began < LIMIT / 2, True, "the call returned at once")
        sh(sandbox, f"kill $(cat {name}/pids)")


SANDBOX_CHECKS: Sequence[Callable[[Sandbox], None]] = (
    an_exit_status_is_a_result,
    a_signal_is_told,
    outputs_are_apart_and_exact,
    any_bytes_go_both_ways,
    input_ends_or_is_left_alone,
    words_arrive_as_they_are,
    variables_arrive_as_they_are,
    many_run_at_once,
    commands_run_at_the_root_or_below,
    a_directory_outside_is_refused,
    a_directory_that_is_not_there_runs_nothing,
    a_timeout_kills_all_that_was_started,
    a_timeout_that_is_not_reached_changes_nothing,
    a_job_left_behind_holds_up_nobody,
    liveprocesses.a_live_process_answers,
    liveprocesses.a_live_process_ends_by_itself,
    liveprocesses.a_kill_ends_the_whole_group,
    liveprocesses.error_output_holds_up_nobody,
    liveprocesses.much_goes_through_a_live_process,
    liveprocesses.a_live_process_has_the_same_statuses,
    liveprocesses.a_wrapped_command_runs_there,
    liveprocesses.a_wrapped_command_gets_a_terminal,
    liveprocesses.what_is_there_is_told,
    liveprocesses.a_close_ends_what_runs,
)
"""Every check; each takes a sandbox of its own."""
