"""Jupyter's own tests of kernels, for each shell that has one."""

from __future__ import annotations

import shutil
import tempfile
import unittest
from collections.abc import Callable
from pathlib import Path
from typing import Any

import jupyter_kernel_test
import pytest

import leaks
from homes import own_home
from rounds import rounds
from session_magics.kernel import specs

pytestmark = pytest.mark.kernel
# Seconds for a message of a kernel.
LIMIT = 20.0

Message = dict[str, Any]


class ShellKernelTests(jupyter_kernel_test.KernelTests):
    """The texts that are right for every shell."""

    __test__ = False
    place: Path
    patch: pytest.MonkeyPatch
    definition = "printf_of_ours() { printf x; }"
    code_hello_world = "echo hello, world"
    code_stderr = "exit 0"  # the shell begins anew, and a notice says so
    code_generate_error = "(exit 3)"
    code_page_something = "echo?"
    code_execute_result = [  # noqa: RUF012
        {"code": "%config SessionMagics.backend", "result": "'auto'"},
        {"code": "# a comment\n%config SessionMagics.rc", "result": "True"},
    ]
    code_display_data = [{"code": "%%html\n<b>bold</b>", "mime": "text/html"}]  # noqa: RUF012
    code_history_pattern = "*SessionMagics.rc*"
    supported_history_operations = ("tail", "range", "search")
    code_inspect_sample = "cd"
    code_clear_output = r"printf 'one\n'; sh -c 'until [ -e seen ]; do sleep 0.02; done'; printf '\e[1A\e[2Kother\n'"
    complete_code_samples = ["ls", "# a comment", "echo 'a b'", "%session list", ""]  # noqa: RUF012
    completion_samples = [  # noqa: RUF012
        {"text": "%session li", "matches": {"list"}},
        {"text": "printf_of_o", "matches": {"printf_of_ours"}},
        {"text": "cd; printf_of_o", "matches": {"printf_of_ours"}},
    ]

    @classmethod
    def setUpClass(cls) -> None:
        if not shutil.which(cls.language_name):
            raise unittest.SkipTest(f"{cls.language_name} is not installed")
        cls.place = Path(tempfile.mkdtemp(prefix="sm"))
        cls.patch = pytest.MonkeyPatch()
        own_home(cls.place, cls.patch)
        cls.patch.setenv("SESSION_MAGICS_HOME", str(cls.place))
        cls.patch.chdir(cls.place)
        cls.kernel_name = f"session-{cls.language_name}"
        specs.install(specs.directory(None), [cls.kernel_name])
        super().setUpClass()
        # what depends on the time a command takes, and what is shown beside its output, has tests of its own
        quiet = "%config SessionMagics.display = 'text'\n%config SessionMagics.status_line = False\n"
        unhurried = f"%run {Path(__file__).with_name('unhurried.py')}\n"
        cls.kc.execute_interactive(unhurried + quiet + cls.definition, timeout=LIMIT)
        for channel in (cls.kc.iopub_channel, cls.kc.shell_channel):
            channel.get_msg = cls.patient(channel.get_msg)

    @staticmethod
    def patient(get_msg: Callable[..., Message]) -> Callable[..., Message]:
        """The same for messages that certainly come: the tests wait a tenth of a second for most."""

        return lambda timeout=None: get_msg(timeout=max(timeout or 0.0, LIMIT))

    def test_clear_output(self) -> None:
        """In place of the one that looks when all is over: the first line has to be shown before the next comes."""
        kinds: list[str] = []

        def see(message: Message) -> None:
            kinds.append(message["msg_type"])
            if message["content"].get("text") == "one\n":
                (self.place / "seen").touch()

        reply = self.kc.execute_interactive(self.code_clear_output, timeout=LIMIT, output_hook=see)
        assert reply["content"]["status"] == "ok" and "clear_output" in kinds

    def flush_channels(self) -> None:
        """Take in all that has come, up to the answer to a question of our own."""
        request = self.kc.kernel_info()
        for channel, last in ((self.kc.shell_channel, "kernel_info_reply"), (self.kc.iopub_channel, "idle")):
            found = False
            while not found:
                message = channel.get_msg()
                jupyter_kernel_test.validate_message(message)
                told = message["content"].get("execution_state", message["msg_type"])
                found = (message["parent_header"].get("msg_id"), told) == (request, last)

    @classmethod
    def tearDownClass(cls) -> None:
        super().tearDownClass()
        left = leaks.outlived(leaks.processes_of(cls.place))
        cls.patch.undo()
        shutil.rmtree(cls.place)
        assert not left


class TestBash(ShellKernelTests):
    __test__ = True
    language_name, file_extension = "bash", ".sh"
    incomplete_code_samples = ["if true", "echo 'a", "for x in 1; do", "cat <<END", "ls |", "ls \\"]  # noqa: RUF012
    invalid_code_samples = ["fi", "echo )", "do ls; done"]  # noqa: RUF012


class TestZsh(ShellKernelTests):
    __test__ = True
    if not rounds(0, 1):
        test_history = None  # three seconds
    language_name, file_extension = "zsh", ".zsh"
    incomplete_code_samples = ["if true", "echo 'a", "for x in 1; do", "ls |"]  # noqa: RUF012
    invalid_code_samples = ["fi", "do ls; done"]  # noqa: RUF012


class TestFish(ShellKernelTests):
    __test__ = True
    if not rounds(0, 1):
        test_history = None  # three seconds
    language_name, file_extension = "fish", ".fish"
    definition = "function printf_of_ours; printf x; end"
    code_generate_error = "false"
    incomplete_code_samples = ["if true", "echo 'a", "for x in 1", "begin"]  # noqa: RUF012
    invalid_code_samples = ["end", "echo )"]  # noqa: RUF012
