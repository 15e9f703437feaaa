"""Completion of cells whose shell is in another place: what that place has, and nothing of this machine."""

from __future__ import annotations

import time

import dockers
import sshds
from conftest import LiveKernel
from dockers import Dockerd

sshd, dockerd, docker_host = sshds.sshd, dockers.dockerd, dockers.docker_host
# Seconds until an answer from there, on a machine that may be busy.
REPLY = 30.0
FILES = "cd $(mktemp -d) && echo >only_there && corpus_v=1"


def matches(kernel: LiveKernel, cell: str) -> list[str]:
    """The completions at the end of a cell, without what stands there already."""
    client = kernel.cells.client
    request = client.complete(cell, len(cell))
    deadline = time.monotonic() + REPLY
    while (reply := client.get_shell_msg(timeout=deadline - time.monotonic()))["parent_header"]["msg_id"] != request:
        pass
    content = reply["content"]
    return [one for one in content["matches"] if one != cell[content["cursor_start"] : content["cursor_end"]]]


def test_a_cell_is_completed_where_it_runs(kernel: LiveKernel, sshd: sshds.Sshd, docker_host: Dockerd) -> None:
    kernel.run(f"import os; os.environ['DOCKER_HOST'] = {docker_host.host!r}")
    patient = "m = get_ipython().magics_manager.registry['SessionMagics']; m.complete('%session ', 9)\n"
    kernel.run(f"{patient}m._completer._shells._limit = {REPLY}")
    places = {"over": f"ssh:far,config={sshd.config}", "within": f"docker:{docker_host.image('busybox')},network=none"}
    try:
        for name, place in places.items():
            assert matches(kernel, f"%%sh_session {name} --on {place}\nls /et") == []
            assert kernel.run(f"%%sh_session {name} --on {place}\n{FILES}").status == "ok"
            assert matches(kernel, f"%%sh_session {name}\ncat only") == ["only_there"]
            assert matches(kernel, f"%%sh_session {name}\necho $corpus_") == ["corpus_v"]
            kernel.run(f'%%sh_session {name}\nrm -r "$PWD"')
            kernel.run(f"%session stop {name}")
            assert matches(kernel, f"%%sh_session {name}\nls /et") == []
        assert matches(kernel, "%%sh_session over --on local\nls /et") == ["etc/"]
    finally:
        kernel.run("%session stop over within")
