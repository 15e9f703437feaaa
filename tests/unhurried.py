"""Has a kernel wait for the answers of shells and programs as long as they take: for ``%run`` in it.

Else they are left out on a machine that is busy, as a page is not to be kept waiting.
"""

from __future__ import annotations

LIMIT = 20.0
"""Seconds for an answer."""

if __name__ == "__main__":
    from session_magics import inspection, manual, syntax
    from session_magics.completion.answering import Completer

    inspection.ANSWER_LIMIT = manual.TIME_LIMIT = syntax.TIME_LIMIT = LIMIT
    Completer.__init__.__defaults__ = (LIMIT,)
