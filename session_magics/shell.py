"""A cell command in a shell session: its start, its output as it comes, its end."""

from __future__ import annotations

import time
from collections.abc import Sequence
from pathlib import Path
from typing import Literal, cast

from session_magics.backends import Link, Waiting
from session_magics.errors import SessionNotRunning
from session_magics.log import LogReader
from session_magics.model import CellResult
from session_magics.store.records import read_exit, read_run


class Attachment:
    """A connection to a shell session that is kept for many cells, one at a time, all from one thread.

    Owns the link and a reader of the log; ``close`` it. Detaching does nothing to the session.
    """

    def __init__(self, link: Link, directory: Path, name: str, dialect: str) -> None:
        self.link, self.directory, self.name, self.dialect = link, directory, name, dialect
        self.log = LogReader(directory)

    def alive(self) -> bool:
        """Whether the holder is still at the other end."""
        try:
            while self.link.receive(0):
                pass
        except SessionNotRunning:
            return False
        return True

    def cell(self, cell_text: str, *, hidden: bool = False) -> Cell:
        """Run shell text; ``hidden`` is for commands of ours: they leave no trace in ``$?`` and in the index."""
        return Cell(self, cell_text, hidden=hidden)

    def close(self) -> None:
        """Detach; idempotent."""
        self.link.close()
        self.log.close()


class Cell:
    """One command that was handed to a session's shell. To be used by one thread; ``close`` it.

    It is the *command* that runs on when this object is closed; only its outcome is then found in the index.
    """

    def __init__(self, attachment: Attachment, text: str, *, hidden: bool = False, owned: bool = False) -> None:
        """Hand the command to the shell. CR LF line ends in ``text`` are read as LF.

        ``owned``: the attachment serves this cell alone and is closed with it.
        """
        self.session = attachment.name
        self.text = text.replace("\r\n", "\n")
        self.link, self.log = attachment.link, attachment.log
        self._attachment, self._owned = attachment, owned
        self.begin: int | None = None
        """Log offset where the output begins; None until the command has begun."""
        self.notice = ""
        """What the person should know before the output: that the shell was restarted meanwhile, and why."""
        self.result: CellResult | None = None
        self.records: Sequence[bytes] = ()
        """What a hidden command reported beside its output."""
        self._handed = self._started = time.time()
        self._ticket = self.link.run(self.text, hidden=hidden)

    def fileno(self) -> int:
        """Readable when ``receive`` has something to take in."""
        return self.link.fileno()

    @property
    def available(self) -> int:
        """Log offset up to which the output can be read now."""
        if self.result is not None:
            return self.result.end
        return max(self.begin or 0, self.link.log_end)

    def watch(self, upto: int) -> None:
        """Ask to be woken once there is output beyond that offset."""
        self.link.watch(upto, 1 << 62)

    def receive(self, timeout: float | None) -> bool:
        """Take in what has come, waiting at most ``timeout`` seconds for it; False if nothing came.

        A holder that vanishes gives a result of state ``lost``: the outcome is unknown. SessionNotRunning: the
        session ended before it took the command, which has not been run.
        """
        try:
            came = self.link.receive(timeout)
            begun = self.link.begun(self._ticket)
            fields = self.link.finished(self._ticket)
        except SessionNotRunning:
            if self._refused():
                raise
            self.result = self._lost()
            self.begin = self.result.begin
            return True
        if self.begin is None and begun is not None:
            (self.begin, self.notice), self._started = begun, time.time()
        if fields is not None:
            self.result = self._read(fields)
            self.begin = self.result.begin
        return came

    def _read(self, fields: Sequence[bytes]) -> CellResult:
        _number, begin, end, status, state, seconds, exact = (one.decode() for one in fields[:7])
        cwd, restarted = (one.decode("utf-8", "surrogateescape") for one in fields[7:9])
        self.records = fields[9:]
        return CellResult(
            session=self.session,
            text=self.text,
            returncode=int(status),
            state=cast('Literal["done", "exited", "replaced", "lost"]', state),
            begin=int(begin),
            end=int(end),
            duration=float(seconds),
            started=self._since(float(seconds)),
            cwd=cwd,
            restarted=restarted,
            exact=exact == "1",
        )

    def _since(self, seconds: float) -> float:
        """When it was given to the shell: it may have waited for a start-up file, and its begin be heard of late."""
        heard = time.time() - seconds
        return max(self._handed, heard if self._started == self._handed else min(heard, self._started))

    def _refused(self) -> bool:
        """Whether the command never ran: a holder that ends in order reports every command that it took."""
        try:
            ended = read_exit(str(self._attachment.directory))
            run = read_run(str(self._attachment.directory))
            return ended is not None and (run is None or ended.generation >= run.generation)
        except (OSError, ValueError):
            return False

    def _lost(self) -> CellResult:
        end = self.log.end()
        begin = end if self.begin is None else self.begin
        begun, now = self._started, time.time()
        return CellResult(
            self.session, self.text, -9, "lost", begin, end, max(0.0, now - begun), "", exact=False, started=begun
        )

    def output(self) -> bytes:
        """All that the command has printed so far and the log still keeps."""
        return b"" if self.begin is None else self.log.bytes(self.begin, self.available)

    def interrupt(self) -> None:
        """SIGINT to the command; asked again within two seconds it becomes TERM, then KILL."""
        self.link.interrupt()

    def send(self, data: bytes, *, secret: bool = False) -> None:
        """Type into the command; ``secret``: only while the terminal's echo is off."""
        self.link.send(data, secret=secret)

    def probe(self) -> Waiting:
        """Whether the command waits for input now."""
        return self.link.probe()

    def close(self) -> None:
        """Give up what this cell alone has; idempotent."""
        if self._owned:
            self._attachment.close()
