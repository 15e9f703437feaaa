"""The kernelspecs: where front ends look for kernels, and what is put there.

The wheel has those for Python and bash in ``share/jupyter/kernels``. ``install`` puts the same ones, and those of the
other shells that this machine has, into a directory of choice, bound to this interpreter.
"""

from __future__ import annotations

import json
import shutil
import sys
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

from jupyter_client.kernelspec import KernelSpecManager
from jupyter_core.paths import jupyter_data_dir

from session_magics.errors import StoreError, UsageMistake

SOURCES = Path(__file__).parent / "kernelspec"
OURS = ("session_magics.kernel", "--ext=session_magics")
"""Words of a command line that starts a kernel of ours."""


@dataclass(frozen=True)
class KernelSpec:
    """One kernelspec as it stands in a directory."""

    name: str
    display_name: str
    path: str

    def __str__(self) -> str:
        return f"{self.name}  {self.display_name}  {self.path}"


def names() -> list[str]:
    """All kernels that there are."""
    return sorted(path.parent.name for path in SOURCES.glob("*/kernel.json"))


def directory(prefix: str | None) -> Path:
    """Where kernelspecs of a prefix are, or those of the user."""
    return Path(prefix or jupyter_data_dir(), *(["share", "jupyter"] if prefix else []), "kernels")


def install(place: Path, chosen: Sequence[str] = (), called: str | None = None) -> list[KernelSpec]:
    """Write kernelspecs (default: those whose shell is here) that start this interpreter; in place of older ones.

    ``called`` is another name for the one that is chosen, such as that which notebooks of another kernel ask for.
    Raises UsageMistake for a name that is none of ours, StoreError where the place cannot be written.
    """
    for name in chosen:
        if name not in names():
            raise UsageMistake(f"there is no kernel {name[:40]!r}: kernels are {', '.join(names())}")
    return [_install(place / (called or name), name) for name in chosen or filter(_is_usable, names())]


def remove(place: Path, chosen: Sequence[str] = ()) -> list[KernelSpec]:
    """Take away kernelspecs of ours (default: all); those that were taken."""
    known = sorted(path.name for path in place.iterdir()) if place.is_dir() else []
    found = [spec for name in chosen or known if (spec := _ours(place / name)) is not None]
    for spec in found:
        try:
            shutil.rmtree(spec.path)
        except OSError as error:
            raise StoreError(spec.path, error.strerror or str(error)) from None
    return found


def installed() -> list[KernelSpec]:
    """Those of ours that front ends find, under whatever name."""
    found: Iterable[str] = KernelSpecManager().find_kernel_specs().values()
    return [spec for path in sorted(found) if (spec := _ours(Path(path))) is not None]


def _content(path: Path) -> dict[str, object]:
    content: dict[str, object] = json.loads((path / "kernel.json").read_text(encoding="utf-8"))
    return content


def _argv(content: dict[str, object]) -> list[str]:
    argv = content.get("argv")
    return [str(word) for word in argv] if isinstance(argv, list) else []


def _is_usable(name: str) -> bool:
    """Whether this machine has the shell that the kernel is for."""
    argv = _argv(_content(SOURCES / name))
    return "--shell" not in argv or shutil.which(argv[argv.index("--shell") + 1]) is not None


def _install(target: Path, name: str) -> KernelSpec:
    content = _content(SOURCES / name)
    content["argv"] = [sys.executable, *_argv(content)[1:]]
    try:
        if target.exists():
            shutil.rmtree(target)
        shutil.copytree(SOURCES / name, target)
        text = json.dumps(content, indent=1, ensure_ascii=False)
        (target / "kernel.json").write_text(f"{text}\n", encoding="utf-8")
    except OSError as error:
        raise StoreError(target, error.strerror or str(error)) from None
    return KernelSpec(target.name, str(content["display_name"]), str(target))


def _ours(path: Path) -> KernelSpec | None:
    """The kernelspec in a directory if it starts a kernel of ours."""
    try:
        content = _content(path)
    except (OSError, ValueError):
        return None
    if not any(word in OURS for word in _argv(content)):
        return None
    return KernelSpec(path.name, str(content.get("display_name", "")), str(path))
