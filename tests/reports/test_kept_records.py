"""Reports about records: what is recorded stays true, whoever is killed and whatever is full."""

from __future__ import annotations

import json
import random
import sys
import time
from pathlib import Path

import pytest

from disks import fill, free
from held import command_line, kill_holder
from others import in_another_process, said
from rounds import DEADLINE, rounds, sessions, until_gone
from session_magics import Command, Exited, Lost, Registry, Running, SessionError, Unknown
from session_magics.cleaning import clean

SLEEP = Command(("sleep", "1000"))

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="finds processes through /proc")


def specs(root: Path) -> dict[str, bytes]:
    """What the registry knows of each session, byte by byte."""
    return {str(path.relative_to(root)): path.read_bytes() for path in sorted(root.glob("sessions/*/spec.json"))}


def names(root: Path) -> list[str]:
    status, out, err = command_line("list", "--json", env={"SESSION_MAGICS_HOME": str(root)})
    assert status == 0, err
    return sorted(row["name"] for row in json.loads(out)["value"])


def test_pm2_2827_specs_of_the_dead_survive_every_verb_that_writes(registry: Registry, root: Path) -> None:
    """An out-of-memory kill made the next save an empty list."""
    for name in ("a", "b", "c"):
        kill_holder(registry.start(name, SLEEP))
    before = specs(root)
    assert names(root) == ["a", "b", "c"] and specs(root) == before
    over = registry.start("d", Command(("true",)))
    until_gone(over)
    assert clean(registry) == ["d"]
    registry.stop_all()
    assert specs(root) == before
    assert {info.name: info.state for info in registry.infos()} == dict.fromkeys("abc", Lost("holder killed"))


def test_pm2_2971_a_full_disk_costs_no_record(disk: Path) -> None:
    """A save on a full disk emptied the list."""
    with sessions(disk) as registry:
        running = [registry.start(name, SLEEP) for name in ("a", "b")]
        before = specs(disk)
        fill(disk)
        with pytest.raises(SessionError, match=r"(?i)no space left"):
            registry.start("c", SLEEP)
        assert isinstance(running[0].stop(), Exited)
        assert [type(info.state) for info in registry.infos()] == [Exited, Running]
        assert specs(disk) == before
        free(disk)
        assert registry.start("c", Command(("true",))).wait(DEADLINE) == 0


def test_pm2_1849_two_homes_are_two_registries_that_never_write_to_one_another(tmp_path: Path) -> None:
    """Under sudo another home was taken, and the list of one blanked by the other."""
    homes = []
    for name in ("mine", "roots"):
        home = Path(tmp_path, name)
        home.mkdir(mode=0o700)
        homes.append({"HOME": str(home), "SESSION_MAGICS_HOME": "", "XDG_STATE_HOME": ""})
    mine, other = homes
    try:
        assert command_line("start", "web", "--", "sleep", "1000", env=mine)[0] == 0
        files = sorted(Path(mine["HOME"]).rglob("*"))
        _, out, _ = command_line("list", "--json", env=other)
        assert json.loads(out)["value"] == []
        assert command_line("info", "web", env=other)[0] == 1
        assert command_line("start", "web", "--", "sleep", "1000", env=other)[0] == 0
        assert sorted(Path(mine["HOME"]).rglob("*")) == files
        for env in homes:
            assert env["HOME"] in command_line("info", "web", env=env)[1], "it says where the record is"
        assert command_line("stop", "web", "--now", env=other)[0] == 0
        assert "running" in command_line("info", "web", env=mine)[1]
    finally:
        for env in homes:
            command_line("stop", "web", "--now", env=env)


@pytest.mark.parametrize("megabytes", [4, 9, 13])
def test_pm2_1035_a_start_without_memory_fails_alone(registry: Registry, root: Path, megabytes: int) -> None:
    """A child that could not be made for want of memory took the saved list along."""
    registry.start("a", SLEEP)
    before, state = specs(root), registry.get("a").state()
    code = (
        f"import resource; resource.setrlimit(resource.RLIMIT_AS, ({megabytes} << 20,) * 2)\n"
        "try: r.start('b', Command(('true',))); print('started')\n"
        "except (SessionError, OSError, MemoryError) as error: print('refused:', str(error).count('\\n'))"
    )
    assert said(in_another_process(root, code)) == "refused: 0"
    after = specs(root)
    assert {path: after[path] for path in before} == before
    assert registry.get("a").state() == state
    assert registry.start("b", Command(("true",))).wait(DEADLINE) == 0


def test_claude_squad_a_bad_record_and_killed_writers_hide_no_other(registry: Registry, root: Path) -> None:
    """One list for all, written in place without a lock: a torn or odd record made all of it unreadable."""
    for number in range(3):
        registry.start(f"s{number}", SLEEP)
    code = "print('go', flush=True)\nn = 0\nwhile True:\n r.start('NAME', Command(('true',), cwd='/')).wait(20)"
    draw = random.Random(1)
    for number in range(rounds(4, 40)):
        writers = [in_another_process(root, code.replace("NAME", f"w{number}{side}")) for side in "ab"]
        for writer in writers:
            assert writer.stdout is not None and writer.stdout.readline() == "go\n"
        time.sleep(draw.uniform(0, 0.15))  # the moment is what the test is about
        for writer in writers:
            writer.kill()
            writer.communicate()
    assert all(json.loads(data)["name"] for data in specs(root).values())
    bad = registry.get("s1").directory / "spec.json"
    bad.write_bytes(b'{"schema": 1, "name": ["s1"]')
    seen = {info.name: info.state for info in registry.infos()}
    assert isinstance(seen["s1"], Unknown) and isinstance(seen["s0"], Running) and isinstance(seen["s2"], Running)
    assert bad.read_bytes().endswith(b'["s1"]'), "left as it is found"
    assert bad.stat().st_mode & 0o777 == 0o600
    registry.get("s1").stop(now=True)
