"""What an import did, as values that show themselves as lines."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any


@dataclass(frozen=True)
class Imported:
    """A row that is a session of ours now."""

    name: str
    was: str
    """What it was called."""
    state: str
    note: str = ""

    def __str__(self) -> str:
        renamed = "" if self.was == self.name else f", which was called {self.was!r}"
        return f"imported {self.name}{renamed}: {self.state}" + (f"; {self.note}" if self.note else "")


@dataclass(frozen=True)
class Skipped:
    """A row that was left out on purpose."""

    was: str
    reason: str

    def __str__(self) -> str:
        return f"skipped {self.was!r}: {self.reason}"


@dataclass(frozen=True)
class SetAside:
    """A row that is broken."""

    was: str
    reason: str

    def __str__(self) -> str:
        return f"set aside {self.was!r}: {self.reason}"


@dataclass(frozen=True)
class Report:
    """All rows of a file, and the file that keeps the broken ones (None: there are none)."""

    imported: tuple[Imported, ...] = ()
    skipped: tuple[Skipped, ...] = ()
    set_aside: tuple[SetAside, ...] = ()
    kept: Path | None = None
    dry_run: bool = False

    def __str__(self) -> str:
        lines = [*map(str, self.imported), *map(str, self.skipped), *map(str, self.set_aside)]
        counts = f"{len(self.imported)} imported, {len(self.skipped)} skipped, {len(self.set_aside)} set aside"
        if self.kept is not None:
            counts += f" in {self.kept}"
        if self.dry_run:
            counts += "; this was a trial: nothing was written"
        return "\n".join([*lines, counts])

    def _repr_pretty_(self, printer: Any, _cycle: bool) -> None:
        printer.text(str(self))
