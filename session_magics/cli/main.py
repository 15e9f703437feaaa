"""From words on a command line to output and an exit status.

0: done. 1: the verb failed. 2: the words are wrong. ``wait``, and ``attach`` to a program that ends: its own status,
or 128 and the number of the signal that ended it.
"""

from __future__ import annotations

import os
import signal
import sys
from argparse import Namespace
from collections.abc import Sequence

from session_magics.cli.words import PROGRAM, VERBS
from session_magics.errors import SessionError, UsageMistake
from session_magics.verbs.parser import HelpRequest, parse_words

FAILED, WRONG_WORDS = 1, 2
INTERRUPTED = 128 + signal.SIGINT
CLOSED_PIPE = 128 + signal.SIGPIPE


def main(arguments: Sequence[str] | None = None) -> int:
    """Carry out one command line (default: that of this process); its exit status."""
    words = sys.argv[1:] if arguments is None else list(arguments)
    try:
        status = _run(words)
        sys.stdout.flush()
        return status
    except KeyboardInterrupt:
        return INTERRUPTED
    except BrokenPipeError:
        # Whoever reads our output has had enough of it; at exit Python would try to write the rest and complain.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return CLOSED_PIPE


def _run(words: list[str]) -> int:
    if words[:1] == ["--version"]:
        import importlib.metadata  # slow, and seldom wanted

        print(PROGRAM, importlib.metadata.version(PROGRAM))
        return 0
    if words[:1] == ["__complete"]:
        from session_magics.cli.completion import answer

        print(answer(words[1:]), end="")
        return 0
    as_json = "--json" in words[: words.index("--") if "--" in words else None]
    try:
        call = parse_words(words, program=PROGRAM, more=VERBS)
        as_json = call.json
        return _carry_out(call)
    except HelpRequest as request:
        print(request.text, end="")
        return 0
    except SessionError as error:
        # Errors speak to whoever works in a notebook; the same words work here behind the program's name.
        message = str(error).replace("%session ", f"{PROGRAM} ")
        if as_json:
            from session_magics.verbs.envelope import failure

            print(failure(error, message))
        else:
            sys.stdout.flush()
            print(f"{PROGRAM}: {message}", file=sys.stderr)
        return WRONG_WORDS if isinstance(error, UsageMistake) else FAILED


def _carry_out(call: Namespace) -> int:
    from session_magics.cli.actions import Desk  # the rest of the package; help and mistakes do without

    return Desk().carry_out(call)
