"""What an approval may meet: a sight of each kind, and courses of many, for the tests of decisions and of their log."""

from __future__ import annotations

from dataclasses import replace

from hypothesis import strategies as st

from session_magics.agents.approval import (
    STILL,
    Answer,
    Decision,
    Grant,
    Memory,
    Off,
    Refuse,
    Sight,
    Wait,
    decide,
)
from session_magics.agents.prompts import Choice, Doing, Prompt
from session_magics.agents.verdicts.judge import Rules

GRANT = Grant(
    tool="claude",
    processes=("claude",),
    prompts="claude",
    version="2.0.1",
    until=10_000.0,
    most=50,
    rules=Rules(allow=("git *", "ls", "ls *", "Edit(src/**)"), deny=("git push *",)),
    cwd="/home/me/project",
    home="/home/me",
    enabled_by="me@here pid 1",
)
CHOICES = (
    Choice("1", "Yes", "once", True),
    Choice("2", "Yes, and don't ask again", "always", False),
    Choice("3", "No", "no", False),
)


def prompt(subject: str | None = "git status", **changes: object) -> Prompt:
    fresh = Prompt("bash", "command", "Do you want to proceed?", subject, CHOICES, text=f"{subject}")
    return replace(fresh, **changes)  # type: ignore[arg-type]


def asking(one: Prompt | None) -> Doing:
    return Doing("waiting", one, one.question if one else "Which one?")


SIGHT = Sight(
    time=100.0, lines=("a screen",), row=0, unchanged=1.0, waiting="read", echo=False, canonical=False,
    foreground=("node", "claude"), doing=asking(prompt()),
)  # fmt: skip
WORKING, IDLE = Doing("working", None, ""), Doing("idle", None, "")
SEEN = Memory(answered=1, times=(99.0,), digest=prompt().digest, identical=1, pending=True)


def choices(*changed: Choice) -> Doing:
    return asking(prompt(choices=changed))


ENTER = Choice("\r", "Yes", "once", True)

