"""How places are written, and what is told about those that are written wrong."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from session_magics.errors import UsageMistake
from session_magics.model import NAME_PATTERN
from session_magics.sandbox.places import OWN_NAMES, Place, read_place, session_name


@pytest.mark.parametrize(
    ("text", "place"),
    [
        ("local", Place("local", "")),
        ("docker:busybox", Place("docker", "busybox")),
        (
            "docker:host:5000/a/b:1.2,network=none,memory=512m",
            Place("docker", "host:5000/a/b:1.2", (("network", "none"), ("memory", "512m"))),
        ),
        ("docker:a,mount=/x:/y:ro,mount=/z:/z", Place("docker", "a", (("mount", "/x:/y:ro"), ("mount", "/z:/z")))),
        ("container:web-1", Place("container", "web-1")),
        ("ssh:me@far.example", Place("ssh", "me@far.example")),
        ("ssh:far,config=/etc/ssh/mine", Place("ssh", "far", (("config", "/etc/ssh/mine"),))),
    ],
)
def test_a_place_is_read_and_written(text: str, place: Place, tmp_path: Path) -> None:
    assert read_place(text, tmp_path) == place
    assert str(place) == text and read_place(str(place), tmp_path) == place


def test_paths_mean_the_same_from_any_directory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    assert str(read_place("docker:a,mount=.:/work", tmp_path)) == f"docker:a,mount={tmp_path}:/work"


def test_names_of_ones_own(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "sandboxes.json").write_text(json.dumps({"box": "docker:a,network=none"}))
    assert str(read_place("box", tmp_path)) == "docker:a,network=none"
    other = tmp_path / "other.json"
    other.write_text('{"far": "ssh:host"}')
    monkeypatch.setenv(OWN_NAMES, str(other))
    assert read_place("far", tmp_path) == Place("ssh", "host")
    with pytest.raises(UsageMistake, match=r"'box' is no place: .* \(far there\)"):
        read_place("box", tmp_path)
    other.write_text("{")
    with pytest.raises(UsageMistake, match="cannot be read"):
        read_place("far", tmp_path)


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("", "is no place"),
        ("docker:", "is no place: local, docker:IMAGE"),
        ("moon:a", "is no place"),
        ("local:a", "is no place"),
        ("docker:a,net=none", "'net=none' in 'docker:a,net=none' is no setting of docker: mount=…"),
        ("ssh:a,", "is no setting of ssh"),
        ("docker:a,mount=b", "mount=HERE:/THERE"),
        ("docker:a,mount=b:c", "mount=HERE:/THERE"),
        ("docker:a,cpus=many", "cpus=N"),
        ("docker:a,cpus=inf", "cpus=N"),
        ("docker:a,memory=lots", "memory=BYTES"),
        ("container:a,memory=1g", "no setting of container: user=…"),
    ],
)
def test_what_is_wrong_is_told(text: str, told: str, tmp_path: Path) -> None:
    with pytest.raises(UsageMistake, match=told):
        read_place(text, tmp_path)


@pytest.mark.parametrize(
    ("text", "name"),
    [
        ("docker:busybox", "busybox"),
        ("docker:host:5000/a/python:3.12,network=none", "python-3.12"),
        ("ssh:me@far.example", "far.example"),
        ("container:/odd name/", "odd-name"),
        ("box", "box"),
        ("docker:---", "main"),
        ("docker:" + "x" * 200, "x" * 64),
    ],
)
def test_a_session_is_named_after_its_place(text: str, name: str) -> None:
    assert session_name(text) == name and NAME_PATTERN.fullmatch(name)
