"""What a teacher expects of a command, and which of it holds: sentences for the learner, values for the teacher."""

from __future__ import annotations

import os.path
import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from session_magics.listing import short_path
from session_magics.model import DEFAULT_NAME
from session_magics.teaching.evidence import Evidence, Found
from session_magics.teaching.spelling import nearest
from session_magics.teaching.ticks import HTML_FRAME, excerpt, html_lines, plain_lines
from session_magics.teaching.words import words_of

ENDINGS = {
    1: "failed with status 1",
    2: "failed with status 2, which often means that it was called in a wrong way",
    126: "could not be executed (status 126)",
    127: "was not found (status 127)",
    130: "was interrupted (status 130)",
}
"""How a command ended, for statuses that mean something."""


@dataclass(frozen=True)
class Expectation:
    """What is to hold; all of it is optional."""

    status: int | None = None
    contains: tuple[str, ...] = ()
    lacks: tuple[str, ...] = ()
    matches: tuple[str, ...] = ()
    file: tuple[str, ...] = ()
    no_file: tuple[str, ...] = ()
    file_contains: tuple[tuple[str, str], ...] = ()
    executable: tuple[str, ...] = ()
    cwd: str | None = None
    variable: tuple[tuple[str, str], ...] = ()
    command_used: tuple[str, ...] = ()

    @property
    def of_command(self) -> bool:
        """Whether any of it is about the command itself and not about what there is after it."""
        said = (*self.contains, *self.lacks, *self.matches, *self.command_used)
        return bool(said) or self.status is not None or self == Expectation()

    @property
    def paths(self) -> tuple[str, ...]:
        """The files that must be looked at."""
        return (*self.file, *self.no_file, *(path for path, _ in self.file_contains), *self.executable)


@dataclass(frozen=True)
class Check:
    """One thing that was expected: whether it holds, in a sentence; of what does not, what was there instead."""

    kind: str
    wanted: str
    ok: bool
    text: str
    found: str = ""


@dataclass(frozen=True)
class Assessment:
    """What ``%session expect`` gives: all checks, shown as ticks and crosses, and the teacher's hint."""

    session: str
    checks: tuple[Check, ...]
    hint: str = ""

    @property
    def ok(self) -> bool:
        """Whether everything holds."""
        return all(check.ok for check in self.checks)

    @property
    def score(self) -> float:
        """The part of the checks that hold, from 0 to 1."""
        return sum(check.ok for check in self.checks) / len(self.checks) if self.checks else 0.0

    @property
    def failed(self) -> str:
        """What does not hold, in one line."""
        wrong = [check.text for check in self.checks if not check.ok]
        hint = f"; hint: {self.hint}" if self.hint and wrong else ""
        return f"{len(wrong)} of {len(self.checks)} checks failed: {'; '.join(wrong)}{hint}"

    def __str__(self) -> str:
        return "\n".join(plain_lines(self._title(), self._rows(), "" if self.ok else self.hint))

    def _repr_pretty_(self, printer: Any, _cycle: bool) -> None:
        for index, line in enumerate(str(self).split("\n")):
            if index:
                printer.break_()
            printer.text(line)

    def _repr_html_(self) -> str:
        return HTML_FRAME[self.ok].format(html_lines(self._title(), self._rows(), "" if self.ok else self.hint))

    def _title(self) -> tuple[bool, str]:
        done = sum(check.ok for check in self.checks)
        count = f"Not yet: {done} of {len(self.checks)} checks hold" if len(self.checks) > 1 else "Not yet"
        return self.ok, "Correct" if self.ok else count

    def _rows(self) -> list[tuple[bool, str, str]]:
        """Each check; what was found stands only once, as it is often the same output."""
        shown = {""}
        rows = []
        for check in self.checks:
            found = "" if check.ok or check.found in shown else check.found
            shown.add(found)
            rows.append((check.ok, check.text, found))
        return rows


def nothing(session: str, why: str, hint: str = "") -> Assessment:
    """The assessment where there is no command to look at; the session is named where it is not the usual one."""
    text = why if session == DEFAULT_NAME else f"{why} in session {session!r}"
    return Assessment(session, (Check("command", "", False, text),), hint)


def assess(session: str, expectation: Expectation, evidence: Evidence, hint: str = "") -> Assessment:
    """Compare what is expected with what is there; the status 0 is expected where nothing is said."""
    if expectation.of_command and not any(word.strip() for word in words_of(evidence.command)):
        return nothing(session, "there is no command in the last cell", hint)
    checks = tuple(_checks(expectation, evidence))
    return Assessment(session, checks or (_status(0, evidence),), hint)


