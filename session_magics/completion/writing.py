"""How what a shell knows is written at its place: the part of the word that it replaces, and the quotes it needs."""

from __future__ import annotations

from collections.abc import Iterable

from session_magics.completion import MOST_ITEMS, Completion, Completions
from session_magics.completion.asking import KNOWN, Answer, last_piece
from session_magics.completion.lexing import Place
from session_magics.completion.words import Word, escaped

SHOWN_AS = {"reply": "", "given": "", "word": "", "name": "file", "named-directory": "directory"}
PATHS = frozenset(("file", "directory", "name", "named-directory"))


def written(found: Place, cursor: int, known: Iterable[Answer]) -> Completions:
    """The answers as texts that can be inserted, sorted, each once."""
    texts: dict[str, tuple[int, Completion]] = {}
    for answer in known:
        if answer.kind.startswith((KNOWN, "path")):
            continue
        start, text = _written(found.word, answer)
        kind = SHOWN_AS.get(answer.kind, answer.kind)
        texts.setdefault(f"{start} {text}", (start, Completion(text, kind, answer.help)))
    start = min((start for start, _ in texts.values()), default=0)
    items = [Completion(found.word.raw[start:at] + one.text, one.kind, one.help) for at, one in texts.values()]
    items.sort(key=lambda one: (one.text.casefold(), one.text))
    return Completions(found.word.start + start, cursor, tuple(items[:MOST_ITEMS]))


def _written(word: Word, answer: Answer) -> tuple[int, str]:
    """Where in the raw word the text begins, and the text."""
    if answer.kind == "user":
        return 0, f"~{answer.text}/"
    if answer.kind == "job":
        return 0, f"%{answer.text}"
    if answer.kind == "given" and word.raw[:1] == "~" and not word.slash:
        return 0, answer.text
    if answer.kind in PATHS or answer.kind == "given":
        return _written_path(word, answer)
    if answer.kind in ("reply", "word"):
        return len(word.raw) - len(last_piece(word)), answer.text.removesuffix(" ")
    return 0, answer.text


def _written_path(word: Word, answer: Answer) -> tuple[int, str]:
    """The last component, in the quotes that are open."""
    name = answer.text.rstrip("/").rpartition("/")[2] if word.slash else answer.text.rstrip("/")
    start = word.slash if answer.kind == "given" else max(word.slash, len(word.raw) - len(last_piece(word)))
    opening = word.quote if word.quote and word.quote_start >= start else ""
    is_directory = answer.kind.endswith("directory") or (answer.kind == "given" and answer.text.endswith("/"))
    fish = answer.kind == "given"
    return start, opening + escaped(name, word.quote, fish=fish) + ("/" if is_directory else "")
