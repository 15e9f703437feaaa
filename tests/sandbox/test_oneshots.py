"""``%%sh_session --exec``: where cells begin, what they carry, what is refused, and that nothing is left."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from conftest import LiveKernel


def states(kernel: LiveKernel) -> list[Path]:
    """The directories in which the kernel's cells keep their state."""
    return list(Path("/tmp").glob(f"session-magics-{kernel.pid}-*"))


@pytest.mark.kernel
def test_cells_begin_where_the_kernel_is_and_leave_nothing_when_it_ends(kernel: LiveKernel, tmp_path: Path) -> None:
    (tmp_path / "below").mkdir()
    kernel.run(f"import os; os.chdir({str(tmp_path)!r})")
    assert kernel.run("%%sh_session --exec\npwd; cd below; export A=1").text == f"{tmp_path}\n"
    assert kernel.run("%%sh_session --exec\npwd; echo $A").text == f"{tmp_path}/below\n1\n"
    assert kernel.run("%%sh_session other --exec --cwd below\npwd").text == f"{tmp_path}/below\n"
    made = states(kernel)
    assert [oct(path.stat().st_mode & 0o777) for path in made] == ["0o700", "0o700"]
    assert kernel.stop("shutdown") == []
    assert [path for path in made if os.path.lexists(path)] == []


@pytest.mark.kernel
def test_what_cannot_be_carried_is_one_line(kernel: LiveKernel) -> None:
    for words, told in (
        ("--shell fish", "--exec carries nothing over in fish: give --shell bash, dash or sh"),
        ("--bg", "needs a shell that lives on: leave out --exec"),
        ("--on docker:a,cpus=many", "cpus=N"),
        ("--on ssh:-x", "'-x' is no host"),
    ):
        assert told in kernel.run(f"%%sh_session once --exec {words}\npwd").text
    assert kernel.run("%%sh_session once --exec --on local\npwd").status == "ok"
