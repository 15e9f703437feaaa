"""What cannot be read in a registry of another program is set aside or told, and costs nothing else."""

from __future__ import annotations

import json
from typing import Any

import pytest

import old_registries
from old_registries import Old, keyed, listed, taken_over
from session_magics import Registry
from session_magics.errors import StoreError

old = old_registries.old

BROKEN = {
    "no-object": 7,
    "no-state": keyed(state=None),
    "odd-state": keyed(state="sleeping"),
    "no-time": keyed(started_at="yesterday"),
    "no-zone": keyed(started_at="2026-01-01T00:00:00"),
    "odd-code": keyed(exit_code="0"),
    "odd-labels": keyed(labels={"a": 1}),
    "nul": keyed(dir="a\0b"),
    "surrogate": keyed(dir="\ud834"),
    "odd-backend": keyed(backend="screen"),
}


def test_broken_rows_are_set_aside_and_the_rest_imported(real: Registry, old: Old) -> None:
    report = taken_over(real, old.sessions(good=keyed(exit_code=0), **BROKEN))
    assert [one.name for one in report.imported] == ["good"] == [info.name for info in real.infos()]
    assert {one.was for one in report.set_aside} == set(BROKEN)
    assert report.kept is not None and report.kept.parent == real.store.root / "set-aside"
    assert report.kept.stat().st_mode & 0o077 == 0
    kept = json.loads(report.kept.read_text())
    assert {row["name"]: row["row"] for row in kept["rows"]} == BROKEN
    assert {row["reason"] for row in kept["rows"]} == {one.reason for one in report.set_aside}
    assert str(report.kept) in str(report)


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        ({"createdAt": "soon"}, "createdAt is no time"),
        ({"status": "odd"}, "status 'odd' is none of"),
        ({"lastOutput": "aGk=%"}, "lastOutput is no base64"),
        ({"exitCode": True}, "exitCode is no whole number"),
        ({"args": "x"}, "args is no list"),
        ({"lastRows": 70000, "lastCols": 1}, "is no terminal size"),
    ],
)
def test_c12_broken_rows_of_a_list_are_set_aside(real: Registry, old: Old, change: dict[str, Any], reason: str) -> None:
    report = taken_over(real, old.holds([listed("s_1", **change), listed("s_2", exitCode=0)]))
    assert [one.name for one in report.imported] == ["s_2"]
    assert [one.was for one in report.set_aside] == ["s_1"] and reason in report.set_aside[0].reason


@pytest.mark.parametrize(
    ("content", "said"),
    [
        ("{", "is no JSON (line 1 column 2)"),
        ('{"version": 2, "sessions": {}}', "has version 2, and version 1 alone"),
        ('{"version": true, "sessions": {}}', "has version true"),
        ('{"version": 1, "sessions": []}', "is no registry"),
        ('{"some": "thing"}', "is no registry"),
        ("[1, 2]", "is no registry"),
        ("7", "is no registry"),
        ("[" * 100_000, "is no JSON"),
    ],
)
def test_c12_what_is_no_registry_is_told_in_one_line(real: Registry, old: Old, content: str, said: str) -> None:
    with pytest.raises(StoreError, match=r"^[^\n]+$") as caught:
        taken_over(real, old.holds(content))
    assert said in str(caught.value) and not real.infos()


@pytest.mark.parametrize(
    "content", ["", "[]", '{"version": 1, "sessions": null}', '{"updated_at": "", "sessions": {}}']
)
def test_c12_an_empty_registry_is_one_too(real: Registry, old: Old, content: str) -> None:
    assert str(taken_over(real, old.holds(content))) == "0 imported, 0 skipped, 0 set aside"
