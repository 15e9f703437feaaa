"""The verbs ``record`` and ``play``."""

from __future__ import annotations

import os
from argparse import Namespace
from collections.abc import Callable
from typing import TYPE_CHECKING

from session_magics.errors import UsageMistake
from session_magics.model import NAME_PATTERN
from session_magics.registry import Registry
from session_magics.text.amounts import short_bytes

if TYPE_CHECKING:  # most calls need none of it
    from session_magics.recording.formats import Cast
    from session_magics.recording.playing import Settings
    from session_magics.recording.recorder import Recorded, Recordings
    from session_magics.session import Session

PLAYED_BYTES = 8 * 1024 * 1024
"""Most of a file or a log that is sent to a page; a tenth of it comes over the line, as it is packed."""


class RecordingVerbs:
    """One method a verb; ``Verbs`` has the others.

    ``_recordings`` gives those that go on beside other calls; None: a recording is made while the call lasts.
    ``_player`` makes what plays a cast; None where nothing can: then its last screen is shown as text.
    """

    _registry: Registry
    _recordings: Callable[[], Recordings] | None
    _player: Callable[[Cast, str, Settings], object] | None
    _most_played: int | None = PLAYED_BYTES
    """Bytes of what is played; None: as many as there are."""

    def _record(self, words: Namespace) -> Recorded:
        from session_magics.recording.recorder import Recording

        session = self._registry.get(words.name)
        if words.stop:
            if self._recordings is None:
                raise UsageMistake("--stop ends a recording of a notebook: here, Ctrl-C does")
            return self._recordings().end(session)
        follow = words.follow or words.begin is None
        if follow and self._recordings is not None and (running := self._recordings().running(session)):
            raise UsageMistake(str(running))
        recording = Recording(
            session,
            os.path.expanduser(words.file),
            words.version,
            begin=words.begin,
            end=words.end,
            follow=follow,
            idle_limit=words.idle_limit,
            force=words.force,
        )
        if follow and self._recordings is not None:
            return self._recordings().begin(recording)
        if not follow:
            recording.run()
            return recording.recorded()
        recording.begin()
        try:
            recording.wait()
        except KeyboardInterrupt:
            recording.end()
        return recording.recorded()

    def _play(self, words: Namespace) -> object:
        from session_magics.recording.playing import Settings, still

        cast, title = self._cast(words.what)
        settings = Settings.of(cast, words.speed, words.start_at, words.idle_limit, autoplay=words.autoplay)
        if self._player is None or words.json:
            return still(cast, title)
        return self._player(cast, title, settings)

    def _cast(self, what: str) -> tuple[Cast, str]:
        """What a FILE or the NAME of a session is, with its title."""
        from session_magics.recording.formats import read_cast
        from session_magics.recording.past import cast_of
        from session_magics.recording.playing import title_of

        session = self._session_named(what)
        if session is not None:
            part = f"play a part of it: %session record {session.name} FILE.cast --from 10m"
            self._check_amount(f"the log of session {session.name!r}", session.info().log_bytes, part)
            return cast_of(session), session.name
        path = os.path.expanduser(what)
        if os.path.isfile(path):
            self._check_amount(what, os.path.getsize(path), f"in a terminal: session-magics play {what}")
        cast = read_cast(path)
        return cast, title_of(cast, path)

    def _session_named(self, what: str) -> Session | None:
        """The session of that name, unless a file is meant."""
        if not NAME_PATTERN.fullmatch(what.partition("@")[0]):
            return None
        session = self._registry.find(what)
        if session is None and not os.path.exists(os.path.expanduser(what)) and not what.endswith(".cast"):
            return self._registry.get(what)  # says which there are
        return session

    def _check_amount(self, what: str, count: int, instead: str) -> None:
        if self._most_played is not None and count > self._most_played:
            most = short_bytes(self._most_played)
            raise UsageMistake(f"{what} has {short_bytes(count)}, and a page plays {most} at most; {instead}")
