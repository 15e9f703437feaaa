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

import leaks
from session_magics.cluster import CLUSTER_VARIABLE, Cluster

ENGINES = 4
ENDS = 30.0  # seconds for a cluster to end
# Seconds for the rest. An engine's nanny tries for three to tell a controller that has gone, and may stay for good: it
# is IPython Parallel's, so it is killed here and is nobody's leak.
NANNIES = 5.0
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
        keeper.stdin.close()
        keeper.wait(ENDS)
        keeper.stdout.close()
        left = leaks.outlived(leaks.processes_of(root), NANNIES)
        found = [line for line in map(leaks.describe, left) if not line.endswith("ipyparallel.engine.nanny")]
        for process in left:
            leaks.kill(process)
        for name, value in before.items():
            os.environ.pop(name) if value is None else os.environ.update({name: value})
        shutil.rmtree(home, ignore_errors=True)
    assert not found, "\n".join(found)
