"""Jupyter's own tests of kernels, for each shell that has one."""

from __future__ import annotations

import shutil
import tempfile
import unittest
from pathlib import Path

import jupyter_kernel_test
import pytest

import leaks
from homes import own_home
from rounds import rounds
from session_magics.kernel import specs

pytestmark = pytest.mark.kernel


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
    code_clear_output = r"printf 'one\n'; sleep 0.2; printf '\e[1A\e[2Kother\n'"
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
        cls.kc.execute_interactive(quiet + cls.definition, timeout=20)

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
