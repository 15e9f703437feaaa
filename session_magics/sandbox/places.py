"""Places as people write them: ``local``, ``docker:IMAGE``, ``container:NAME``, ``ssh:HOST``, or a name in a file."""

from __future__ import annotations

import json
import os
import re
from dataclasses import dataclass
from pathlib import Path

from session_magics.errors import UsageMistake
from session_magics.sandbox import Sandbox

KINDS = "local, docker:IMAGE, container:NAME, ssh:HOST"
OWN_NAMES = "SESSION_MAGICS_SANDBOXES"
"""Variable with the path of the file of one's own names; else ``sandboxes.json`` in the registry's root."""
SETTINGS = {
    "docker": ("mount", "user", "network", "memory", "cpus"),
    "container": ("user",),
    "ssh": ("config",),
    "local": (),
}
"""What may follow a place of each kind, as ``,KEY=VALUE``."""


@dataclass(frozen=True)
class Place:
    """A place that was read: where, and what a container or a connection is made with."""

    kind: str
    target: str
    settings: tuple[tuple[str, str], ...] = ()

    def __str__(self) -> str:
        """Written so that it means the same from any directory."""
        words = [f"{self.kind}:{self.target}" if self.target else self.kind]
        return ",".join([*words, *(f"{key}={value}" for key, value in self.settings)])

    def all(self, key: str) -> tuple[str, ...]:
        """The values of a setting that may be repeated."""
        return tuple(value for name, value in self.settings if name == key)

    def one(self, key: str) -> str | None:
        """The last value of a setting."""
        return next(reversed(self.all(key)), None)


def read_place(text: str, root: Path) -> Place:
    """What a place means; ``root``: the registry's, which may have a file of names. Raises UsageMistake."""
    kind, colon, rest = text.partition(":")
    if not colon and kind.partition(",")[0] != "local":
        return _own(text, root)
    words = (rest if colon else text).split(",")
    target = words.pop(0) if colon else words.pop(0) and ""
    kind = kind if colon else "local"
    if kind not in SETTINGS or bool(target) == (kind == "local"):
        raise UsageMistake(f"{text!r} is no place: {KINDS}, or a name in {_file(root)}")
    return Place(kind, target, tuple(_setting(text, kind, word) for word in words))


def _setting(text: str, kind: str, word: str) -> tuple[str, str]:
    key, equals, value = word.partition("=")
    if key not in SETTINGS[kind] or not equals or not value:
        known = ", ".join(f"{one}=…" for one in SETTINGS[kind]) or "nothing"
        raise UsageMistake(f"{word!r} in {text!r} is no setting of {kind}: {known} may follow the comma")
    if key == "mount":
        here, colon, there = value.partition(":")
        if not colon or not there.startswith("/"):
            raise UsageMistake(f"{word!r} is no mount: mount=HERE:/THERE, with :ro behind for reading alone")
        value = f"{os.path.abspath(os.path.expanduser(here))}:{there}"
    if key == "cpus" and not re.fullmatch(r"\d+(\.\d+)?|\.\d+", value):
        raise UsageMistake(f"{word!r} is no number of processors: cpus=N, such as cpus=1.5")
    if key == "memory" and not re.fullmatch(r"\d+[bkmg]?", value, re.IGNORECASE):
        raise UsageMistake(f"{word!r} is no amount of memory: memory=BYTES, or with k, m or g behind it")
    if key == "config":
        value = os.path.abspath(os.path.expanduser(value))
    return key, value


def _file(root: Path) -> Path:
    return Path(os.environ.get(OWN_NAMES) or root / "sandboxes.json")


def _own(name: str, root: Path) -> Place:
    path = _file(root)
    try:
        names = json.loads(path.read_text())
    except FileNotFoundError:
        names = {}
    except (OSError, ValueError) as error:
        raise UsageMistake(f'{path} cannot be read ({error}): it is to have {{"NAME": "docker:IMAGE,…"}}') from None
    text = names.get(name) if isinstance(names, dict) else None
    if not isinstance(text, str) or ":" not in text:
        known = ", ".join(map(str, names)) if isinstance(names, dict) and names else "none"
        raise UsageMistake(f"{name!r} is no place: {KINDS}, or a name in {path} ({known} there)")
    return read_place(text, root)


def session_name(text: str) -> str:
    """The name of a place's session where none is given: its image's, container's or host's."""
    target = text.partition(":")[2].partition(",")[0] or text
    last = target.rstrip("/").rpartition("/")[2].rpartition("@")[2]
    name = re.sub(r"[^A-Za-z0-9._-]+", "-", last).strip("-._")
    return name[:64] or "main"


def session_place(place: Place, session: str) -> Place:
    """The place where a session of this id is: its own container, where one was made for it."""
    if place.kind != "docker":
        return place
    from session_magics.sandbox.dockerengine import container_of

    user = tuple(pair for pair in place.settings if pair[0] == "user")
    return Place("container", container_of(str(place), session), user)


def open_place(place: Place, *, session: str | None = None, root: str | None = None) -> Sandbox:
    """The sandbox for a place; nothing is done yet.

    ``session``: id of the session that a container is made for. ``root``: see the sandboxes; None: the place's own.
    Raises UsageMistake where a library is missing.
    """
    if place.kind == "local":
        from session_magics.sandbox.local import LocalSandbox

        return LocalSandbox(root or "/")
    if place.kind == "ssh":
        from session_magics.sandbox.ssh import SSHSandbox

        config = place.one("config")
        return SSHSandbox(place.target, config=Path(config) if config else None, root=root)
    from session_magics.sandbox.docker import DockerSandbox

    if place.kind == "container":
        return DockerSandbox(container=place.target, user=place.one("user"), root=root)
    cpus = place.one("cpus")
    return DockerSandbox(
        image=place.target,
        mounts=place.all("mount"),
        user=place.one("user"),
        network=place.one("network"),
        memory=place.one("memory"),
        cpus=float(cpus) if cpus else None,
        session=session,
        root=root,
    )
