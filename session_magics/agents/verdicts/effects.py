"""What a simple command would write, remove or push, as far as its arguments tell."""

from __future__ import annotations

import re
from collections.abc import Sequence

from session_magics.agents.verdicts.shelldata import DATA, is_long
from session_magics.agents.verdicts.shelltext import Command
from session_magics.agents.verdicts.shellvalues import UNKNOWN, Word

_WRITING = (">", ">>", ">|", "&>", "&>>", "<>")
# Programs whose file arguments, all of them, are written.
_ALL_WRITTEN = {
    "tee",
    "touch",
    "truncate",
    "shred",
    "mkdir",
    "rmdir",
    "unlink",
    "ed",
    "ex",
    "vi",
    "vim",
    "nano",
    "nvim",
    "sponge",
}
# Programs whose last argument is written, or the directory of -t.
_LAST_WRITTEN = {"cp", "mv", "ln", "install", "rsync", "scp", "link"}
_CHANGING = {"rm", "rmdir", "unlink", "shred", "chmod", "chown", "chgrp", "setfacl"}
_OUTPUT_OPTIONS = {
    "curl": (
        "ocD",
        (
            "--output",
            "--cookie-jar",
            "--dump-header",
            "--trace",
            "--trace-ascii",
            "--output-dir",
            "--libcurl",
            "--stderr",
            "--etag-save",
            "--hsts",
            "--alt-svc",
        ),
    ),
    "wget": ("OPoa", ("--output-document", "--directory-prefix", "--output-file", "--append-output")),
    "time": ("o", ("--output",)),
    "strace": ("o", ("--output",)),
    "sort": ("o", ("--output",)),
    "tar": ("C", ("--directory", "--one-top-level")),
    "unzip": ("d", ()),
    "gcc": ("o", ()),
    "git": ("o", ("--output", "--output-directory", "--separate-git-dir", "--prefix", "--export-marks")),
}
# Subcommands of git whose operands are, or may be, files or directories that it makes or changes.
_GIT_WRITTEN = {
    "clone",
    "init",
    "worktree",
    "submodule",
    "bundle",
    "mv",
    "svn",
    "merge-file",
    "mailinfo",
    "mailsplit",
    "interpret-trailers",
}


def option(word: Word, letters: str, *long: str) -> bool:
    """Whether a word is one of the long options, or a cluster of short ones with one of ``letters``."""
    text = word.text.replace(UNKNOWN, "")
    if text.startswith("--"):
        return is_long(text, long)
    return text[:1] == "-" and any(letter in text[1:] for letter in letters)


def operands(words: Sequence[Word]) -> list[Word]:
    """The arguments that are no options; after ``--`` all are."""
    found: list[Word] = []
    ended = False
    for word in words:
        if not ended and word.text == "--":
            ended = True
        elif ended or word.text[:1] != "-" or word.text == "-":
            found.append(word)
    return found


def redirected(command: Command) -> list[Word]:
    """The files that the command's redirections write."""
    return [
        part.target
        for part in command.redirections
        if part.operator in _WRITING or (part.operator == ">&" and not re.fullmatch(r"\d+-?|-", part.target.text))
    ]


def written(command: Command) -> list[Word]:
    """The files that the command itself writes."""
    name, words = command.name, command.words[1:]
    if name in _ALL_WRITTEN:
        return operands(words)
    if name in _LAST_WRITTEN:
        targets = _values(words, "t", ("--target-directory",)) if name != "rsync" else []
        # What ln links to can be written through the link, by the next command.
        return targets + (operands(words) if name in ("mv", "ln") else operands(words)[-1:])
    if name == "dd":
        return [Word(word.text[3:], word.sure) for word in words if word.text.startswith("of=")]
    if name in ("sed", "perl", "ruby") and any(
        option(word, "i", "--in-place") for word in words if word.text[:2] != "-e"
    ):
        return operands(words)
    if name == "tar" and words and re.fullmatch(r"-?[A-Za-z]*f", words[0].text) and set(words[0].text) & set("cru"):
        return [*words[1:2], *_values(words, *_OUTPUT_OPTIONS[name])]
    found = _values(words, *_OUTPUT_OPTIONS[name]) if name in _OUTPUT_OPTIONS else []
    if name == "git" and (rest := command.words[git_verb(command.words) :]) and rest[0].text in _GIT_WRITTEN:
        found += operands(rest[1:])
    return found


def changed(command: Command) -> list[Word]:
    """The files that the command removes, or whose rights it changes."""
    return operands(command.words[1:]) if command.name in _CHANGING else []


def _values(words: Sequence[Word], letters: str, long: Sequence[str]) -> list[Word]:
    """The values of the options, joined or not."""
    found: list[Word] = []
    for at, word in enumerate(words):
        text = word.text
        if is_long(text, long):
            found += [Word(text.partition("=")[2], word.sure)] if "=" in text else words[at + 1 : at + 2]
        elif match := re.match(rf"-[A-Za-z]*?[{letters}](.*)", text, re.S):
            found += [Word(match[1].removeprefix("="), word.sure)] if match[1] else words[at + 1 : at + 2]
    return found


def recursive(command: Command) -> list[Word]:
    """The trees that the command would remove or change whole."""
    name, words = command.name, command.words[1:]
    if name in ("rm", "srm"):
        return operands(words) if any(option(word, "rR", "--recursive") for word in words) else []
    if name in ("rimraf", "trash", "trash-put"):
        return operands(words)
    if name in ("chmod", "chown", "chgrp", "setfacl"):
        return operands(words) if any(option(word, "R", "--recursive") for word in words) else []
    if name == "mv":
        return operands(words)[:-1]
    if name == "rsync" and any(word.text.startswith("--del") for word in words):
        return operands(words)[-1:]
    if name == "shred":
        return operands(words)
    return []


def git_verb(words: Sequence[Word]) -> int:
    """Where the subcommand of a git command is, its global options passed over."""
    at = 1
    while at < len(words) and words[at].text[:1] == "-":
        at += 2 if words[at].text in DATA["git_value_options"] else 1
    return at


def forced_branches(command: Command) -> list[str] | None:
    """The branches that a git push overwrites or deletes; empty: whichever it finds; None: it does neither."""
    at = git_verb(command.words)
    if command.name != "git" or at >= len(command.words) or command.words[at].text != "push":
        return None
    words = command.words[at + 1 :]
    if any(is_long(word.text, ("--mirror", "--prune")) for word in words):
        return []
    forced = any(option(word, "f", "--force", "--force-with-lease", "--force-if-includes") for word in words)
    deleted = any(option(word, "d", "--delete") for word in words)
    names = [word.text for word in operands(_without_values(words))[1:]]
    found = [name for name in names if forced or deleted or name[:1] in ("+", ":")]
    if found or forced:
        return [re.sub(r"^(refs/)?heads/", "", name.lstrip("+").rpartition(":")[2]) for name in found]
    return None


def _without_values(words: Sequence[Word]) -> list[Word]:
    """The words without the values of push's options that take one apart."""
    kept: list[Word] = []
    skip = False
    for word in words:
        if not skip:
            kept.append(word)
        skip = not skip and word.text in ("-o", "--push-option", "--receive-pack", "--exec", "--repo")
    return kept
