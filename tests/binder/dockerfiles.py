"""What repo2docker makes of this repository: the Dockerfile that it prints, and the versions of its base."""

from __future__ import annotations

import re
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

PROJECT = Path(__file__).parent.parent.parent
BASE = (
    *("jupyterlab", "notebook", "jupyter_server", "ipykernel", "ipython", "ipywidgets", "jupyter_client", "traitlets"),
    *("jupyterlab_server", "psutil", "platformdirs", "wcwidth", "jupyter-resource-usage", "jupyter-offlinenotebook"),
)
"""What the base has that a notebook server and this package are made of; its other packages follow from these."""


@dataclass(frozen=True)
class Instruction:
    """One instruction of the part that depends on the repository."""

    word: str
    """RUN, COPY, …"""
    rest: str
    user: str
    """Who does it."""


@dataclass(frozen=True)
class Built:
    """What repo2docker would build."""

    python: str
    base: dict[str, str]
    """Versions, by package."""
    steps: tuple[Instruction, ...]


def install_repo2docker(place: Path) -> None:
    """Make an environment with repo2docker that is thrown away later."""
    subprocess.run([sys.executable, "-m", "venv", place], check=True)
    subprocess.run([place / "bin/pip", "install", "--quiet", "jupyter-repo2docker"], check=True)


def built(repo2docker: Path, project: Path = PROJECT) -> Built:
    """Ask repo2docker, without Docker, for what it would build for Binder's user."""
    said = subprocess.run(
        [
            repo2docker / "bin/jupyter-repo2docker",
            "--no-build",
            "--debug",
            "--user-id=1000",
            "--user-name=jovyan",
            project,
        ],
        check=True,
        capture_output=True,
        text=True,
    )
    text = said.stdout + said.stderr
    found = re.search(r"environment for python=([\d.]+)", text)
    assert found, text
    return Built(found[1], _base(repo2docker, found[1]), tuple(_steps(text)))


def _base(repo2docker: Path, python: str) -> dict[str, str]:
    [lock] = repo2docker.glob(
        f"lib/python*/site-packages/repo2docker/buildpacks/conda/environment.py-{python}-linux-64.lock"
    )
    pattern = r"/(" + "|".join(BASE) + r")-(\d[^-/]*)-[^/]*\.conda"
    return dict(re.findall(pattern, lock.read_text()))


def _steps(text: str) -> list[Instruction]:
    """The instructions from the first that takes something of the repository on."""
    whole = re.sub(r"\\\n", " ", text)
    user, steps = "", list[Instruction]()
    for word, rest in re.findall(r"^([A-Z]{3,}) +(.+)$", whole, re.M):
        if word == "USER":
            user = rest
        elif steps or (word == "COPY" and " src/" in rest):
            steps.append(Instruction(word, rest, user))
    return steps
