"""Whether a question on a terminal is answered by rule: decisions, without a clock and without reading anything.

All that a decision depends on is in its arguments, so that it can be tested, recorded and made again. What is in
doubt is left to the person; what should not happen at all switches the approval off.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

from session_magics.agents.audit import Record, decode, encode
from session_magics.agents.prompts import Choice, Doing, Prompt
from session_magics.agents.verdicts.judge import Rules, Verdict, judge_command, judge_path, judge_url

STILL = 0.4
"""Seconds for which the screen must not have changed: a box that is being drawn takes a few hundredths."""
COOL_DOWN = 2.0
"""Seconds between two answers, so that a person who looks can follow and step in."""
VERIFY = 1.0
"""Seconds after an answer within which the box must have gone, and not come back."""
MINUTE = 60.0
PER_MINUTE = 20
"""Most answers in any minute: an agent that asks faster than that runs wild."""
IDENTICAL = 3
"""Most answers to the same question in a row."""
RETRY = 0.25
"""Seconds until a program is looked at again that shows a question and does not wait for a key yet."""
PASSWORD = "the program asks for a password"
WAITS = ("read", "poll")
"""The kinds of waiting in which a program takes a key."""
ENTER = "\r"


@dataclass(frozen=True)
class Grant:
    """What somebody has allowed."""

    tool: str
    processes: tuple[str, ...]
    """Names by which the tool's process is known."""
    prompts: str
    """Name of the tool's prompts."""
    version: str | None
    until: float
    """When it ends, on the clock of ``Sight.time``."""
    most: int
    """Number of answers after which it ends."""
    rules: Rules
    cwd: str
    home: str
    enabled_by: str
    """User, host and pid that switched it on."""


@dataclass(frozen=True)
class Sight:
    """What could be seen at one moment."""

    time: float
    """Seconds, on a clock that never jumps."""
    lines: tuple[str, ...]
    """The rendered screen as plain text; empty while the terminal hides what is typed."""
    row: int
    """Of the cursor."""
    unchanged: float
    """Seconds for which the screen has been as it is."""
    waiting: str
    """Whether the program waits for input: "read", "poll" or "no"."""
    echo: bool
    canonical: bool
    foreground: tuple[str, ...] | None
    """Names of the program that has the terminal; None if they cannot be told."""
    doing: Doing
    touched: bool = False
    """Whether somebody has been at the terminal since the question came: a resize, another choice highlighted."""

    @property
    def masked(self) -> bool:
        """Whether the terminal takes a line that it does not show; programs that draw all by themselves read keys."""
        return self.canonical and not self.echo


@dataclass(frozen=True)
class Memory:
    """What has gone before."""

    answered: int = 0
    times: tuple[float, ...] = ()
    """Of the newest answers, as many as count for the limits."""
    digest: str = ""
    """Of the question that was answered last."""
    identical: int = 0
    """How often it was, in a row."""
    pending: bool = False
    """Whether the effect of the last answer is still to be seen."""
    gone: bool = False
    """Whether its box has been seen to be gone."""
    refused: str = ""
    """Digest of the question that was left to the person, while it may still be on the screen."""


@dataclass(frozen=True)
class Wait:
    """Nothing to do now."""

    reason: str
    due: float | None = None
    """When to look again even if nothing comes; None: no need."""


@dataclass(frozen=True)
class Answer:
    """Type these keys."""

    keys: str
    rule: str
    """The one that allows it."""
    digest: str


@dataclass(frozen=True)
class Refuse:
    """Leave the question to the person."""

    reason: str
    digest: str


@dataclass(frozen=True)
class Off:
    """Answer nothing more, ever."""

    reason: str


Decision = Wait | Answer | Refuse | Off


def decide(grant: Grant, memory: Memory, sight: Sight) -> tuple[Decision, Memory]:
    """What to do about what is seen, and what to remember. An answer is remembered as if it had been given."""
    if sight.time >= grant.until:
        return Off("its time is over"), memory
    if sight.masked:
        return Off(PASSWORD), memory
    if memory.pending:
        early, memory = _verify(grant, memory, sight)
        if early is not None:
            return early, memory
    if memory.answered >= grant.most:
        return Off("all answers that were allowed are given"), memory
    if sight.unchanged < STILL:
        return Wait("the screen changes", sight.time + STILL - sight.unchanged), memory
    prompt = sight.doing.prompt
    if prompt is None and sight.doing.state != "waiting":
        return Wait("no question"), replace(memory, refused="")
    digest = prompt.digest if prompt is not None else sight.doing.question
    if digest == memory.refused:
        return Wait("left to the person"), memory
    if sight.waiting not in WAITS:
        return Wait("the program does not wait for input", sight.time + RETRY), memory
    if prompt is not None and prompt.masked:
        return Off(PASSWORD), memory
    why = _objection(grant, sight)
    if why or prompt is None:
        return Refuse(why, digest), replace(memory, refused=digest)
    return _allowed(grant, memory, sight, prompt)


