"""The audit log of approvals: what is written, what is read again, and the same decisions made from it."""

from __future__ import annotations

import contextlib
import json
import os
import stat
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from approvals import GRANT, SIGHTS, TABLE, course
from session_magics.agents import audit
from session_magics.agents.approval import Grant, Memory, Sight, Wait, decide_again, encoded
from session_magics.agents.audit import Trail, decode, encode, read, replay
from session_magics.errors import StoreError


def line(sight: Sight, memory: Memory, decision: object) -> dict[str, object]:
    return {
        "kind": "decision", "decision": encoded(decision), "grant": encode(GRANT), "memory": encode(memory),
        "sight": encode(sight),
    }  # fmt: skip


@pytest.mark.parametrize("case", TABLE)
def test_values_come_back_as_they_were(case: str) -> None:
    sight, memory, _, _ = TABLE[case]
    for kind, value in ((Sight, sight), (Memory, memory), (Grant, GRANT)):
        assert decode(kind, json.loads(json.dumps(encode(value)))) == value


@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.lists(SIGHTS, max_size=40))
def test_a_replay_gives_the_same_decisions(tmp_path: Path, steps: list[Sight]) -> None:
    done = [one for one in course(steps) if not isinstance(one[1], Wait)]
    path = tmp_path / audit.FILE
    path.unlink(missing_ok=True)
    with contextlib.closing(Trail(tmp_path)) as trail:
        for sight, decision, memory in done:
            entry = line(sight, memory, decision)
            trail.append({**entry, "grant": encode(GRANT) | {"most": 25}})
            trail.append({"kind": "outcome", "sent": True})
    again = replay(path, decide_again) if done else []
    assert len(again) == len(done)
    assert all(recorded == now for recorded, now in again)


def test_a_replay_tells_what_would_be_decided_otherwise(tmp_path: Path) -> None:
    sight, memory, _, _ = TABLE["denied"]
    with contextlib.closing(Trail(tmp_path)) as trail:
        trail.append(line(sight, memory, Wait("as the rules were then")))
    [(recorded, now)] = replay(tmp_path / audit.FILE, decide_again)
    assert (recorded["kind"], now["kind"]) == ("wait", "refuse")


def test_only_the_owner_may_read_it(tmp_path: Path) -> None:
    with contextlib.closing(Trail(tmp_path)) as trail:
        trail.append({"kind": "on"})
    assert stat.S_IMODE(os.stat(tmp_path / audit.FILE).st_mode) == 0o600


def test_a_torn_line_is_left_out_and_the_next_one_is_whole(tmp_path: Path) -> None:
    path = tmp_path / audit.FILE
    path.write_bytes(b'{"kind": "on"}\n{"kind": "deci')
    assert read(path).lines == ({"kind": "on"},)
    assert read(path).notes == ("approvals.jsonl: line 2 cannot be read (14 bytes)",)
    with contextlib.closing(Trail(tmp_path)) as trail:
        trail.append({"kind": "off"})
    assert [one["kind"] for one in read(path).lines] == ["on", "off"]


def test_one_older_file_is_kept(tmp_path: Path) -> None:
    with contextlib.closing(Trail(tmp_path, limit=1000)) as trail:
        for number in range(100):
            trail.append({"number": number, "filler": "x" * 80})
    newest, older = tmp_path / audit.FILE, tmp_path / (audit.FILE + audit.OLDER)
    kept = [one["number"] for one in (*read(older).lines, *read(newest).lines)]
    assert kept == list(range(kept[0], 100))
    assert max(newest.stat().st_size, older.stat().st_size) <= 1000
    assert sorted(os.listdir(tmp_path)) == [newest.name, older.name]


def test_the_newest_decisions_are_found_in_both_files(tmp_path: Path) -> None:
    assert audit.newest(tmp_path, 3) == []
    with contextlib.closing(Trail(tmp_path, limit=200)) as trail:
        for number in range(10):
            trail.append({"kind": "decision", "number": number, "filler": "x" * 100})
            trail.append({"kind": "outcome"})
    assert [one["number"] for one in audit.newest(tmp_path, 2)] == [8, 9]


def test_a_link_in_its_place_is_refused(tmp_path: Path) -> None:
    (tmp_path / audit.FILE).symlink_to(tmp_path / "elsewhere")
    with contextlib.closing(Trail(tmp_path)) as trail, pytest.raises(StoreError):
        trail.append({"kind": "on"})
    assert not (tmp_path / "elsewhere").exists()


def test_odd_text_is_no_obstacle(tmp_path: Path) -> None:
    with contextlib.closing(Trail(tmp_path)) as trail:
        trail.append({"screen": "\udc80 \x00 \u2028 …\n"})
    assert len(read(tmp_path / audit.FILE).lines) == 1
