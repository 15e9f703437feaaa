from __future__ import annotations

import json
import shutil
import subprocess
import sys
import tomllib
from collections.abc import Mapping
from pathlib import Path

import pytest
from jupyter_client.kernelspec import KernelSpec, KernelSpecManager

from session_magics.cli.main import main
from session_magics.kernel import specs

PROJECT = Path(__file__).parent.parent
ALL = ["session-bash", "session-fish", "session-python", "session-zsh"]
HERE = [name for name in ALL if name == "session-python" or shutil.which(name.removeprefix("session-"))]
PNG = b"\x89PNG\r\n\x1a\n"


@pytest.fixture
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The kernels of a user who has none."""
    monkeypatch.setenv("JUPYTER_DATA_DIR", str(tmp_path / "data"))
    return tmp_path / "data" / "kernels"


def content(name: str) -> Mapping[str, object]:
    return json.loads((specs.SOURCES / name / "kernel.json").read_text(encoding="utf-8"))


def test_each_kernelspec_is_whole() -> None:
    assert specs.names() == ALL
    for name in ALL:
        spec = KernelSpec.from_resource_dir(str(specs.SOURCES / name))
        assert spec.argv[0] == "python"  # whoever reads it puts its own interpreter there
        assert "{connection_file}" in spec.argv
        assert {path.name for path in (specs.SOURCES / name).iterdir()} == {
            "kernel.json",
            "logo-32x32.png",
            "logo-64x64.png",
            "logo-svg.svg",
        }
        for size in (32, 64):
            data = (specs.SOURCES / name / f"logo-{size}x{size}.png").read_bytes()
            assert (data[:8], data[16:24]) == (PNG, size.to_bytes(4) * 2)
    shells = [name for name in ALL if name != "session-python"]
    assert all(content(name)["interrupt_mode"] == "message" for name in shells)
    assert [content(name)["language"] for name in shells] == ["bash", "fish", "zsh"]


def test_the_wheel_has_those_that_every_machine_can_use() -> None:
    build = tomllib.loads((PROJECT / "pyproject.toml").read_text())["tool"]["hatch"]["build"]["targets"]["wheel"]
    shared = {target: source for source, target in build["shared-data"].items()}
    for name in ("session-python", "session-bash"):
        assert PROJECT / shared[f"share/jupyter/kernels/{name}"] == specs.SOURCES / name


def test_install_binds_them_to_this_interpreter_and_remove_takes_them_away(
    place: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["kernel", "install"]) == 0
    assert [line.split()[0] for line in capsys.readouterr().out.splitlines()] == HERE
    found = KernelSpecManager(kernel_dirs=[str(place)])
    assert sorted(name for name in found.find_kernel_specs() if name in ALL) == HERE
    for name in HERE:
        assert found.get_kernel_spec(name).argv == [sys.executable, *content(name)["argv"][1:]]
    (place / "mine").mkdir()
    (place / "mine" / "kernel.json").write_text('{"argv": ["mine"], "display_name": "Mine"}')
    assert main(["kernel", "install", "--name", "session-python"]) == 0  # again, in place of the old one
    assert main(["kernel", "remove", "--name", "session-python"]) == 0
    assert main(["kernel", "remove"]) == 0
    assert [path.name for path in place.iterdir()] == ["mine"]


def test_a_kernel_can_stand_under_the_name_that_notebooks_ask_for(place: Path) -> None:
    assert main(["kernel", "install", "--name", "session-bash", "--as", "bash"]) == 0
    spec = KernelSpecManager(kernel_dirs=[str(place)]).get_kernel_spec("bash")
    assert (spec.language, spec.display_name, spec.argv[0]) == ("bash", "Bash (session)", sys.executable)
    assert [one.name for one in specs.remove(place, ["bash"])] == ["bash"]


def test_a_kernel_of_another_package_is_never_removed(place: Path) -> None:
    (place / "session-bash").mkdir(parents=True)
    (place / "session-bash" / "kernel.json").write_text('{"argv": ["other", "-f", "{connection_file}"]}')
    assert specs.remove(place) == []
    assert (place / "session-bash").is_dir()


@pytest.mark.parametrize(
    ("words", "mistake"),
    [
        (["install", "--name", "session-ksh"], "there is no kernel 'session-ksh'"),
        (["install", "--user", "--sys-prefix"], "give one"),
        (["install", "--as", "bash"], "--as belongs to"),
        (["update"], "no action 'update'"),
        ([], "ACTION is missing"),
    ],
)
def test_mistakes_are_told(place: Path, capsys: pytest.CaptureFixture[str], words: list[str], mistake: str) -> None:
    assert main(["kernel", *words]) == 2
    assert mistake in capsys.readouterr().err
    assert not place.exists()


def test_a_place_that_cannot_be_written_is_an_error(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    (tmp_path / "share").write_text("a file")
    assert main(["kernel", "install", "--prefix", str(tmp_path)]) == 1
    assert str(tmp_path / "share") in capsys.readouterr().err


def test_the_prefix_of_the_interpreter_is_looked_up_by_jupyter() -> None:
    code = "import sys; from session_magics.kernel import specs; print(specs.directory(sys.prefix))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() in KernelSpecManager().kernel_dirs
