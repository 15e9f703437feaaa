#!/usr/bin/env python3
"""From a clone to a shell notebook, by the README's one command, on the clean account of an ordinary user.

    python tests/binder/fresh.py [--pictures DIRECTORY]

Prints the seconds of each step. Needs root, to make a user.
"""

from __future__ import annotations

import argparse
import re
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

from accounts import Account, account
from dockerfiles import PROJECT
from pages import Desk, desk, failures
from replay import MB, show, size

KERNEL = "session-bash"
CELL = 'who=world; echo "hello $who from ${0##*/}"'
WANTED = "hello world from bash"


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n")[0])
    parser.add_argument("--pictures", type=Path, metavar="DIRECTORY", help="keep what the page shows")
    pictures = parser.parse_args().pictures
    with account() as user:
        checkout = clone(user)
        install, _, start = the_command().rpartition(" && ")
        timed(install, lambda: user.run(install, cwd=checkout))
        print(f"{size(checkout / '.venv') / MB:.0f} MB in .venv")
        with desk(user, f"cd {checkout.name} && exec {start}", "/usr/local/bin:/usr/bin:/bin") as (lab, answered):
            print(f"{answered:6.1f} s  {start}")
            timed("open the tour", lambda: lab.open("01-tour.ipynb"))
            timed("a notebook of the shell kernel, its kernel ready", lambda: lab.create(KERNEL))
            timed("its first cell", lambda: first_cell(lab))
            if pictures:
                show(lab, pictures / "fresh.png")
    return 0


def the_command() -> str:
    """The README's command for working in a checkout."""
    commands = re.findall(r"^```sh\n(.*jupyter lab .*)\n```$", (PROJECT / "README.md").read_text(), re.M)
    assert len(commands) == 1, commands
    return str(commands[0])


def clone(user: Account) -> Path:
    """What is committed, cloned by the user."""
    bundle = user.home.parent / "repository.bundle"
    subprocess.run(["git", "-C", PROJECT, "bundle", "create", "-q", bundle, "HEAD"], check=True)
    timed("git clone", lambda: user.run(f"git clone -q {bundle} session-magics"))
    return user.home / "session-magics"


def first_cell(lab: Desk) -> None:
    """Run a shell cell, and see what it printed."""
    lab.type_cell(CELL)
    lab.run_all()
    cells = lab.cells()
    assert not failures(cells) and WANTED in str(cells[0]["outputs"]), cells


def timed(what: str, do: Callable[[], object]) -> None:
    """Do one step and print how long it took."""
    began = time.monotonic()
    do()
    print(f"{time.monotonic() - began:6.1f} s  {what}", flush=True)


if __name__ == "__main__":
    sys.exit(main())
