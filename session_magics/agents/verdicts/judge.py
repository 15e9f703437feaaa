"""May a command, a path or an address be approved without asking: allow, ask or deny, and by which rule."""

from __future__ import annotations

import os.path
import re
import unicodedata
from collections.abc import Sequence
from dataclasses import dataclass
from fnmatch import fnmatchcase
from itertools import pairwise
from typing import Literal
from urllib.parse import urlsplit

from session_magics.agents.verdicts.effects import changed, git_verb, operands, redirected, written
from session_magics.agents.verdicts.floor import floor
from session_magics.agents.verdicts.places import Places
from session_magics.agents.verdicts.rules import Rules, address_rule, command_rule, path_rule
from session_magics.agents.verdicts.shelldata import DATA, is_long
from session_magics.agents.verdicts.shelltext import Command, Reading, read
from session_magics.agents.verdicts.shellvalues import Word

__all__ = ["Rules", "Verdict", "judge_command", "judge_path", "judge_url"]

_TRUSTED = ("/bin", "/usr/bin", "/usr/local/bin", "/opt/homebrew/bin")
# Programs of sed that can neither write files nor run commands.
_SED = re.compile(
    r"(?:[0-9,$~!+ ]*|/[^/;]*/(?:,/[^/;]*/)?)[pdqQ=]?|[0-9,$]*s([/|#,])(?:(?!\1).)*\1(?:(?!\1).)*\1[gipI0-9]*"
)


@dataclass(frozen=True)
class Verdict:
    """What to do, and the rule or the reason, for the audit log."""

    decision: Literal["allow", "ask", "deny"]
    rule: str


def judge_command(text: str, rules: Rules, *, cwd: str, home: str) -> Verdict:
    """Judges shell text: allowed is only what is understood whole and of which every command is allowed."""
    places = Places(os.path.normpath(cwd), os.path.normpath(home))
    reading = read(text, cwd=places.cwd, home=places.home)
    if name := floor(reading, places):
        return Verdict("deny", name)
    if rule := _denied(reading, rules, places):
        return Verdict("deny", f"deny: {rule}")
    if not reading.whole:
        return Verdict("ask", "not understood")
    first = None
    for command in reading.commands:
        if command.maybe:
            continue
        rule = command_rule(rules.allow, [_shown(command)])
        exact = rule is not None and "*" not in rule
        if doubt := _doubt(command, reading, places, exact=exact):
            return Verdict("ask", doubt)
        for text, sure in dict.fromkeys((word.text, word.sure) for word in redirected(command)):
            if (verdict := _redirection(text, sure, reading, rules, places)).decision != "allow":
                return verdict
        if rule is None and not _needless(command, places):
            return Verdict("ask", f"no rule for: {command.text[:80]}")
        first = first or rule
    return Verdict("allow", f"allow: {first}") if first else Verdict("ask", "no rule")


def judge_path(path: str, action: Literal["read", "edit"], rules: Rules, *, cwd: str, home: str) -> Verdict:
    """Judges reading or editing a file; links are followed, and the path as given and its target must both pass."""
    if not path.strip() or "…" in path or any(unicodedata.category(char) in ("Cc", "Cf", "Cs") for char in path):
        return Verdict("ask", "not understood")
    given = Places(os.path.normpath(cwd), os.path.normpath(home))
    lexical = given.absolute(path)
    real = os.path.realpath(os.path.join(given.cwd, given.home + path[1:] if path[:2] in ("~", "~/") else path))
    places = Places(os.path.realpath(cwd), os.path.realpath(home))
    guarded = any(
        test(found)
        for found in (lexical, real)
        for place in (given, places)
        for test in (place.credential, place.startup)
    )
    paths = (lexical, real)
    if action == "edit" and (guarded or any(places.system(found) or places.device(found) for found in paths)):
        return Verdict("deny", "floor:startup-or-credential-file" if guarded else "floor:system-file")
    for place in (given, places):
        if rule := path_rule(rules.deny, action, paths, place):
            return Verdict("deny", f"deny: {rule}")
    if guarded or any(places.obeyed(found) for found in paths):
        return Verdict("ask", "a file that holds secrets or is obeyed")
    if not (places.inside(real) or Places(places.home, places.home).inside(real)):
        return Verdict("ask", "outside the session's directory and home")
    allowed = path_rule(rules.allow, action, [real], places)
    return Verdict("allow", f"allow: {allowed}") if allowed else Verdict("ask", "no rule")


def judge_url(url: str, rules: Rules) -> Verdict:
    """Judges fetching an address by its host."""
    try:
        parts = urlsplit(url)
        host = (parts.hostname or "").rstrip(".").lower()
    except ValueError:
        return Verdict("ask", "not understood")
    odd = not url.isascii() or any(char <= " " or char in "\\\x7f" for char in url)
    if host and (rule := address_rule(rules.deny, host)):
        return Verdict("deny", f"deny: {rule}")
    if odd or parts.scheme not in ("http", "https") or not host or "@" in parts.netloc:
        return Verdict("ask", "not understood")
    allowed = address_rule(rules.allow, host)
    return Verdict("allow", f"allow: {allowed}") if allowed else Verdict("ask", "no rule")


def _denied(reading: Reading, rules: Rules, places: Places) -> str | None:
    if not rules.deny:
        return None
    for command in reading.commands:
        if command.maybe:
            continue
        texts = [command.text, " ".join([command.name, *(word.text for word in command.words[1:])])]
        if command.name == "git":
            texts.append(" ".join(["git", *(word.text for word in command.words[git_verb(command.words) :])]))
        if command.words and (rule := command_rule(rules.deny, texts)):
            return rule
        paths = [places.absolute(word.text) for word in [*redirected(command), *written(command)]]
        if rule := path_rule(rules.deny, "edit", paths, places):
            return rule
        reads = [places.absolute(part.target.text) for part in command.redirections if part.operator == "<"]
        reads += [places.absolute(word.text) for word in operands(command.words[1:])]
        if rule := path_rule(rules.deny, "read", reads, places):
            return rule
    return None


