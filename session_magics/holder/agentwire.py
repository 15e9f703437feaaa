"""Frames between a relay and its agent, beside those of ``wire`` that the two only hand on.

What the agent says of the session's files is in order: a frame of the holder comes after all that was in the log, the
index and the records when the holder sent it.
"""

from __future__ import annotations

OPEN = b"o"  # ATTACH, START or FORCE, session id, directory, log offset, index offset, launch message
PING = b"q"  # -> PONG
BYE = b"y"  # all is on record: remove the session's directory, say BYE, and end

READY = b"r"  # directory, generation: the holder lives and answers
FAILED = b"f"  # why nothing was started
LOG = b"l"  # offset, bytes; an offset beyond what came before: the bytes between are lost
INDEX = b"i"  # bytes that follow those before
RUN_RECORD = b"u"  # pid, generation, since, rows, columns, then names and values (JSON) of the rest
EXIT_RECORD = b"x"  # the exit record, whole
PONG = b"p"
GONE = b"g"  # ENDED, KILLED or NOTHING: no holder any more, and all that it left was told; pids that survived
FORCED = b"d"  # pids that survived
FAULT = b"e"  # what went wrong in the agent

START, ATTACH, FORCE = b"start", b"attach", b"force"
ENDED, KILLED, NOTHING = b"ended", b"killed", b"nothing"
