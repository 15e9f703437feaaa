"""Bytes on their way to the control script come out as they were."""

from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from session_magics.holder.farscript import CONTROL, TAG, escaped

READER = r"""while read -r verb number one two; do printf '%b' "$two"; done"""
SHELLS = [words for words in (["bash"], ["dash"], ["busybox", "sh"]) if shutil.which(words[0])]


@pytest.mark.parametrize("words", SHELLS, ids="-".join)
@settings(max_examples=25, deadline=None, suppress_health_check=list(HealthCheck))
@given(pieces=st.lists(st.one_of(st.binary(), st.text(" \t\\a0'\n").map(str.encode)), max_size=20))
def test_a_line_carries_all_bytes(words: list[str], pieces: list[bytes]) -> None:
    lines = b"".join(b"D 0 - %s\n" % escaped(one) for one in pieces)
    called = subprocess.run([*words, "-c", READER], input=lines, capture_output=True, check=True)
    assert called.stdout == b"".join(pieces)


def test_a_record_that_comes_before_its_reader_is_kept(tmp_path: Path) -> None:
    """No cat is there, as if it had not come as far as to open the FIFO."""
    for name in ("mkdir", "mkfifo", "uname", "rm"):
        (tmp_path / name).symlink_to(str(shutil.which(name)))
    control = subprocess.Popen(
        ["/bin/sh", "-c", CONTROL],
        stdin=subprocess.PIPE, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE,
        env={"PATH": str(tmp_path), "TMPDIR": str(tmp_path)},
    )  # fmt: skip
    with control:
        assert control.stdin and control.stderr
        control.stdin.write(b"name A=B 0\nP 1\n")
        control.stdin.flush()
        directory = control.stderr.readline().removeprefix(TAG + b"0 ready ").rstrip()
        assert control.stderr.readline() == TAG + b"1\n"
        subprocess.run(["/bin/sh", "-c", 'echo word 1<>"$1/records"', "sh", directory], check=True)
        records = os.open(directory + b"/records", os.O_RDONLY | os.O_NONBLOCK)
        try:
            assert os.read(records, 100) == b"word\n"
        finally:
            os.close(records)
            control.stdin.write(b"X 0\n")
            control.stdin.close()
