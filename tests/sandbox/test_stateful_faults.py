"""State that is damaged, big, contended or gone, at every place; values and bodies of all kinds."""

from __future__ import annotations

import contextlib
import shlex
import time
from concurrent.futures import ThreadPoolExecutor

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import statefuls
from rounds import DEADLINE
from session_magics.errors import SandboxError
from session_magics.model import Command
from session_magics.sandbox.local import LocalSandbox
from session_magics.sandbox.stateful import StatefulResult, StatefulSandbox
from statefuls import LOCALLY, PLACES, Far, everywhere, good

# Seconds for a command that does not end: more than it takes to begin, on a machine that is busy.
TIME = 2.0
dockerd, sshd, links, place, far = statefuls.dockerd, statefuls.sshd, statefuls.links, statefuls.place, statefuls.far


@everywhere()
def test_a10_a_damaged_state_file_is_a_warning(far: Far) -> None:
    planted = f"{far.work}/planted"
    attack = f"session-magics 1 ab {'0' * 64}\n=A=$(touch {planted})\nf: >{planted}\n"
    damages = (
        "head -c 30 state >x; mv x state",
        'sed "s/=A=1/=A=2/" state >x; mv x state',
        ": >state",
        "rm state",
        "rm state; mkdir state",
        f"printf %s {shlex.quote(attack)} >state",
        "rm state; echo x >y; ln -s y state",
    )
    for damage in damages if isinstance(far.place, LocalSandbox) else damages[:2]:
        for new in (False, True):
            session = far.session()
            good(session.exec(far.command("export A=1")))
            assert far.plain(f"cd {far.state} && {damage}").code == 0
            user = far.session() if new else session
            result = user.exec(far.command("echo ${A-none}; export B=2"))
            assert (result.code, result.stdout, result.stderr) == (0, b"none\n" if new else b"1\n", b"")
            # A file that is not there is how every session begins; one that is known by its token is not read again.
            assert bool(result.warnings) == (damage != "rm state" if new else "sed" not in damage), damage
            shown = user.exec(far.command("echo ${A-none}$B"))
            assert (shown.stdout, bool(shown.warnings)) == (b"none2\n" if new else b"12\n", "mkdir" in damage)
            assert not far.exists(planted)
            far.plain(f"rm -rf {far.state}")


@everywhere()
def test_a10_files_are_for_their_owner_alone(far: Far) -> None:
    session = far.session()
    listing = f"ls -ld {far.state} && ls -l {far.state}"
    good(session.exec(far.command("umask 000; export SECRET=1")))
    shown = good(session.exec(far.command(f"{listing}; umask"))).splitlines()
    modes = {line.split()[0][:10] for line in shown if line[0] in "d-"}
    assert modes == {"drwx------", "-rw-------"} and shown[-1] in ("0000", "000")


@everywhere()
def test_a10_names_that_belong_to_the_shell_do_no_harm(far: Far) -> None:
    session = far.session()
    for name in ("UID", "PPID", "SHELLOPTS", "RANDOM", "BASHOPTS", "LINENO", "_", "PWD", "SHLVL", "EUID"):
        assert session.exec(far.command(f"export {name}; export OTHER={name}")).code in (0, 2)
        assert good(session.exec(far.command("echo $OTHER"))) == f"{name}\n"


@everywhere()
def test_a11_a_directory_that_cannot_be_used_changes_neither_status_nor_output(far: Far) -> None:
    good(far.session().exec(far.command("export A=1")))
    if far.plain("id -u").stdout != b"0\n":  # root may write everywhere
        far.plain(f"chmod 500 {far.state}")
        result = far.session().exec(far.command("echo $A; export A=2; exit 3"))
        assert (result.code, result.stdout, result.stderr) == (3, b"1\n", b"") and result.warnings
        far.plain(f"chmod 700 {far.state}")
    for damage in (f"rm -r {far.state}; echo file >{far.state}", f"rm {far.state}; ln -s /tmp {far.state}"):
        assert far.plain(damage).code == 0
        for body, code in (("echo $A; export A=2", 0), ("echo $A; exit 3", 3)):
            result = far.session().exec(far.command(body))
            assert (result.code, result.stdout, result.stderr) == (code, b"\n", b"")
            assert result.warnings and result.lost
    far.plain(f"rm {far.state}")
    result = far.session().exec(far.command(f"rm -r {far.state}; echo done"))
    assert (result.code, result.stdout, result.stderr) == (0, b"done\n", b"")


