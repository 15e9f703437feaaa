"""What single commands leave to one another: at every place, under every shell that can be asked for there."""

from __future__ import annotations

import contextlib
import shlex
from pathlib import Path

import pytest

import statefuls
from session_magics.errors import UsageMistake
from session_magics.model import Command
from session_magics.sandbox import Result
from session_magics.sandbox.local import LocalSandbox
from session_magics.sandbox.stateful import StatefulSandbox
from statefuls import AWKWARD, Far, Recorder, everywhere, good

dockerd, sshd, links, place, far = statefuls.dockerd, statefuls.sshd, statefuls.links, statefuls.place, statefuls.far


def test_a1_making_the_object_does_nothing() -> None:
    recorder = Recorder()
    session = StatefulSandbox(recorder, "/no/such/place")
    assert recorder.commands == [] and session.cwd == ""
    for wrong in ({"state_dir": "relative"}, {"state_dir": "/x", "carry": ["jobs"]}):
        with pytest.raises(UsageMistake):
            StatefulSandbox(recorder, **wrong)  # type: ignore[arg-type]


@everywhere()
def test_a1_the_directory_is_made_by_the_first_wrapped_command(far: Far) -> None:
    session = far.session()
    assert good(session.exec(Command(("echo", "raw")))) == "raw\n"
    assert not far.exists(far.state)
    good(session.exec(far.command("true")))
    assert far.exists(far.state)


@pytest.mark.parametrize(
    ("argv", "wrapped"),
    [
        *[((program, "-c", "x"), True) for program in ("sh", "bash", "/bin/sh", "/opt/a b/dash", "ash", "busybox-sh")],
        *[((program, "-c", "x"), False) for program in ("zsh", "fish", "busybox", "sh2", "xsh", "sh/")],
        *[(("sh", *rest), False) for rest in ((), ("-c",), ("-lc", "x"), ("-c", "x", "name"), ("file", "x"))],
        (("bash", "-euo", "pipefail", "-c", "x"), False),
    ],
)
def test_a2_which_commands_are_wrapped(argv: tuple[str, ...], wrapped: bool) -> None:
    recorder = Recorder()
    command = Command(argv, "sub", {"A": "1"})
    result = StatefulSandbox(recorder, "/state").exec(command, stdin=b"in", timeout=3)
    assert recorder.commands[0] != (command, b"in", 3) if wrapped else recorder.commands == [(command, b"in", 3)]
    assert (result.stdout, result.stderr, result.code) == (b"out", b"err", 0)


@everywhere()
def test_a3_directory_and_exports_carry_over(far: Far) -> None:
    session, other = far.session(), StatefulSandbox(far.place, f"{far.work}/other")
    far.plain("mkdir a b 'a/it is'")
    good(session.exec(far.command(f"cd {far.work}/a; export FOO=bar")))
    assert good(session.exec(far.command("pwd; echo $FOO; cd 'it is'"))) == f"{far.work}/a\nbar\n"
    assert session.cwd == f"{far.work}/a/it is"
    assert good(session.exec(far.command("pwd", f"{far.work}/b"))) == f"{far.work}/b\n"
    assert good(session.exec(far.command("pwd; echo $FOO; cd -"))) == f"{far.work}/b\nbar\n{far.work}/a/it is\n"
    assert good(other.exec(far.command("echo ${FOO-none}"))) == "none\n"
    other.close()
    assert session.exec(far.command("exit 7")).code == 7


def test_values_are_in_no_argument(tmp_path: Path) -> None:
    commands: list[Command] = []

    class Watched(LocalSandbox):
        def exec(self, command: Command, *, stdin: bytes | None = None, timeout: float | None = None) -> Result:
            commands.append(command)
            return super().exec(command, stdin=stdin, timeout=timeout)

    with contextlib.closing(StatefulSandbox(Watched(tmp_path), str(tmp_path / "state"))) as session:
        good(session.exec(Command(("sh", "-c", "export TOKEN=$GIVEN"), env={"GIVEN": "s3cret"})))
        assert good(session.exec(Command(("sh", "-c", "echo $TOKEN; env | grep -c SESSION_MAGICS_WORDS || :")))) == (
            "s3cret\n0\n"
        )
    assert [word for command in commands for word in command.argv if "s3cret" in word] == []


STATUSES = (
    *("true", "", "exit 7", "(exit 5)", "false", "no-such-program", "/", "kill -KILL $$", "kill -TERM $$", "exit 200"),
    *("sh -c 'kill -KILL $$'; exit $?", "exec true", "exec no-such", "exec sh -c 'exit 137'", "exit 137"),
    *("trap 'exit 9' EXIT; exit 3", "trap 'echo $?' 0; exit 3", "trap 'echo x' EXIT; trap - EXIT; exit 4"),
    *("set -e; trap 'echo $?' EXIT; false; echo", "(trap 'echo sub' EXIT); echo top", "echo $0 $#", "return 4"),
    *(
        "set -e; false; echo",
        "set -u; echo $NO",
        "if",
        "cd /no/such",
        "trap '' TERM; trap '' EXIT",
        "set -- a b; exit $#",
    ),
)


