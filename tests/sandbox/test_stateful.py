"""What single commands leave to one another: at every place, under every shell that can be asked for there."""

from __future__ import annotations

import contextlib
import secrets
import shlex
import shutil
import time
from collections.abc import Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import dockers
import leaks
import sshds
from session_magics.errors import SandboxError, UsageMistake
from session_magics.model import Command
from session_magics.sandbox import Result
from session_magics.sandbox.docker import DockerSandbox
from session_magics.sandbox.local import LocalSandbox
from session_magics.sandbox.ssh import SSHSandbox
from session_magics.sandbox.stateful import Executes, StatefulResult, StatefulSandbox

dockerd, sshd = dockers.dockerd, sshds.sshd

HERE = ("local",)
ELSEWHERE = ("busybox", "bash", "ssh")
SHELLS = {
    "local": ("dash", "bash", "ash"),
    "busybox": ("sh",),
    "bash": ("dash", "bash"),
    "ssh": ("dash", "bash", "ash"),
}
PLACES = [(place, shell) for place in (*HERE, *ELSEWHERE) for shell in SHELLS[place]]
# A value with all that a shell or a line might stumble over; it ends in newlines, as $(…) would cut them off.
AWKWARD = "it's \"$HOME\" `x` \\n \\ é\ttab\r\x01\nexport EVIL='1'\n}; echo\n\n"


@dataclass
class Far:
    """A place, the shell asked for there, and a directory of the test's own."""

    place: Executes
    shell: str
    work: str
    state: str
    sessions: list[StatefulSandbox] = field(default_factory=list)

    def session(self, **options: object) -> StatefulSandbox:
        self.sessions.append(StatefulSandbox(self.place, self.state, **options))  # type: ignore[arg-type]
        return self.sessions[-1]

    def command(self, body: str, cwd: str | None = None, env: Mapping[str, str | None] = {}) -> Command:
        return Command((self.shell, "-c", body), cwd, env)

    def plain(self, body: str, stdin: bytes | None = None) -> Result:
        """Run it without any state, in the directory of the test."""
        return self.place.exec(self.command(body, self.work), stdin=stdin)

    def exists(self, path: str) -> bool:
        return self.plain(f"[ -e {shlex.quote(path)} ]").code == 0

    @property
    def bash(self) -> bool:
        return self.shell == "bash"


@dataclass
class Recorder:
    """Passes commands on, and remembers them."""

    place: Executes | None = None
    commands: list[tuple[Command, bytes | None, float | None]] = field(default_factory=list)

    def exec(self, command: Command, *, stdin: bytes | None = None, timeout: float | None = None) -> Result:
        self.commands.append((command, stdin, timeout))
        return self.place.exec(command, stdin=stdin, timeout=timeout) if self.place else Result(0, b"out", b"err", 0.1)


@pytest.fixture(scope="module")
def place(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[str, Executes]]:
    """One place for all tests of a shell; what it needs is gone afterwards."""
    name, _ = request.param
    folder = tmp_path_factory.mktemp("place")
    with contextlib.ExitStack() as stack:
        if name in ("busybox", "bash"):
            engine = request.getfixturevalue("dockerd")
            container = engine.run(name)
            stack.callback(engine.remove, container)
            client = stack.enter_context(engine.client())
        server = request.getfixturevalue("sshd") if name == "ssh" else None
        before = leaks.baseline()
        if name == "local":
            sandbox = stack.enter_context(contextlib.closing(LocalSandbox("/tmp")))
        elif name == "ssh":
            sandbox = stack.enter_context(contextlib.closing(SSHSandbox("far", config=server.config)))
        else:
            sandbox = DockerSandbox(container=container, client=client)
        yield name, sandbox
        sandbox.close()
        if name in ("local", "ssh"):
            assert leaks.leaked(folder, before) == []
        assert server is None or server.left() == []


@pytest.fixture
def far(place: tuple[str, Executes], request: pytest.FixtureRequest, links: Path) -> Iterator[Far]:
    name, shell = request.node.callspec.params["place"]
    _, sandbox = place
    if name in ("local", "ssh") and shell in ("ash", "sh"):
        shell = str(links / shell)
        if not Path(shell).exists():
            pytest.skip("busybox is not installed")
    work = f"/tmp/sm-{secrets.token_hex(6)}"
    assert sandbox.exec(Command(("sh", "-c", f"umask 022; mkdir {work}"))).code == 0
    far = Far(sandbox, shell, work, f"{work}/deep/state")
    yield far
    for session in far.sessions:
        session.close()
    assert not far.exists(far.state)
    assert sandbox.exec(Command(("sh", "-c", f"rm -rf {work}"))).code == 0


@pytest.fixture(scope="session")
def links() -> Iterator[Path]:
    """A folder with other names of shells: a busybox that is an ash, a bash that is sh; for every user."""
    folder = Path(f"/tmp/sm-links-{secrets.token_hex(4)}")
    folder.mkdir()
    folder.chmod(0o755)
    for name, program in (("ash", "busybox"), ("sh", "bash")):
        if found := shutil.which(program):
            (folder / name).symlink_to(found)
    yield folder
    shutil.rmtree(folder)


def everywhere(places: list[tuple[str, str]] = PLACES) -> pytest.MarkDecorator:
    return pytest.mark.parametrize("place", places, indirect=True, ids=lambda place: "-".join(place))


LOCALLY = everywhere([each for each in PLACES if each[0] == "local"])


def good(result: StatefulResult) -> str:
    """The output of a command that succeeded and whose state was kept."""
    assert (result.code, result.stderr, result.warnings, result.lost) == (0, b"", (), ())
    return result.stdout.decode()


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
    result = session.exec(far.command("export A=2; echo begun; sleep 61; echo"), timeout=1)
    assert (result.timed_out, result.stdout, bool(result.lost)) == (True, b"begun\n", True)
    assert time.monotonic() - began < 10
    assert good(session.exec(far.command("echo $A"))) == "1\n"
    began = time.monotonic()
    good(session.exec(far.command("sleep 63 & echo $! >pid; export A=3", far.work)))
    assert time.monotonic() - began < 10
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
@settings(max_examples=40, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
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
@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
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
