"""The first that runs at the far end of a connection: makes sure of the agent's code there, and becomes the agent.

Its text is sent as it is, and ``boot`` called behind it. Nothing of the package is there yet.
"""

from __future__ import annotations

import os
import stat
import sys

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

NAME = "session-magics-far"


def boot(read: Callable[[int], bytes], mark: bytes, digest: str, files: list[tuple[str, int]]) -> None:
    """Say the mark, and whether the code is here; take it if it is not; serve.

    ``files`` are the paths and sizes of what the code consists of, ``digest`` a name for just that. What a login
    shell says before the mark is none of ours.
    """
    base = place()
    code = os.path.join(base, "code-" + digest)
    private(code)
    there = all(_size(os.path.join(code, path)) == size for path, size in files)
    os.write(1, mark + (b"1" if there else b"0"))
    if not there:
        import zlib

        text = zlib.decompress(read(int(read(8))))
        for path, size in files:
            _put(os.path.join(code, path), text[:size])
            text = text[size:]
    package = type(sys)("session_magics")
    package.__path__ = [os.path.join(code, "session_magics")]
    sys.modules["session_magics"] = package
    from session_magics.holder import agent

    agent.main(base)


def place() -> str:
    """A directory of this user's alone, for code and sessions: at home, or where there is none, among the temporary."""
    state = os.environ.get("XDG_STATE_HOME", "")
    homes = [state if os.path.isabs(state) else "", os.path.join(os.path.expanduser("~"), ".local", "state")]
    for home in homes:
        if os.path.isabs(home):
            try:
                os.makedirs(home, 0o700, exist_ok=True)
                return private(os.path.join(home, NAME))
            except OSError:
                pass
    problem: OSError | None = None
    for folder in (os.environ.get("TMPDIR") or "/tmp", "/tmp", "/var/tmp", "/dev/shm"):
        try:
            return private(os.path.join(folder, f"{NAME}-{os.getuid()}"))
        except OSError as error:
            problem = problem or error
    sys.exit(f"no place for files of a session: {problem}")


def private(path: str) -> str:
    """Make the directory if need be, and see that it is ours alone; OSError if it is not, as anybody may take a name
    in a temporary directory."""
    try:
        os.mkdir(path, 0o700)
    except FileExistsError:
        pass
    one = os.lstat(path)
    if not stat.S_ISDIR(one.st_mode) or one.st_uid != os.getuid() or one.st_mode & 0o077:
        raise PermissionError(1, "it is not a directory of this user's alone", path)
    if not os.access(path, os.W_OK | os.X_OK):
        raise PermissionError(1, "it cannot be written to", path)
    return path


def _size(path: str) -> int:
    try:
        return os.stat(path).st_size
    except OSError:
        return -1


def _put(path: str, text: bytes) -> None:
    """Write a file so that nobody ever meets half of it."""
    os.makedirs(os.path.dirname(path), 0o700, exist_ok=True)
    temporary = f"{path}.{os.getpid()}"
    fd = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    try:
        while text:
            text = text[os.write(fd, text) :]
    finally:
        os.close(fd)
    os.rename(temporary, path)