def _shown(command: Command) -> str:
    """The text that allow rules are compared with: only a program of a trusted directory loses it."""
    if not command.words:
        return ""
    first = command.words[0].text
    directory, slash, name = first.rpartition("/")
    return " ".join([name if slash and directory in _TRUSTED else first, *(word.text for word in command.words[1:])])


def _needless(command: Command, places: Places) -> bool:
    """Whether the command needs no rule: it does nothing, or nothing but run others, which are judged."""
    if not command.words or command.holds.clear:
        return True
    name = command.words[0].text
    if name == "cd" and len(command.words) == 2:
        return places.inside(places.absolute(command.words[1].text)) and command.words[1].text != "-"
    return name in DATA["harmless_programs"]


def _doubt(command: Command, reading: Reading, places: Places, *, exact: bool) -> str | None:
    """Why the command must be asked about although a rule may fit; ``exact``: the rule is the very command."""
    for name, value in command.assignments:
        if not _harmless(name, alone=not command.words):
            return f"sets {name}"
        if not value.sure and command.words:
            return f"sets {name} to what only running tells"
    for part in command.redirections:
        if part.operator == "<" and not (part.target.sure and not places.private(places.absolute(part.target.text))):
            return "reads a file that holds secrets, or that only running tells"
    if not command.words:
        return None
    first, rest = command.words[0], command.words[1:]
    if (
        command.holds.hidden
        or not first.sure
        or first.glob
        or not first.text
        or any(char.isspace() for char in first.text)
    ):
        return "runs what the text does not show"
    if not command.holds.clear and first.text not in DATA["plain_programs"] and not all(word.sure for word in rest):
        return "an argument that only running tells"
    if any(places.private(path) for word in rest for path in places.named(word.text)):
        return "names a file that holds secrets"
    if not command.holds.clear and not exact and _runs_code(command, places):
        return "an option that can run other programs"
    return _writes_elsewhere(command, reading, places)


def _harmless(name: str, *, alone: bool) -> bool:
    if any(fnmatchcase(name, kind) for kind in DATA["harmless_assignments"]):
        return True
    # http_proxy is obeyed, and zsh's path is another name of PATH.
    return alone and name.islower() and not name.endswith(("path", "proxy"))


def _runs_code(command: Command, places: Places) -> bool:
    name, words = command.name, command.words[1:]
    if name == "sed":
        return not _plain_sed([word.text for word in words])
    if name in ("test", "[", "[["):
        return _evaluates(words)
    if name == "git" and any(
        before.text == "-C" and not places.inside(places.absolute(word.text)) for before, word in pairwise(words)
    ):
        return True  # the settings of a repository somewhere else name programs too
    patterns = DATA["run_code"].get(name)
    if patterns is None:
        return False
    if words and (more := DATA["run_code"].get(f"{name} {words[0].text}")):
        patterns = [*patterns, *more]
    long = [pattern for pattern in patterns if pattern.startswith("--")]
    return any(
        (word.glob and word.text[:1] in "*?[")
        or is_long(word.text, long)
        or any(fnmatchcase(word.text, pattern) for pattern in patterns)
        for word in words
    )


def _evaluates(words: Sequence[Word]) -> bool:
    """Whether a test takes a word for arithmetic, or for the name of a variable, that may hold commands."""
    numeric = any(word.text in ("-eq", "-ne", "-lt", "-le", "-gt", "-ge", "-v", "-R") for word in words)
    return numeric and not all((word.sure and "[" not in word.text) for word in words)


def _plain_sed(words: list[str]) -> bool:
    script_given = False
    for at, word in enumerate(words):
        if word in (
            "-n",
            "-E",
            "-r",
            "-i",
            "--quiet",
            "--regexp-extended",
            "-s",
            "-u",
            "-z",
            "-nE",
            "-En",
            "-ne",
            "-e",
        ):
            continue
        if word.startswith("-"):
            return False
        if not script_given or words[at - 1] in ("-e", "-ne"):
            if not _SED.fullmatch(word):
                return False
            script_given = True
    return script_given


def _writes_elsewhere(command: Command, reading: Reading, places: Places) -> str | None:
    for word in [*written(command), *changed(command)]:
        for base in reading.directories:
            if base is None and not word.text.startswith("/"):
                return "writes in a directory that only running tells"
            if not places.inside(places.absolute(word.text, base)):
                return f"writes outside the session's directory: {word.text[:80]}"
            if places.obeyed(places.absolute(word.text, base)):
                return f"writes a file that is obeyed: {word.text[:80]}"
    return None


def _redirection(text: str, sure: bool, reading: Reading, rules: Rules, places: Places) -> Verdict:
    if text in ("/dev/null", "/dev/stdout", "/dev/stderr"):
        return Verdict("allow", "nothing is kept")
    if not sure:
        return Verdict("ask", "writes where only running tells")
    verdict = Verdict("ask", "no rule")
    for base in reading.directories:
        if base is None and not text.startswith("/"):
            return Verdict("ask", "writes in a directory that only running tells")
        path = places.absolute(text, base)
        if not Places(os.path.realpath(places.cwd), places.home).inside(os.path.realpath(path)):
            return Verdict("ask", f"writes outside the session's directory: {text[:80]}")
        verdict = judge_path(path, "edit", rules, cwd=places.cwd, home=places.home)
        if verdict.decision != "allow":
            return verdict
    return verdict