def decide_again(record: Record) -> dict[str, Any]:
    """The decision that a line of the audit log leads to now, in the form that the line has it."""
    grant, memory = decode(Grant, record["grant"]), decode(Memory, record["memory"])
    return encoded(decide(grant, memory, decode(Sight, record["sight"]))[0])


def encoded(decision: Decision) -> dict[str, Any]:
    """A decision for the audit log."""
    return {"kind": type(decision).__name__.lower(), **encode(decision)}


def belongs(grant: Grant, foreground: tuple[str, ...] | None) -> bool:
    """Whether the program that has the terminal is the tool that the grant is for."""
    return foreground is not None and not set(grant.processes).isdisjoint(foreground)


def _verify(grant: Grant, memory: Memory, sight: Sight) -> tuple[Decision | None, Memory]:
    """See what became of the last answer; None instead of a decision: all is well."""
    prompt, answered_at = sight.doing.prompt, memory.times[-1]
    if not belongs(grant, sight.foreground):
        return Off("another program took the terminal after an answer"), memory
    shown = prompt is not None and prompt.digest == memory.digest
    if shown and memory.gone:
        return Off("the same question came back at once: the answer was not accepted"), memory
    if not shown and not memory.gone:
        memory = replace(memory, gone=True)
    if sight.time < answered_at + VERIFY:
        return Wait("watching what the answer does", answered_at + VERIFY), memory
    if shown:
        return Off(f"the question was still there {VERIFY:g} s after its answer"), memory
    return None, replace(memory, pending=False)


def _objection(grant: Grant, sight: Sight) -> str:
    """Why the question is the person's, whatever it is about; empty for nothing."""
    prompt = sight.doing.prompt
    if not belongs(grant, sight.foreground):
        shown = ", ".join(sight.foreground or ()) or "an unknown program"
        return f"{shown} has the terminal, and not {grant.tool}"
    if sight.touched:
        return "somebody is at the terminal"
    if prompt is None:
        return "the question is not a known one"
    if prompt.subject is None and prompt.kind != "other":
        return f"what the {prompt.kind} is about could not be read whole"
    if prompt.once is None:
        return "no choice approves just this once"
    if _keys(prompt.once, canonical=sight.canonical) is None:
        return f"no key for {prompt.once.label!r}"
    return ""


def _allowed(grant: Grant, memory: Memory, sight: Sight, prompt: Prompt) -> tuple[Decision, Memory]:
    """Answer if the rules allow it and the limits do."""
    digest, verdict = prompt.digest, _judge(grant, prompt)
    if verdict.decision != "allow":
        word = "not allowed by a rule" if verdict.decision == "ask" else "denied"
        return Refuse(f"{word} ({verdict.rule})", digest), replace(memory, refused=digest)
    identical = memory.identical + 1 if digest == memory.digest else 1
    if identical > IDENTICAL:
        return Off(f"the same question came {IDENTICAL} times"), memory
    if (due := _due(memory.times)) > sight.time:
        return Wait("too soon after the last answer", due), memory
    keys = _keys(prompt.once, canonical=sight.canonical)
    assert keys is not None
    memory = replace(
        memory,
        answered=memory.answered + 1,
        times=(*memory.times, sight.time)[-PER_MINUTE:],
        digest=digest,
        identical=identical,
        pending=True,
        gone=False,
        refused="",
    )
    return Answer(keys, verdict.rule, digest), memory


def _due(times: tuple[float, ...]) -> float:
    """When the limits allow the next answer."""
    due = times[-1] + COOL_DOWN if times else 0.0
    return max(due, times[-PER_MINUTE] + MINUTE) if len(times) >= PER_MINUTE else due


def _judge(grant: Grant, prompt: Prompt) -> Verdict:
    match prompt.kind, prompt.subject:
        case "command", str(command):
            return judge_command(command, grant.rules, cwd=grant.cwd, home=grant.home)
        case ("edit" | "read") as action, str(path):
            return judge_path(path, action, grant.rules, cwd=grant.cwd, home=grant.home)
        case "fetch", str(url):
            return judge_url(url, grant.rules)
    return Verdict("ask", "what it is about is not known")


def _keys(choice: Choice | None, *, canonical: bool) -> str | None:
    """What to type for a choice; None if that is not certain.

    Enter takes whatever is highlighted, so alone it is typed only for a choice that is. A terminal that hands over
    whole lines needs it behind every key.
    """
    if choice is None:
        return None
    if choice.key == ENTER:
        return ENTER if choice.selected else None
    key = choice.key.removesuffix(ENTER)
    if len(key) != 1 or not key.isprintable():
        return None
    return key + ENTER if canonical else choice.key
