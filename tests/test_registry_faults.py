"""Many starters at once, killed starters, damaged records, unusable roots: one session suffers at most."""

from __future__ import annotations

import json
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from others import in_another_process, said
from rounds import DEADLINE, alive
from session_magics import (
    Command,
    Exited,
    Lost,
    Registry,
    Running,
    StoreError,
    Unknown,
)
from session_magics.holder.processes import start_tick

SLEEP = Command(("sleep", "60"))
# A list of ended sessions takes less than so many times as long as to read what they are; it reads four files of each.
AS_QUICK = 20
PROJECT = str(Path(__file__).parent.parent)


# ---------------------------------------------------------------- many at once


def test_stop_all_stops_all_at_the_same_time(real: Registry, tmp_path: Path) -> None:
    """Each ends once all are asked to: one after another they would be killed when their grace is over."""
    asked = f"touch {tmp_path}/$0; until [ $(ls {tmp_path} | wc -l) = 6 ]; do sleep 0.05; done; exit 7"
    script = f"trap '{asked}' TERM; trap '' HUP; echo ready; while :; do sleep 0.1; done"
    for number in range(6):
        real.start(f"s{number}", Command(("sh", "-c", script, str(number))))
        real.get(f"s{number}").wait_for("ready", DEADLINE)
    assert len(real.stop_all(grace=DEADLINE)) == 6
    assert [info.state.code for info in real.infos() if isinstance(info.state, Exited)] == [7] * 6


def test_a_list_of_two_hundred_is_quick(fake: Registry) -> None:
    with ThreadPoolExecutor(16) as starters:  # each start waits for the disk
        list(starters.map(lambda number: fake.start(f"done-{number}", Command(("true",))), range(200)))
    for number in range(5):
        fake.start(f"up-{number}", Command(("forever",)))
    for number in range(200):
        fake.get(f"done-{number}").wait(DEADLINE)
    specs = list(fake.store.root.glob("sessions/*/spec.json"))
    times, readings = [], []
    for _ in range(20):
        began = time.perf_counter()
        infos = fake.infos()
        times.append(time.perf_counter() - began)
        began = time.perf_counter()
        for spec in specs:
            json.loads(spec.read_bytes())
        readings.append(time.perf_counter() - began)
    assert len(infos) == 205 and sum(info.running for info in infos) == 5
    assert min(times) < AS_QUICK * min(readings), f"{min(times) * 1000:.0f} ms"


def test_processes_that_want_one_detached_shell_all_get_it(real: Registry) -> None:
    code = "print('go', flush=True); input()\nprint(r.shell('main', lifetime='detached', rc=False).id)"
    processes = [in_another_process(real.store.root, code) for _ in range(6)]
    for process in processes:
        assert process.stdout is not None and process.stdout.readline() == "go\n"
    for process in processes:
        assert process.stdin is not None
        process.stdin.write("\n")
        process.stdin.flush()
    ids = {said(process) for process in processes}
    assert ids == {real.get("main").id}


def test_threads_may_share_a_registry(fake: Registry) -> None:
    errors: list[BaseException] = []

    def work(number: int) -> None:
        try:
            for _ in range(5):
                fake.start(f"t{number}", Command(("forever",)))
                fake.infos()
                fake.remove(f"t{number}", force=True)
        except BaseException as error:
            errors.append(error)

    threads = [threading.Thread(target=work, args=(number,)) for number in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert errors == [] and fake.infos() == []


# --------------------------------------------------------------------- damage


def one_line(error: BaseException) -> bool:
    return "\n" not in str(error) and 0 < len(str(error)) < 300


def test_damage_to_one_session_is_shown_and_hides_no_other(fake: Registry) -> None:
    for name in ("spec", "run", "name", "exit", "good"):
        fake.start(name, Command(("forever",)))
    fake.get("exit").stop()
    folders = {info.name: info.directory for info in fake.infos()}
    (folders["spec"] / "spec.json").write_bytes((folders["spec"] / "spec.json").read_bytes()[:20])
    run = bytearray((folders["run"] / "run.json").read_bytes())
    run[0] ^= 1
    (folders["run"] / "run.json").write_bytes(bytes(run))
    (fake.store.root / "names" / "name").write_bytes(b"")
    record = bytearray((folders["exit"] / "exit").read_bytes())
    record[3] ^= 1
    (folders["exit"] / "exit").write_bytes(bytes(record))
    before = sorted(path for path in fake.store.root.rglob("*"))
    states = {info.name: info.state for info in fake.infos()}
    assert isinstance(states["spec"], Unknown) and "spec.json is damaged" in states["spec"].reason
    assert states["run"] == Unknown("run record damaged")
    assert isinstance(states["name"], Running), "its spec knows the name too"
    assert states["exit"] == Lost("exit record damaged")
    assert isinstance(states["good"], Running)
    assert sorted(path for path in fake.store.root.rglob("*")) == before, "nothing is deleted"
    fake.get("spec").stop()
    with pytest.raises(StoreError) as caught:
        fake.restart("spec")
    assert one_line(caught.value)


def test_a_session_with_a_damaged_run_record_can_be_stopped(real: Registry) -> None:
    session = real.start("one", SLEEP)
    pid = session.info().pid
    assert pid is not None
    tick = start_tick(pid)
    (session.directory / "run.json").write_bytes(b"{")
    assert real.backend.force(session.directory, session.id) == (), "no survivors"
    state = session.stop(now=True)
    assert isinstance(state, Exited | Lost), state
    assert not alive(pid, tick)


def test_a_name_whose_file_leads_nowhere_can_be_removed(fake: Registry) -> None:
    session = fake.start("one", Command(("true",)))
    session.wait(DEADLINE)
    fake.store.discard(session.id)
    (fake.store.root / "names" / "one").write_bytes(b"\xff\xfe")
    assert [type(info.state) for info in fake.infos()] == [Unknown]
    with pytest.raises(StoreError) as caught:
        fake.get("one")
    assert one_line(caught.value)
    fake.remove("one")
    assert fake.infos() == []


def test_an_uncommonly_long_root_works(tmp_path: Path) -> None:
    registry = Registry(tmp_path / ("d" * 100) / ("e" * 100))
    session = registry.start("one", SLEEP)
    assert isinstance(session.state(), Running)
    assert isinstance(session.stop(now=True), Exited)