@everywhere()
def test_a12_big_bodies_and_big_exports(far: Far) -> None:
    session = far.session()
    text = "it's é \\ " * 20_000
    assert good(session.exec(far.command(f"V={shlex.quote(text)}; cat; echo ${{#V}}"), stdin=b"in ")).startswith("in ")
    good(session.exec(far.command(f"cd {far.work}; V={shlex.quote(text)}; export V; export SMALL=1")))
    # Too big for the environment of any program: kept as a variable, so that programs can be started.
    assert (
        good(session.exec(far.command(f'cat; pwd; ls {far.work}; printf %s "$V"'), stdin=b"in "))
        == f"in {far.work}\ndeep\n{text}"
    )
    assert good(session.exec(far.command("echo $SMALL; unset V"))) == "1\n"
    assert good(session.exec(far.command("echo ${V-none}; ls"))) == "none\ndeep\n"


@everywhere()
def test_a13_a_time_limit_ends_the_group_and_a_job_holds_nothing_up(far: Far) -> None:
    session = far.session()
    good(session.exec(far.command("export A=1")))
    began = time.monotonic()
    # The limit counts from the start of the command there, which a busy engine may take a while for.
    result = session.exec(far.command("export A=2; echo begun; sleep 61; echo"), timeout=TIME)
    assert (result.timed_out, result.stdout, bool(result.lost)) == (True, b"begun\n", True)
    assert time.monotonic() - began < TIME + DEADLINE
    assert good(session.exec(far.command("echo $A"))) == "1\n"
    began = time.monotonic()
    good(session.exec(far.command("sleep 63 & echo $! >pid; export A=3", far.work)))
    assert time.monotonic() - began < DEADLINE
    assert good(session.exec(far.command("kill $(cat pid); echo $A"))) == "3\n"


@everywhere()
def test_a14_parallel_calls_lose_nothing(far: Far) -> None:
    session = far.session()
    with ThreadPoolExecutor(12) as pool:
        list(pool.map(lambda number: good(session.exec(far.command(f"export N{number}=1"))), range(12)))
    assert (
        good(session.exec(far.command('echo "' + "".join(f"$N{number}" for number in range(12)) + '"')))
        == "1" * 12 + "\n"
    )


@everywhere()
def test_a14_nor_do_those_of_several_objects(far: Far) -> None:
    sessions = [far.session() for _ in range(3)]
    with ThreadPoolExecutor(3) as pool:
        for round_ in range(2):
            work = [(session, f"export N{number}_{round_}=1") for number, session in enumerate(sessions)]
            assert not [
                result for result in pool.map(lambda each: each[0].exec(far.command(each[1])).warnings, work) if result
            ]
    shown = "".join(f"${{N{number}_{round_}}}" for number in range(3) for round_ in range(2))
    for session in sessions:
        assert good(session.exec(far.command(f"echo {shown}"))) == "111111\n"


@everywhere()
def test_a15_a_directory_that_is_gone_is_reported(far: Far) -> None:
    session = far.session()
    gone = f"{far.work}/gone\n"
    result = session.exec(far.command(f"mkdir '{gone}' && cd '{gone}'"))
    assert result.cwd == gone and good(session.exec(far.command("pwd"))) == f"{gone}\n"
    far.plain(f"rmdir '{gone}'")
    result = session.exec(far.command("pwd"))
    assert result.code == 0 and result.stdout.decode() == f"{session.cwd}\n" != f"{gone}\n"
    assert [gone in warning for warning in result.warnings] == [True]
    assert session.exec(far.command("pwd")).warnings == ()


@everywhere([each for each in PLACES if each[1] == "bash"])
def test_a16_bash_is_bash_and_its_functions_aliases_and_options_carry_over(far: Far) -> None:
    session = far.session(carry={"functions", "aliases", "options"})
    body = "a=(x 'y z'); [[ ${a[1]} == y* ]] && echo ${BASH_VERSION:+bash}; greet() { echo \"hi $1\"; }\n"
    body += "alias say='echo \"it is\"'; shopt -s expand_aliases extglob; set -o pipefail -u"
    assert good(session.exec(far.command(body))) == "bash\n"
    for _ in range(2):
        shown = "greet you; say so; set -o | grep -E 'pipefail|nounset'; shopt extglob; echo !(x)"
        lines = [line.split() for line in good(session.exec(far.command(shown, far.work))).splitlines()]
        assert lines == [
            ["hi", "you"],
            ["it", "is", "so"],
            ["nounset", "on"],
            ["pipefail", "on"],
            ["extglob", "on"],
            ["deep"],
        ]
    if far.plain("command -v dash").code == 0:
        good(session.exec(Command(("dash", "-c", "export A=1"))))  # which has none of these, and drops none
    good(session.exec(far.command("set +u; unset -f greet; unalias say; echo $NO $A")))
    shown = "type greet say 2>/dev/null; set -o | grep nounset"
    assert good(session.exec(far.command(shown))).split() == ["nounset", "off"]
    assert session.exec(far.command("set -e; true")).code == 0
    assert session.exec(far.command("false; echo no")).stdout == b""