def _checks(wanted: Expectation, evidence: Evidence) -> Iterator[Check]:
    if wanted.command_used:
        used = words_of(evidence.command)
        for word in wanted.command_used:
            yield _used(word, word in used, evidence)
    if wanted.status is not None:
        yield _status(wanted.status, evidence)
    for text in wanted.contains:
        yield _output("contains", text, text in evidence.output, f"the output has {_q(text)}", evidence)
    for text in wanted.lacks:
        yield _output("lacks", text, text not in evidence.output, f"the output does not have {_q(text)}", evidence)
    for pattern in wanted.matches:
        matched = re.search(pattern, evidence.output, re.M) is not None
        yield _output("matches", pattern, matched, f"the output matches {_q(pattern)}", evidence)
    if wanted.cwd is not None:
        yield _cwd(wanted.cwd, evidence)
    yield from _file_checks(wanted, evidence)
    for name, value in wanted.variable:
        yield _variable(name, value, evidence)


def _q(text: str) -> str:
    return f"“{text}”"


def _used(word: str, used: bool, evidence: Evidence) -> Check:
    text = f"the command uses {_q(word)}" if used else f"the command should use {_q(word)}"
    return Check("command-used", word, used, text, excerpt("the command was", evidence.command))


def _status(status: int, evidence: Evidence) -> Check:
    ended = (
        "succeeded" if evidence.status == 0 else ENDINGS.get(evidence.status, f"ended with status {evidence.status}")
    )
    if evidence.status == status:
        what = "the command succeeded" if status == 0 else f"the command ended with status {status}"
        return Check("status", str(status), True, what)
    should = "should succeed" if status == 0 else f"should end with status {status}"
    return Check("status", str(status), False, f"the command {should}, but it {ended}")


def _output(kind: str, wanted: str, ok: bool, text: str, evidence: Evidence) -> Check:
    if not ok:
        text = text.replace("the output has", "the output should have", 1)
        text = text.replace("the output does not have", "the output should not have", 1)
        text = text.replace("the output matches", "the output should match", 1)
    return Check(kind, wanted, ok, text, excerpt("it was", evidence.output) or "there was no output")


def _cwd(wanted: str, evidence: Evidence) -> Check:
    """A relative DIR is the end of the directory's name, as nobody wants to know where a lesson lies."""
    there = {evidence.cwd, evidence.real_cwd}
    if wanted.startswith(("/", "~")):
        path = evidence.home + wanted[1:] if wanted == "~" or wanted.startswith("~/") else wanted
        ok = os.path.normpath(path) in there
    else:
        end = "/" + os.path.normpath(wanted)
        ok = any(path.endswith(end) for path in there)
    if ok:
        return Check("cwd", wanted, True, f"the shell is in the directory {_q(wanted)}")
    text = f"the shell should be in the directory {_q(wanted)}"
    return Check("cwd", wanted, False, text, f"it is in {short_path(evidence.cwd, evidence.home)}")


def _file_checks(wanted: Expectation, evidence: Evidence) -> Iterator[Check]:
    files = evidence.files or {}
    for path in wanted.file:
        there = files[path]
        ok = there.kind != "" and (there.kind == "directory" or not path.endswith("/"))
        yield Check("file", path, ok, f"{_q(path)} exists" if ok else f"{_q(path)} should exist", _instead(path, there))
    for path in wanted.no_file:
        kind = files[path].kind
        yield Check("no-file", path, not kind, f"there is no {_q(path)}" if not kind else f"{_q(path)} should be gone")
    for path, text in wanted.file_contains:
        there = files[path]
        ok = there.kind == "file" and text in there.content
        said = f"{_q(path)} has {_q(text)} in it" if ok else f"{_q(path)} should have {_q(text)} in it"
        found = excerpt("it has", there.content) or "it is empty"
        yield Check(
            "file-contains", f"{path}={text}", ok, said, found if there.kind == "file" else _instead(path, there)
        )
    for path in wanted.executable:
        there = files[path]
        ok = there.kind == "file" and there.executable
        said = f"{_q(path)} is executable" if ok else f"{_q(path)} should be executable"
        yield Check("executable", path, ok, said, "" if there.kind == "file" else _instead(path, there))


def _instead(path: str, there: Found) -> str:
    if there.kind:
        return f"it is a {there.kind}" if there.kind != "other" else "it is neither a file nor a directory"
    name = os.path.basename(path.rstrip("/"))
    if name in there.names:
        return "it is a file and no directory"
    near = nearest(name, there.names)
    what = "directory" if path.endswith("/") else "file"
    return f"there is no such {what}" + (f", but there is {_q(near[0])}" if near else "")


def _variable(name: str, wanted: str, evidence: Evidence) -> Check:
    value = (evidence.values or {}).get(name)
    said = " ".join(value) if isinstance(value, list) else value
    if said == wanted:
        return Check("variable", f"{name}={wanted}", True, f"the variable {name} is {_q(wanted)}")
    text = f"the variable {name} should be {_q(wanted)}"
    if said is None:
        return Check("variable", f"{name}={wanted}", False, text, "it is not set")
    shown = _q(said) if isinstance(said, str) else "an associative array"
    return Check("variable", f"{name}={wanted}", False, text, f"it is {shown}")
