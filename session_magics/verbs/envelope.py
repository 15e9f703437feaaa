"""What ``--json`` gives, of every verb alike.

``{"ok": true, "value": …}``, or ``{"ok": false, "error": {"kind": …, "message": …}}``, in one line. The kind is the
name of the error's class in ``session_magics.errors``. Values: a session as ``info`` knows it, a list of rows, text,
names, attachments, tools, checks, what an import did, an exit status (a number), or null.
"""

from __future__ import annotations

import json
from dataclasses import asdict, is_dataclass

from session_magics.engines import EngineSession
from session_magics.importing.report import Report
from session_magics.listing import Listing, Row
from session_magics.model import SessionInfo, State, describe
from session_magics.session import Session
from session_magics.teaching.checks import Assessment


def success(value: object) -> str:
    """What a verb gave."""
    return _line({"ok": True, "value": plain(value)})


def failure(error: Exception, message: str) -> str:
    """Why there is nothing to give."""
    return _line({"ok": False, "error": {"kind": type(error).__name__, "message": message}})


def plain(value: object) -> object:
    """The value as JSON takes it; of a row, cpu is in percent of one core and memory in bytes."""
    match value:
        case Listing():
            return [_row(row) for row in value.rows]
        case Session() | EngineSession():
            return _info(value.info())
        case SessionInfo():
            return _info(value)
        case Report():
            return {**asdict(value), "kept": None if value.kept is None else str(value.kept)}
        case Assessment():
            return {**asdict(value), "ok": value.ok, "score": value.score}
        case str():
            return str(value)
        case list():
            return [plain(one) for one in value]
    return asdict(value) if is_dataclass(value) and not isinstance(value, type) else value


def _line(content: dict[str, object]) -> str:
    return json.dumps(content)


def _row(row: Row) -> dict[str, object]:
    usage = row.usage
    used = asdict(usage) if usage is not None else {"cpu": None, "memory": None, "ports": []}
    return {**_info(row.info), **used, "last_line": row.last_line, "doing": row.doing}


def _info(info: SessionInfo) -> dict[str, object]:
    known = {**asdict(info), "labels": dict(info.labels), "directory": str(info.directory)}
    return {**known, "state": _state(info.state)}


def _state(state: State) -> dict[str, object]:
    return {"kind": type(state).__name__, **asdict(state), "text": describe(state)}
