"""Sessions at a place that is taken to have no Python, over the real registry: for the tests of the far scripts."""

from __future__ import annotations

import dataclasses
import os
from collections.abc import Mapping
from pathlib import Path

from session_magics.backends import Start
from session_magics.backends.farscript import end_there, launch_fields
from session_magics.backends.native import NativeBackend
from session_magics.sandbox import Sandbox


class ScriptBackend(NativeBackend):
    """Starts every session at one place, by the scripts, whatever there is at the place."""

    def __init__(self, place: Sandbox, shell: str | None = None) -> None:
        self.place, self.shell = place, shell
        self.fields: Mapping[str, bytes] = {}

    def start(self, start: Start) -> None:
        added = {name: value for name, value in start.env.items() if os.environ.get(name) != value}
        program = start.program and (self.shell or start.program)
        spec = dataclasses.replace(start.spec, cwd="")
        super().start(dataclasses.replace(start, spec=spec, env=added, program=program, place=self.place))

    def extra(self, start: Start) -> Mapping[str, bytes]:
        self.fields = launch_fields(start)
        return self.fields

    def force(self, directory: Path, id: str) -> tuple[int, ...]:
        return end_there(self.fields, id)
