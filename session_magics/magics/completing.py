"""IPython's completer is told of our cells and lines.

It gives a matcher the whole text of the cell, but completes it as Python beside: what is ours is answered with a
request to leave the others out. That request counts only for an answer with at least one completion, so that where
nothing fits, the fragment itself is the answer.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from session_magics.completion import Completion

if TYPE_CHECKING:
    from IPython.core.interactiveshell import InteractiveShell

    from session_magics.magics.magics import SessionMagics

IDENTIFIER = "SessionMagics.completions"
FIRST = 1000
"""Priority of our matcher: before IPython's own, so that they are not even asked about shell text."""


def install(ip: InteractiveShell, magics: SessionMagics) -> None:
    """Have IPython's completer ask us first."""
    completer: Any = getattr(ip, "Completer", None)
    if not hasattr(completer, "custom_matchers"):
        return
    remove(ip)
    completer.custom_matchers.append(_matcher(magics))


def remove(ip: InteractiveShell) -> None:
    """Take that back."""
    matchers = getattr(getattr(ip, "Completer", None), "custom_matchers", [])
    matchers[:] = [one for one in matchers if getattr(one, "matcher_identifier", "") != IDENTIFIER]


def _matcher(magics: SessionMagics) -> Callable[..., Any]:
    from IPython.core.completer import SimpleCompletion, context_matcher

    def ours(context: Any) -> dict[str, Any]:
        lines = context.full_text.split("\n")
        cursor = sum(len(line) + 1 for line in lines[: context.cursor_line]) + context.cursor_position
        found = magics.complete(context.full_text, cursor)
        if found is None:
            return {"completions": [], "suppress": False}
        fragment = context.full_text[found.start : cursor]
        items = found.items or (Completion(fragment),)
        return {
            "completions": [SimpleCompletion(one.text, type=one.kind or "word") for one in items],
            "matched_fragment": fragment,
            "suppress": True,
            "ordered": True,
        }

    matcher: Callable[..., Any] = context_matcher(priority=FIRST, identifier=IDENTIFIER)(ours)
    return matcher
