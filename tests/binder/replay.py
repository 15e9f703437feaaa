#!/usr/bin/env python3
"""Do what Binder does with this repository, as an ordinary user of this machine, and what its visitor does then.

    python tests/binder/replay.py [--pictures DIRECTORY]

repo2docker tells the steps, and the versions of the environment that they begin with. That environment is a venv of
this machine's Python here, not conda's. Each step is timed, and what it adds is measured. Needs root, to make a user.
"""

from __future__ import annotations

import argparse
import re
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

from accounts import Account, account
from dockerfiles import PROJECT, Built, built, install_repo2docker
from pages import Desk, desk, failures

TOUR = "notebooks/01-tour.ipynb"
MB = 2**20


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n")[0])
    parser.add_argument("--pictures", type=Path, metavar="DIRECTORY", help="keep what the page shows")
    pictures = parser.parse_args().pictures
    with tempfile.TemporaryDirectory() as scratch, account() as user:
        plan = Path(scratch) / "repo2docker"
        install_repo2docker(plan)
        replay(user, built(plan), pictures)
    return 0


def replay(user: Account, plan: Built, pictures: Path | None) -> None:
    """All steps, printed as they are done."""
    place = user.home.parent / "env"
    place.mkdir()
    subprocess.run(["chown", f"{user.uid}:{user.gid}", place], check=True)
    here = user.run("python3 --version").strip()
    print(f"{here} in place of {plan.python}; base: {plan.base}")
    path = f"{place}/bin:/usr/local/bin:/usr/bin:/bin"
    pins = " ".join(f"{name}=={version}" for name, version in plan.base.items())
    step("base", place, lambda: user.run(f"python3 -m venv {place} && {place}/bin/pip install -q {pins}"))
    before = size(place)
    variables = {"KERNEL_PYTHON_PREFIX": str(place), "REPO_DIR": str(user.home), "PATH": path}
    for instruction in plan.steps:
        what = f"{instruction.word} {instruction.rest}"
        if instruction.word == "COPY" and (source := re.search(r" src/(\S*) ", what)):
            copy(user, source[1])
        elif instruction.word == "RUN":
            assert instruction.user == "${NB_USER}", f"a step of root: {what}"
            step(what, place, lambda line=instruction.rest: user.run(line, env=variables))
    print(f"added to the base: {(size(place) - before) / MB:.1f} MB; checkout: {size(user.home) / MB:.1f} MB")
    print("kernels:", user.run("jupyter kernelspec list", env={"PATH": path}).strip())
    visit(user, path, pictures)


def copy(user: Account, source: str) -> None:
    """Copy what is committed: only the file that is named, or all."""
    archive = subprocess.run(["git", "-C", PROJECT, "archive", "HEAD", *filter(None, [source])], check=True, stdout=-1)
    unpack = ["tar", "-x", "-C", user.home]
    subprocess.run(unpack, input=archive.stdout, check=True, user=user.uid, group=user.gid, extra_groups=[])


def visit(user: Account, path: str, pictures: Path | None) -> None:
    """Open and run the notebooks, the tour first, as the badge opens it."""
    with desk(user, "jupyter lab", path) as (lab, answered):
        print(f"{answered:6.1f} s  JupyterLab answers")
        for file in sorted((user.home / "notebooks").glob("*.ipynb")):
            name = str(file.relative_to(user.home))
            assert name == TOUR or name > TOUR
            opened, ran = lab.open(name), lab.run_all()
            wrong = failures(lab.cells())
            print(f"{opened:6.1f} s  {name} is open; {ran:.1f} s to run all; {user.memory() / MB:.0f} MB of memory")
            if pictures:
                show(lab, pictures / f"{file.stem}.png")
            assert not wrong, wrong


def show(lab: Desk, picture: Path) -> None:
    """Keep a picture of the page."""
    picture.parent.mkdir(parents=True, exist_ok=True)
    lab.page.screenshot(path=picture)


def step(what: str, place: Path, do: Callable[[], object]) -> None:
    """Do one step and print how long it took and how much larger the environment is."""
    before, began = size(place), time.monotonic()
    do()
    took = time.monotonic() - began
    print(f"{took:6.1f} s  {(size(place) - before) / MB:+7.1f} MB  {what[:100]}", flush=True)


def size(place: Path) -> int:
    """Bytes of the blocks below a directory."""
    said = subprocess.run(["du", "-s", "--block-size=1", place], check=True, capture_output=True, text=True)
    return int(said.stdout.split()[0])


if __name__ == "__main__":
    sys.exit(main())
