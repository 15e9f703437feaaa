"""The hard floor: what is never approved, whatever the rules say."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Callable, Iterable, Sequence
from fnmatch import fnmatchcase

from session_magics.agents.verdicts.effects import forced_branches, operands, option, recursive, redirected, written
from session_magics.agents.verdicts.places import Places
from session_magics.agents.verdicts.shelldata import DATA
from session_magics.agents.verdicts.shelltext import Command, Reading
from session_magics.agents.verdicts.shellvalues import UNKNOWN, Word


def floor(reading: Reading, places: Places) -> str | None:
    """The name of the first rule of the floor that the text breaks; what was read of a broken text counts too."""
    for name, body in reading.functions:
        calls = [reading.commands[at].words[:1] for at in body]
        if sum(bool(words) and words[0].text == name for words in calls) > 1:
            return "floor:fork-bomb"
    bases = [base for base in dict.fromkeys(reading.directories) if base is not None]
    for command in reading.commands:
        if found := _alone(command, places, bases):
            return f"floor:{found}"
    together = _Flow(reading, places).broken()
    return f"floor:{together}" if together else None


def _alone(command: Command, places: Places, bases: Sequence[str]) -> str | None:
    """What a command does by itself."""
    paths = [places.absolute(word.text, base) for word in _guessed(recursive(command)) for base in bases]
    kept = command.name in ("chmod", "chown", "chgrp", "setfacl")
    if any(places.precious(path, itself=not kept) for path in paths):
        return f"{command.name}-recursive"
    for word in [*redirected(command), *written(command)]:
        for path in {places.absolute(word.text, base) for base in bases}:
            if name := _write(path, places):
                return name
    known = _PROGRAMS.get(command.name) or _PROGRAMS.get(command.name.rstrip("0123456789."))
    return known(command) if known else _program(command)


def _guessed(words: Iterable[Word]) -> Iterable[Word]:
    """The words; one with an unknown part counts as the root where an empty part makes it that."""
    for word in words:
        guess = word.text.replace(UNKNOWN, "")
        yield Word(guess) if guess in ("/", "/*", "/.", "/.*") else word


def _write(path: str, places: Places) -> str | None:
    if places.device(path):
        return "device"
    if places.credential(path) or places.startup(path):
        return "startup-or-credential-file"
    if places.system(path) and path != "/usr":
        return "system-file"
    return None


def _program(command: Command) -> str | None:
    if any(fnmatchcase(command.name, pattern) for pattern in DATA["disk_programs"]):
        return "disk"
    if command.name in DATA["power_programs"]:
        return "power"
    return None


def _kill(command: Command) -> str | None:
    words = [word.text for word in command.words[1:]]
    if words and words[0] in ("-s", "-n", "--signal"):
        words = words[2:]
    elif len(words) > 1 and words[0][:1] == "-" and words[0] != "--":
        words = words[1:]
    return "kill-everything" if "-1" in words else None


def _init(command: Command) -> str | None:
    return "power" if any(word.text in ("0", "6") for word in command.words[1:]) else None


def _power_verb(command: Command) -> str | None:
    return "power" if any(word.text.partition(".")[0] in DATA["power_verbs"] for word in command.words[1:]) else None


def _by_name(command: Command) -> str | None:
    return "kill-by-name"


def _tmux(command: Command) -> str | None:
    return "tmux-kill-server" if any(word.text.startswith("kill-ser") for word in command.words[1:]) else None


def _crontab(command: Command) -> str | None:
    return "crontab-remove" if any(option(word, "r") for word in command.words[1:]) else None


def _git(command: Command) -> str | None:
    branches = forced_branches(command)
    if branches is None:
        return None
    wide = any("*" in name or name in ("", "@") for name in branches)  # without a name: all that both sides have
    known = wide or any(fnmatchcase(name, kind) for name in branches for kind in DATA["protected_branches"])
    return "git-push-force" if known or not branches else None


def _sessions(command: Command) -> str | None:
    """An agent that could do this would approve its own questions, or answer them."""
    return "answers-itself" if any(word.text in ("approve", "attach", "send") for word in command.words[1:]) else None


def _python(command: Command) -> str | None:
    return _sessions(command) if any("session_magics" in word.text for word in command.words) else None


def _diskutil(command: Command) -> str | None:
    verbs = [word.text.lower() for word in operands(command.words[1:])[:1]]
    return (
        "disk"
        if any(verb.startswith(("erase", "partition", "zero", "secure", "luksformat")) for verb in verbs)
        else None
    )


_PROGRAMS: dict[str, Callable[[Command], str | None]] = {
    "kill": _kill,
    "init": _init,
    "telinit": _init,
    "systemctl": _power_verb,
    "loginctl": _power_verb,
    "pkill": _by_name,
    "killall": _by_name,
    "killall5": _by_name,
    "skill": _by_name,
    "tmux": _tmux,
    "crontab": _crontab,
    "git": _git,
    "diskutil": _diskutil,
    "cryptsetup": _diskutil,
    "session-magics": _sessions,
    "python": _python,
    "pypy": _python,
}


class _Flow:
    """What commands do together: where the output of one is the program, the argument or the input of another."""

    def __init__(self, reading: Reading, places: Places) -> None:
        self._commands, self._places = reading.commands, places
        loading = {*DATA["downloaders"]}
        for name, body in reading.functions:
            loading |= {name} if any(self._commands[at].name in loading for at in body) else set()
        self._loads = [at for at, command in enumerate(self._commands) if command.name in loading]
        tainted = {at for at, command in enumerate(self._commands) if _among(command.fed, self._loads)}
        self._loads = sorted(tainted.union(self._loads))
        self._listening = [at for at, command in enumerate(self._commands) if command.holds.listening]
        self._runners = {name for name, body in reading.functions if _among(body, self._listening)}
        self._finders = [at for at, command in enumerate(self._commands) if command.name in ("pgrep", "pidof")]
        secrets = [self._names(command, places.secret) for command in self._commands]
        self._secrets = [at for at, found in enumerate(secrets) if found or _prints_variables(self._commands[at])]
        self._keys = any(
            found and self._names(self._commands[at], places.credential) for at, found in enumerate(secrets)
        )
        self._files: set[str] = set()

    def broken(self) -> str | None:
        selves = 0
        for command in self._commands:
            selves = selves + 1 if command.words[:1] and command.words[0].text == "$0" else 0
            if selves > 1:
                return "fork-bomb"
            if self._runs_download(command):
                return "run-download"
            if self._sends_secret(command):
                return "secret-to-network"
            if command.name == "kill" and (self._holds(command, self._finders) or _among(command.fed, self._finders)):
                return "kill-by-name"
        return None

    def _holds(self, command: Command, wanted: Sequence[int]) -> bool:
        """Whether output of one of the wanted commands is in a word, assignment or redirection of this one."""
        if not wanted:
            return False
        words = [*command.words, *(part.target for part in command.redirections)]
        return any(_among(span, wanted) for word in words for span in word.inside)

    def _runs_download(self, command: Command) -> bool:
        name = command.name
        if command.holds.listening and _to_network(command):
            return True
        if name in ("nc", "ncat", "netcat") and any(
            option(word, "ec", "--exec", "--sh-exec") for word in command.words
        ):
            return True
        if not self._loads:
            return False
        runner = _runner(name)
        fed = _among(command.fed, self._loads)
        first = command.words[:1] and any(_among(span, self._loads) for span in command.words[0].inside)
        if first or (runner and self._holds(command, self._loads)):
            return True
        if fed and (command.holds.listening or name in ("eval", "source", ".") or name in self._runners):
            return True
        if (
            fed
            and name in ("xargs", "parallel")
            and any(_runner(words[0].text.rpartition("/")[2]) for words in command.holds.commands)
        ):
            return True
        if (fed or name in DATA["downloaders"]) and self._holds(command, self._listening):
            return True
        if runner or "/" in command.text[:256]:
            words = command.words if runner else command.words[:1]
            if any(self._places.absolute(word.text) in self._files for word in words):
                return True
        self._remember(command, fed)
        return False

    def _remember(self, command: Command, fed: bool) -> None:
        """Keeps the names of the files that hold a download."""
        if not fed and command.name not in DATA["downloaders"]:
            return
        found = [word.text for word in [*redirected(command), *written(command)]]
        if command.name in ("curl", "wget"):
            found += [word.text.partition("?")[0].rpartition("/")[2] for word in operands(command.words[1:])]
        self._files.update(self._places.absolute(text) for text in found if text)

    def _sends_secret(self, command: Command) -> bool:
        if not self._secrets or not _sends(command):
            return False
        own = command.name != "ssh" and self._names(command, self._places.secret)
        reads = any(
            self._places.secret(path)
            for part in command.redirections
            if part.operator == "<"
            for path in self._places.named(part.target.text)
        )
        if own or reads or _among(command.fed, self._secrets) or self._holds(command, self._secrets):
            return True
        return self._keys and command.name != "ssh"

    def _names(self, command: Command, kind: Callable[[str], bool]) -> bool:
        """Whether the command names such a file, as more than the key that it logs in with."""
        words = list(command.words[1:])
        if command.name in ("ssh", "scp", "sftp", "rsync", "ssh-add", "ssh-keygen"):
            words = [
                word
                for before, word in zip(command.words, words, strict=False)
                if before.text not in ("-i", "-F", "-o", "-e")
            ]
            words = [word for word in words if not word.text.startswith(("-i", "-F", "-o", "-e", "IdentityFile"))]
        words += [part.target for part in command.redirections if part.operator in ("<", "<>")]
        words += [value for _, value in command.assignments]
        return any(kind(path) for word in words for path in self._places.named(word.text) if path != self._places.cwd)


def _runner(name: str) -> bool:
    bare = name.rstrip("0123456789.") or name
    return name in DATA["shells"] or bare in DATA["interpreters"] or name in ("eval", "source", ".")


def _prints_variables(command: Command) -> bool:
    """Whether the command prints the environment, where programs are given their keys."""
    return command.name in ("env", "printenv") and not command.holds.commands


def _to_network(command: Command) -> bool:
    return any(part.target.text.startswith(("/dev/tcp/", "/dev/udp/")) for part in command.redirections)


def _sends(command: Command) -> bool:
    if _to_network(command):
        return True
    if command.name in ("scp", "rsync"):
        return any(":" in word.text for word in operands(command.words[1:]))
    if command.name == "openssl":
        return any(word.text == "s_client" for word in command.words[1:2])
    return command.name in DATA["senders"]


def _among(span: range, wanted: Sequence[int]) -> bool:
    """Whether one of the wanted indexes, in order, is in the span."""
    at = bisect_left(wanted, span.start)
    return at < len(wanted) and wanted[at] < span.stop
