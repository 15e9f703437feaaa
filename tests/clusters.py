"""A real IPython Parallel cluster on this machine, for one module of tests."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import psutil

import leaks
from session_magics.cluster import CLUSTER_VARIABLE, Cluster

ENGINES = 4
# A process of its own starts it, and ends it when its input is closed: also when the tests are killed.
KEEPER = f"""
import sys, ipyparallel
cluster = ipyparallel.Cluster(n={ENGINES}, cluster_id="", profile="default", log_level=40)
client = cluster.start_and_connect_sync(activate=False)
print("ready", flush=True)
sys.stdin.read()
client.close()
cluster.stop_cluster_sync()
"""


@dataclass(frozen=True)
class LocalCluster:
    """Engines 0 to 3, and the directories that they and the tests have in common."""

    root: Path
    """The registry's."""
    ipython: Path

    def run(self, engine: int, code: str) -> None:
        """Run Python on an engine; returns when it is over."""
        with Cluster() as cluster:
            cluster.ask(engine, exec, code, takes=20)

    def pid(self, engine: int) -> int:
        """The process of an engine."""
        with Cluster() as cluster:
            return int(cluster.ask(engine, os.getpid))

    def client(self) -> Any:
        """A client as anybody has it; to be closed."""
        import ipyparallel

        (file,) = self.ipython.glob("profile_default/security/ipcontroller-client.json")
        return ipyparallel.Client(str(file))


def end(keeper: subprocess.Popen[bytes], root: Path) -> list[str]:
    """End the cluster by force, as its own stop takes seconds; what is left that is not IPython Parallel's."""
    keeper.kill()
    keeper.communicate()
    ours = [one for one in leaks.processes_of(root) if not is_theirs(one)]
    for process in filter(is_theirs, leaks.processes_of(root)):
        leaks.kill(process)
    found = list(map(leaks.describe, leaks.outlived(ours)))
    for process in leaks.processes_of(root):
        leaks.kill(process)
    return found


def is_theirs(process: psutil.Process) -> bool:
    return "ipyparallel" in leaks.describe(process)


@contextmanager
def local_cluster() -> Iterator[LocalCluster]:
    """The cluster, with this process's environment changed so that it is the default one. It leaves no process."""
    home = Path(tempfile.mkdtemp(prefix="sm"))
    root, ipython = home / "r", home / "i"
    # A home of its own too: what a person's start-up files of shells take is not to be waited for.
    changed = {
        "HOME": str(home),
        "SESSION_MAGICS_HOME": str(root),
        "IPYTHONDIR": str(ipython),
        CLUSTER_VARIABLE: "",
    }
    before = {name: os.environ.get(name) for name in changed}
    os.environ.update(changed)
    keeper = subprocess.Popen(
        (sys.executable, "-c", KEEPER), stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL
    )
    assert keeper.stdin is not None and keeper.stdout is not None
    try:
        assert b"ready\n" in iter(keeper.stdout.readline, b""), "the cluster did not come up"
        yield LocalCluster(root, ipython)
    finally:
        found = end(keeper, root)
        for name, value in before.items():
            os.environ.pop(name) if value is None else os.environ.update({name: value})
        shutil.rmtree(home, ignore_errors=True)
    assert not found, "\n".join(found)
