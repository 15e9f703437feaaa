"""What Binder is told: few steps, pinned, cached as far as possible, and a page that is there."""

from __future__ import annotations

import importlib.util
import os
import re
import shutil
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest
from packaging.requirements import Requirement
from packaging.specifiers import SpecifierSet

from dockerfiles import built, install_repo2docker
from rounds import rounds

PROJECT = Path(__file__).parent.parent
BINDER = PROJECT / "binder"
REQUIRED = tomllib.loads((PROJECT / "pyproject.toml").read_text())
# Seconds for the replay: an environment is made, and all notebooks run.
REPLAY_LIMIT = 900

full_only = pytest.mark.skipif(rounds(0, 1) == 0, reason="installs repo2docker: --full")


def requirements() -> dict[str, Requirement]:
    lines = (BINDER / "requirements.txt").read_text().splitlines()
    found = [Requirement(line) for line in lines if line and not line.startswith("#")]
    assert len({one.name for one in found}) == len(found)
    return {one.name: one for one in found}


def pin(requirement: Requirement) -> str | None:
    [specifier] = requirement.specifier
    return specifier.version if specifier.operator == "==" else None


def test_nothing_is_asked_of_binder_that_takes_long_or_root() -> None:
    assert {file.name for file in BINDER.iterdir()} == {"requirements.txt", "runtime.txt", "postBuild"}


def test_a_change_of_code_leaves_the_requirements_as_they_were() -> None:
    """Lines that name the checkout would have repo2docker install everything anew for each commit."""
    for line in (BINDER / "requirements.txt").read_text().splitlines():
        assert not re.search(r"^\s*-|file:|^\s*\.|/", line.partition("#")[0]), line
    assert "--no-deps" in (BINDER / "postBuild").read_text()


@pytest.mark.parametrize(
    "wanted", [*REQUIRED["project"]["dependencies"], *REQUIRED["build-system"]["requires"]], ids=lambda text: text
)
def test_what_the_package_asks_for_is_there(wanted: str) -> None:
    asked = Requirement(wanted)
    given = requirements()[asked.name]
    pinned = pin(given)
    assert asked.specifier.contains(pinned) if pinned else given.specifier == asked.specifier, (str(given), wanted)


def test_nothing_more_is_there() -> None:
    asked = [*REQUIRED["project"]["dependencies"], *REQUIRED["build-system"]["requires"]]
    assert set(requirements()) == {Requirement(one).name for one in asked}


def test_the_version_of_python_is_one_that_the_package_takes() -> None:
    version = (BINDER / "runtime.txt").read_text().strip().removeprefix("python-")
    assert SpecifierSet(REQUIRED["project"]["requires-python"]).contains(version)


def test_the_script_can_be_run_and_stops_at_the_first_failure() -> None:
    script = BINDER / "postBuild"
    assert os.access(script, os.X_OK)
    text = script.read_text()
    assert text.startswith("#!/usr/bin/env bash\n") and "\nset -euo pipefail\n" in text
    assert "sudo" not in text and "apt" not in text
    subprocess.run(["bash", "-n", script], check=True)


def test_the_badge_opens_the_tour() -> None:
    readme = (PROJECT / "README.md").read_text()
    opened = set(re.findall(r"urlpath=lab/tree/([\w./-]+)", readme))
    assert opened == {"notebooks/01-tour.ipynb"}
    assert all((PROJECT / path).exists() for path in opened)


@full_only
@pytest.mark.slow
@pytest.mark.timeout(300)
def test_repo2docker_does_these_steps_and_no_others(tmp_path: Path) -> None:
    install_repo2docker(tmp_path)
    plan = built(tmp_path, PROJECT)
    assert plan.python == (BINDER / "runtime.txt").read_text().strip().removeprefix("python-")
    steps = [
        (one.word, one.rest) for one in plan.steps if one.word in ("COPY", "RUN") and " /usr/local/" not in one.rest
    ]
    assert steps == [
        ("COPY", "--chown=1000:1000 src/binder/requirements.txt ${REPO_DIR}/binder/requirements.txt"),
        ("RUN", '${KERNEL_PYTHON_PREFIX}/bin/pip install --no-cache-dir -r "binder/requirements.txt"'),
        ("COPY", "--chown=1000:1000 src/ ${REPO_DIR}/"),
        ("RUN", "chmod +x binder/postBuild"),
        ("RUN", "./binder/postBuild"),
    ]
    assert {one.user for one in plan.steps if one.word == "RUN"} == {"${NB_USER}"}
    brought = {name: version for name, version in plan.base.items() if name in requirements()}
    for name, version in brought.items():
        pinned = pin(requirements()[name])
        assert pinned or requirements()[name].specifier.contains(version), f"{name} {version} of the base is too old"


@full_only
@pytest.mark.slow
@pytest.mark.timeout(REPLAY_LIMIT)
@pytest.mark.skipif(os.geteuid() != 0 or not shutil.which("useradd"), reason="making a user needs root and useradd")
@pytest.mark.skipif(importlib.util.find_spec("playwright") is None, reason="the group browser is not installed")
def test_an_ordinary_user_gets_the_notebooks_that_run() -> None:
    """With -s its figures are shown."""
    subprocess.run([sys.executable, PROJECT / "tests/binder/replay.py"], check=True)