@everywhere()
def test_a4_status_and_output_are_those_of_the_shell(far: Far) -> None:
    session = far.session()
    for body in STATUSES:
        plain, stateful = far.plain(body), session.exec(far.command(body, far.work))
        assert (stateful.code, stateful.stdout) == (plain.code, plain.stdout), body
        assert bool(stateful.stderr) == bool(plain.stderr), body


@everywhere()
def test_a5_stdin_time_limit_and_environment_are_handed_on(far: Far) -> None:
    session = far.session()
    assert good(session.exec(far.command("cat"), stdin=b"line\nrest")) == "line\nrest"
    assert good(session.exec(far.command("cat"))) == ""
    env = {"OWN": AWKWARD}
    assert good(session.exec(far.command('printf %s "$OWN"; OWN=2; export OWN', env=env))) == AWKWARD
    assert env == {"OWN": AWKWARD}


BODIES = [
    "cat <<'END'\n$HOME 'quoted' \"\nEND\n",
    "cat <<END\n$((1 + 1)) `echo x` \"\nEND\necho after # it's a comment",
    "echo 'a\\nb' | od -c # \\",
    "printf '%s\\n' \"é ☃ '\"'$x'",
    "\n\n  echo 'begins late'  \n\n",
    "# only a comment",
    "f() {\n  echo \"$1\"\n}\nf 'a  b'\n: \\\n && echo joined",
    "case x in x) echo ')';; esac",
    "set -- 1 2; shift; echo $1 $#",
]


@everywhere()
def test_a6_a_body_arrives_as_it_is(far: Far) -> None:
    session = far.session()
    for body in BODIES:
        assert good(session.exec(far.command(body))) == far.plain(body).stdout.decode()


@everywhere()
def test_a6_a_value_arrives_as_it_is(far: Far) -> None:
    session = far.session()
    good(session.exec(far.command(f"V={shlex.quote(AWKWARD)}; export V; W=; export W")))
    for _ in range(2):  # restored from what was exported, and from what was restored
        assert (
            good(session.exec(far.command('printf %s "$V"; echo "${W-none}${EVIL-}."; export X$$=1')))
            == f"{AWKWARD}.\n"
        )


@everywhere()
def test_a7_close_removes_the_state(far: Far) -> None:
    session = far.session()
    session.close()
    good(session.exec(far.command("cd /; export A=1; umask 077")))
    session.close()
    session.close()
    assert not far.exists(far.state)
    begin = far.place.exec(far.command("pwd; umask")).stdout.decode()
    assert good(session.exec(far.command("pwd; umask; echo ${A-none}"))) == f"{begin}none\n"
    # Only what is its own: a directory with something else in it stays.
    far.plain(f"echo mine >{far.state}/mine")
    session.close()
    assert far.plain(f"ls {far.state}; rm -r {far.state}").stdout == b"mine\n"


ENDS: tuple[tuple[str, int | None], ...] = (
    *(("exit 7", 7), ("set -e\nfalse", 1), ("set -u\necho $NO", None), ("return 4", None), ("\nif", 2)),
    *(("trap 'exit 9' EXIT", 9), ("trap 'echo bye' EXIT; exit 3", 3), ("trap 'echo bye' EXIT TERM\nexit 3", 3)),
    *(("trap - 0; trap 'exit 8' 0; set -e; false", 8), ("exec 2>/dev/null; exit 6", 6), ("set -eux; exit 5", 5)),
    *(("IFS=x; set -f; exit 5", 5), ("export PATH=; exit 5", 5), ("(exit 6)", 6), ("trap exit EXIT; exit 5", 5)),
)


@everywhere()
def test_a8_state_is_kept_whatever_ends_the_body(far: Far) -> None:
    for number, (end, code) in enumerate(ENDS):
        session = far.session()
        result = session.exec(far.command(f"cd {far.work}; export KEPT='a {number}'\n{end}"))
        assert (result.warnings, result.lost, result.cwd) == ((), (), far.work), end
        assert result.code == code or (code is None and result.code), end
        assert good(session.exec(far.command('pwd; echo "$KEPT"'))) == f"{far.work}\na {number}\n"
        session.close()


@everywhere()
def test_a8_what_no_shell_can_keep_is_said(far: Far) -> None:
    session = far.session()
    good(session.exec(far.command(f"cd {far.work}; export A=1")))
    for body in ("cd /; export A=2; exec true", "cd /; export A=2; kill -KILL $$"):
        assert session.exec(far.command(body)).lost == ("directory", "environment")
        assert good(session.exec(far.command("pwd; echo $A"))) == f"{far.work}\n1\n"


@everywhere()
def test_a9_removals_are_remembered_and_call_values_stay_in_the_call(far: Far) -> None:
    session = far.session()
    good(session.exec(far.command("unset HOME; export A=saved; export B=1")))
    assert good(session.exec(far.command("echo ${HOME-none} $A"))) == "none saved\n"
    assert (
        good(session.exec(far.command("echo $A $HOME $C", env={"A": "call", "HOME": "/call", "C": "c"})))
        == "call /call c\n"
    )
    assert good(session.exec(far.command("echo ${A-none} ${B-none}", env={"A": None, "B": None}))) == "none none\n"
    assert good(session.exec(far.command("echo $A ${HOME-none} ${C-none} $B; unset B"))) == "saved none none 1\n"
    good(session.exec(far.command("A=changed", env={"A": "call"})))
    assert good(session.exec(far.command("echo $A ${B-none}"))) == "changed none\n"