TABLE: dict[str, tuple[Sight, Memory, type[Decision], str]] = {
    "a true prompt": (SIGHT, Memory(), Answer, "git *"),
    "by poll": (replace(SIGHT, waiting="poll"), Memory(), Answer, "git *"),
    "no question": (replace(SIGHT, doing=IDLE), Memory(), Wait, "no question"),
    "at work": (replace(SIGHT, doing=WORKING), Memory(), Wait, "no question"),
    "still drawing": (replace(SIGHT, unchanged=STILL - 0.01), Memory(), Wait, "changes"),
    "not waiting": (replace(SIGHT, waiting="no"), Memory(), Wait, "does not wait"),
    "no question and not waiting": (replace(SIGHT, doing=IDLE, waiting="no"), Memory(), Wait, "no question"),
    "another program": (replace(SIGHT, foreground=("cat",)), Memory(), Refuse, "cat has the terminal"),
    "a name that only begins alike": (replace(SIGHT, foreground=("claude-fake",)), Memory(), Refuse, "claude-fake"),
    "unknown program": (replace(SIGHT, foreground=None), Memory(), Refuse, "an unknown program"),
    "somebody is there": (replace(SIGHT, touched=True), Memory(), Refuse, "somebody"),
    "unknown question": (replace(SIGHT, doing=asking(None)), Memory(), Refuse, "not a known one"),
    "login": (replace(SIGHT, doing=asking(prompt(kind="other"))), Memory(), Refuse, "no choice approves"),
    "only always": (replace(SIGHT, doing=choices(*CHOICES[1:])), Memory(), Refuse, "no choice approves"),
    "half a command": (replace(SIGHT, doing=asking(prompt(None))), Memory(), Refuse, "could not be read whole"),
    "not allowed": (replace(SIGHT, doing=asking(prompt("make"))), Memory(), Refuse, "not allowed"),
    "denied": (replace(SIGHT, doing=asking(prompt("git push origin"))), Memory(), Refuse, "denied"),
    "the floor": (replace(SIGHT, doing=asking(prompt("rm -rf /"))), Memory(), Refuse, "floor:"),
    "password by the terminal": (replace(SIGHT, canonical=True), Memory(), Off, "password"),
    "password on the screen": (replace(SIGHT, doing=asking(prompt(masked=True))), Memory(), Off, "password"),
    "time": (replace(SIGHT, time=GRANT.until), Memory(), Off, "time"),
    "count": (SIGHT, Memory(answered=50, times=(1.0,)), Off, "all answers"),
    "cool-down": (SIGHT, Memory(answered=1, times=(98.5,), digest="other"), Wait, "too soon"),
    "cooled down": (SIGHT, Memory(answered=1, times=(98.0,), digest="other"), Answer, "git *"),
    "too many in a minute": (
        SIGHT, Memory(answered=20, times=tuple(41.0 + 2 * n for n in range(20))), Wait, "too soon",
    ),
    "the minute is over": (
        replace(SIGHT, time=101.0), Memory(answered=20, times=tuple(41.0 + 2 * n for n in range(20))), Answer, "git *",
    ),
    "identical": (SIGHT, Memory(answered=3, times=(9.0,), digest=prompt().digest, identical=3), Off, "3 times"),
    "box still there at first": (SIGHT, replace(SEEN, times=(99.5,)), Wait, "watching"),
    "box still there": (SIGHT, SEEN, Off, "still there"),
    "box came back": (SIGHT, replace(SEEN, times=(99.5,), gone=True), Off, "came back"),
    "box gone": (replace(SIGHT, doing=WORKING), SEEN, Wait, "no question"),
    "another program after it": (replace(SIGHT, foreground=("vi",)), SEEN, Off, "another program took"),
    "Enter on what is highlighted": (replace(SIGHT, doing=choices(ENTER, CHOICES[2])), Memory(), Answer, "git *"),
    "Enter on what is not": (
        replace(SIGHT, doing=choices(replace(ENTER, selected=False), CHOICES[2])), Memory(), Refuse, "no key",
    ),
    "no key": (replace(SIGHT, doing=choices(replace(ENTER, key="\x1b[B\r"))), Memory(), Refuse, "no key"),
}  # fmt: skip

SUBJECTS = ("git status", "git diff", "ls", "make", "rm -rf /", "git push origin main", "ls; rm -rf ~", None)
PROMPTS = st.builds(
    prompt,
    st.sampled_from(SUBJECTS),
    kind=st.sampled_from(["command", "edit", "read", "fetch", "other"]),
    choices=st.sampled_from([CHOICES, CHOICES[1:], (ENTER, CHOICES[2]), (replace(ENTER, selected=False),)]),
    masked=st.booleans(),
)
LIKELY = st.builds(prompt, st.sampled_from(SUBJECTS[:3]))
SIGHTS = st.builds(
    Sight,
    time=st.sampled_from([0.0, 0.1, 0.4, 0.9, 1.1, 2.0, 2.1, 30.0]),  # since the one before
    lines=st.just(()),
    row=st.just(0),
    unchanged=st.sampled_from([0.0, 0.39, 0.4, 5.0, 5.0]),
    waiting=st.sampled_from(["read", "read", "poll", "no"]),
    echo=st.booleans(),
    canonical=st.sampled_from([False, False, False, True]),
    foreground=st.sampled_from([("claude",), ("claude",), ("claude",), ("bash",), None]),
    doing=st.one_of(st.builds(asking, LIKELY), st.builds(asking, PROMPTS | st.none()), st.just(WORKING)),
    touched=st.sampled_from([False, False, False, True]),
)


def course(steps: list[Sight]) -> list[tuple[Sight, Decision, Memory]]:
    """What becomes of these sights, one after the other, until approval goes off."""
    memory, now, done = Memory(), 1.0, []
    for step in steps:
        now += step.time
        sight = replace(step, time=now)
        decision, after = decide(replace(GRANT, most=25), memory, sight)
        done.append((sight, decision, memory))
        memory = after
        if isinstance(decision, Off):
            break
    return done
