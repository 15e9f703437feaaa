"""What ``spec.json`` keeps, and which ones of other versions are read."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pytest

from session_magics.errors import StoreError
from session_magics.model import RestartLimit, Spec
from session_magics.store import Store


@pytest.fixture
def store(tmp_path: Path) -> Store:
    return Store(tmp_path / "registry")


def test_a_spec_is_kept_with_bytes_that_are_no_text_and_read_with_keys_of_tomorrow(store: Store) -> None:
    odd = b"caf\xe9".decode("utf-8", "surrogateescape")
    spec = Spec(
        store.new_id(), "x", (odd, "ü"), odd, ("A",), {"k": "v"}, (50, 100), "kernel", "always", "bash", "tok", 12.5
    )
    directory = store.create(spec)
    assert store.spec(spec.id) == spec
    path = directory / "spec.json"
    path.write_text(json.dumps(json.loads(path.read_text()) | {"tomorrow": [1]}))
    assert store.spec(spec.id) == spec
    path.write_text(json.dumps(json.loads(path.read_text()) | {"schema": 2}))
    with pytest.raises(StoreError, match="newer session-magics"):
        store.spec(spec.id)
    path.unlink()
    with pytest.raises(StoreError, match="is missing"):
        store.spec(spec.id)


def test_a_spec_from_before_restarts_had_a_limit_is_read(store: Store) -> None:
    spec = Spec(store.new_id(), "x", ("true",), "/", restart="always")
    path = store.create(spec) / "spec.json"
    old = json.loads(path.read_text())
    assert old.pop("max_restarts") is None
    path.write_text(json.dumps(old))
    assert store.spec(spec.id) == spec


@pytest.mark.parametrize("limit", [RestartLimit(5, 60.0), RestartLimit(3)])
def test_a_limit_of_restarts_is_kept(store: Store, limit: RestartLimit) -> None:
    spec = Spec(store.new_id(), "x", ("true",), "/", restart="always")
    store.create(spec)
    store.write_spec(replace(spec, max_restarts=limit))
    assert store.spec(spec.id).max_restarts == limit == store.info(spec.id, "x").max_restarts


@pytest.mark.parametrize("damaged", [5, {"count": 0}, {"count": "5"}, {"window": 5}, {"count": 1, "window": 0}])
def test_a_damaged_limit_is_a_damaged_record(store: Store, damaged: object) -> None:
    spec = Spec(store.new_id(), "x", ("true",), "/", restart="always")
    path = store.create(spec) / "spec.json"
    path.write_text(json.dumps(json.loads(path.read_text()) | {"max_restarts": damaged}))
    with pytest.raises(StoreError, match="is damaged"):
        store.spec(spec.id)