@LOCALLY
def test_the_body_sees_nothing_of_the_transport(far: Far) -> None:
    session = far.session()
    for _ in range(2):
        shown = good(session.exec(far.command("env; set", env={"MINE": "1"})))
        names = {line.partition("=")[0] for line in shown.splitlines() if line.partition("=")[1]}
        assert not {name for name in names if name.startswith("__sm") or "EXECUTION" in name} and "MINE" in names


@LOCALLY
def test_without_a_path_there_is_still_a_session(far: Far) -> None:
    session = far.session()
    good(session.exec(far.command(f"cd {far.work}; export PATH= A=1")))
    assert good(session.exec(far.command("pwd; echo $A; umask 027"))) == f"{far.work}\n1\n"
    assert good(session.exec(far.command("umask; pwd; export PATH=/bin:/usr/bin; ls"))) in (
        f"{mask}\n{far.work}\ndeep\n" for mask in ("0027", "027")
    )


@LOCALLY
def test_what_a_job_writes_meanwhile_is_kept(far: Far) -> None:
    session = far.session()
    noise = "(while :; do echo noise >&2; done) & echo $! >pid; export A=1"
    result = session.exec(far.command(noise, far.work))
    good(session.exec(far.command("kill -KILL $(cat pid)")))
    assert set(result.stderr.splitlines()) <= {b"noise"} and (result.warnings, result.lost) == ((), ())
    assert good(session.exec(far.command("echo $A"))) == "1\n"


@LOCALLY
def test_output_beyond_the_limit_does_not_cost_the_state(far: Far) -> None:
    with contextlib.closing(LocalSandbox(far.work, output_cap=2**16)) as small:
        session = StatefulSandbox(small, far.state)
        result = session.exec(far.command("export A=1; yes | head -c 1000000 >&2"))
        assert result.dropped and (result.warnings, result.lost) == ((), ())
        assert good(session.exec(far.command("echo $A"))) == "1\n"
        session.close()


@LOCALLY
@settings(max_examples=40, deadline=None, suppress_health_check=list(HealthCheck))
@given(
    st.lists(st.text(st.characters(blacklist_characters="\0", codec="utf-8"), max_size=60), max_size=4),
    st.lists(
        st.binary(max_size=20).map(lambda data: data.replace(b"\0", b"").decode("utf-8", "surrogateescape")), max_size=2
    ),
)
def test_every_value_comes_back(far: Far, texts: list[str], raw: list[str]) -> None:
    values = {f"V{number}": value for number, value in enumerate([*texts, *raw])}
    session = far.session()
    setting = "".join(f"{name}={shlex.quote(value)}; export {name}\n" for name, value in values.items())
    good_output(session.exec(far.command(setting)))
    for _ in range(2):
        shown = "".join(f"printf '%s\\0' \"${name}\"\n" for name in values)
        output = good_output(session.exec(far.command(shown + "export AGAIN=$$")))
        assert output.split("\0")[:-1] == list(values.values())
    session.close()


def good_output(result: StatefulResult) -> str:
    assert (result.code, result.stderr, result.warnings, result.lost) == (0, b"", (), ())
    return result.stdout.decode("utf-8", "surrogateescape")


@LOCALLY
@settings(max_examples=60, deadline=None, suppress_health_check=list(HealthCheck))
@given(
    st.lists(
        st.sampled_from(
            [
                "echo a",
                "'",
                '"',
                "\\",
                "\n",
                ";",
                "$(",
                ")",
                "`",
                "{",
                "}",
                "exit 3",
                "#",
                "<<E\n",
                "E\n",
                "&&",
                "é",
                "false",
                "if ",
                "fi",
            ]
        ),
        max_size=7,
    ).map(" ".join)
)
def test_every_body_does_what_it_does_without(far: Far, body: str) -> None:
    plain, stateful = far.plain(body), far.session().exec(far.command(body, far.work))
    assert (stateful.stdout, stateful.warnings, stateful.lost) == (plain.stdout, (), ())
    # After a body with an error of syntax bash ends with the status of the line before, and its eval with 2.
    quirk = far.bash and (b"syntax error" in stateful.stderr or b"unexpected EOF" in stateful.stderr)
    assert stateful.code == plain.code or (quirk and stateful.code == 2)


@LOCALLY
def test_a_command_too_big_for_a_place_that_takes_no_file_is_an_error(far: Far) -> None:
    far.plain("mkdir deep; echo file >deep/state")
    with pytest.raises(SandboxError, match="cannot be left there"):
        far.session().exec(far.command(": " + "x" * 200_000))
    far.plain("rm deep/state")
