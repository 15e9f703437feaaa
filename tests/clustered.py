"""What the tests of engines start with: a cluster for a module, and the command line."""

from __future__ import annotations

import gc
import json
import threading
from collections.abc import Iterator
from contextlib import contextmanager

import pytest

import leaks
from clusters import LocalCluster, local_cluster
from held import carried_out as run
from rounds import until
from session_magics import Registry

SOON = 30.0
"""Seconds within which anything is done that needs nobody's time limit: 0.3 on a machine that does nothing else."""


@pytest.fixture(scope="module")
def shared(client_loop: None) -> Iterator[LocalCluster]:
    with local_cluster() as cluster:
        cluster.pid(0)  # the context of the sockets stays for good
        yield cluster


@pytest.fixture
def cluster(shared: LocalCluster) -> Iterator[LocalCluster]:
    """The cluster for one test, which leaves no session, thread or descriptor behind."""
    threads, files = set(threading.enumerate()), leaks.descriptors()
    registry = Registry()
    try:
        yield shared
    finally:
        registry.stop_all(now=True)
        for info in registry.infos():
            if "@" not in info.name:
                registry.remove(info.name)
    until(lambda: set(threading.enumerate()) <= threads, what=threading.enumerate)
    gc.collect()  # an error that the test has kept holds what it passed through
    until(lambda: leaks.descriptors() <= files, what=lambda: leaks.descriptors() - files)


def names() -> list[str]:
    """What list --engines lists."""
    status, out, _ = run("list", "--engines", "--json")
    assert status == 0
    return sorted(row["name"] for row in json.loads(out)["value"])


@contextmanager
def busy(cluster: LocalCluster, engine: int) -> Iterator[None]:
    """An engine that is in the middle of something."""
    over = cluster.ipython / "over"
    client = cluster.client()
    try:
        code = f"import os, time\nwhile not os.path.exists({str(over)!r}): time.sleep(0.02)"
        work = client[engine].apply_async(exec, code)
        try:
            yield
        finally:
            over.touch()
            work.get(SOON)
    finally:
        client.close()
        over.unlink()
