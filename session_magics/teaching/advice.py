"""What a learner is told about each kind of failure: a sentence or two, or nothing where it might be wrong.

Whatever is said about files was looked up; names that are offered exist. Code stands between backticks.
"""

from __future__ import annotations

import os.path
import re
import shlex
from collections.abc import Callable, Mapping

from session_magics.teaching.complaints import Complaint
from session_magics.teaching.failure import Failure
from session_magics.teaching.spelling import nearest

COMMON = frozenset(
    word
    for line in (
        "alias awk bash bg cat cd chmod clear cp curl cut date df diff du echo env exit export fg file find",
        "git grep gzip head help history jobs kill less ln ls make man mkdir more mv nano ping pip printf ps",
        "pwd python python3 read rm rmdir sed seq sh sleep sort ssh sudo tail tar tee test time top touch tr",
        "type uniq unzip vim wc wget which zip",
    )
    for word in line.split()
)
"""Commands that are meant rather than others that are spelled as nearly."""
SCRIPT_ENDS = (".sh", ".bash", ".zsh", ".fish", ".py", ".pl", ".rb")
GLOB = re.compile(r"[*?\[]")
BLOCKS = {"if": "fi", "for": "done", "while": "done", "until": "done", "case": "esac"}
"""The words that begin something, each with the one that ends it."""


def _code(*words: str) -> str:
    return f"`{shlex.join(words)}`"


def _near(names: list[str]) -> str:
    shown = [_code(name) for name in names]
    return shown[0] if len(shown) == 1 else f"{', '.join(shown[:-1])} or {shown[-1]}"


# ---------------------------------------------------------------- programs


def no_command(failure: Failure, it: str, _program: str) -> str | None:
    if it == "$":
        return _PROMPT
    if failure.dialect == "fish" and it in (*BLOCKS.values(), "then", "do"):
        return "In fish, what `if`, `for`, `while` and the like begin is ended by `end`, without `then` and `do`."
    if re.fullmatch(r"cd(\.\.|[/~]).*", it):
        return f"A space is missing after `cd`: {_code('cd', it[2:])}."
    if re.search(rf"(?:^|[\s;&|]){re.escape(it)}\s+=|(?:^|[\s;&|]){re.escape(it)}\s*=\s", failure.command):
        return f"A variable is set without spaces around the equals sign: `{it}=value`."
    if "/" in it:
        return interpreter(failure, it, "") if failure.look(it).kind == "file" else no_file(failure, it, "")
    there = failure.look(it)
    if there.kind == "file" and it in failure.command:
        if there.executable:
            return f"There is a file {_code(it)} here. To run it, say where it is: {_code(f'./{it}')}."
        how = _code(_interpreter(it, there.content), it)
        return f"There is a file {_code(it)} here, which is not executable: {how} runs it."
    if " " in it:
        return f"The quotes make one word of {_code(it)}, and a command's name is the first word alone."
    near = nearest(it, failure.commands, COMMON) if len(it) > 1 else []
    if near:
        return f"There is no command {_code(it)}. Did you mean {_near(near)}?"
    return f"There is no command {_code(it)} that this shell knows." if failure.commands else None


_PROMPT = "In examples the `$` stands for the shell's prompt: leave it out, and type what comes after it."


def bracket(_failure: Failure, _it: str, _program: str) -> str:
    return "`[` is a command of its own, so a space must come after it, and one before `]`: `[ 1 -eq 1 ]`."


def equals(failure: Failure, _it: str, _program: str) -> str | None:
    found = re.search(r"(?:^|[\s;&|])([A-Za-z_]\w*)\s+=", failure.command)
    return f"A variable is set without spaces around the equals sign: `{found[1]}=value`." if found else None


def _interpreter(path: str, content: str) -> str:
    line = content.partition("\n")[0]
    named = re.match(r"#!\s*(?:\S*/env\s+)?(?:\S*/)?([\w.-]+)", line)
    if named:
        return named[1]
    return "python3" if path.endswith(".py") else "bash"


def interpreter(failure: Failure, it: str, _program: str) -> str | None:
    line = failure.look(it).content.partition("\n")[0]
    if line.endswith("\r"):
        return _windows(it)
    program = re.match(r"#!\s*(\S+)", line)
    if program and not failure.look(program[1]).kind:
        return f"The first line of {_code(it)} names {_code(program[1])}, which is not on this machine."
    return None


def _windows(name: str) -> str:
    return (
        f"{_code(name)} has Windows line ends: to the shell, the carriage return is a part of each line."
        f" A copy without them: `tr -d '\\r' <{shlex.quote(name)} >fixed.sh`."
    )


def carriage_return(failure: Failure, _it: str, _program: str) -> str | None:
    scripts = [word for word in failure.words if failure.look(word).content.partition("\n")[0].endswith("\r")]
    return _windows(scripts[0]) if scripts else None


# ---------------------------------------------------------------- files


def no_file(failure: Failure, it: str, program: str) -> str | None:
    if GLOB.search(it):
        return no_match(failure, it, program)
    it = it.removeprefix(failure.cwd + "/")
    if it.startswith("~") and any(sign + it + sign in failure.command for sign in ("'", '"')):
        return f"Inside quotes `~` is no home directory: write `{it}` without quotes."
    gone = failure.missing(it)
    if not gone:
        return None
    if whole := _joined(failure, it):
        return f"A name with spaces needs quotes: {_code(whole)}."
    parent, name = os.path.split(gone)
    near = [os.path.join(parent, one) for one in nearest(name, failure.look(gone).names)]
    if near:
        return f"There is no {_code(gone)}. Did you mean {_near(near)}?"
    if gone.startswith("/") and failure.look(gone[1:]).kind:
        return (
            f"A path that begins with `/` begins at the root of the file system: without it, {_code(it[1:])} is here."
        )
    if gone != it.rstrip("/"):
        parents = " `mkdir -p` makes all directories of a path." if program == "mkdir" else ""
        return f"The directory {_code(gone)} does not exist.{parents}"
    if parent in ("", "."):
        return f"There is no {_code(name)} in the present directory: `ls` shows what is there."
    return f"There is no {_code(name)} in {_code(parent)}: {_code('ls', parent)} shows what is there."


def _joined(failure: Failure, it: str) -> str:
    """A name with spaces that exists and was given as several words, this one among them; "" for none."""
    words = failure.words
    for at in (at for at, word in enumerate(words) if word == it):
        for begin, end in ((at - 1, at + 1), (at, at + 2), (at - 2, at + 1), (at - 1, at + 2), (at, at + 3)):
            whole = " ".join(words[max(begin, 1) : end])
            if " " in whole and whole in failure.command and failure.look(whole).kind:
                return whole
    return ""


def no_match(_failure: Failure, it: str, _program: str) -> str:
    return f"No name here fits the pattern `{it}`."


def denied(failure: Failure, it: str, program: str) -> str | None:
    there = failure.look(it)
    if not program and there.kind == "directory":
        return _is_directory(it)
    if not program and there.kind == "file" and not there.executable:
        if there.content.startswith("#!") or it.endswith(SCRIPT_ENDS):
            return f"{_code(it)} is not executable yet: {_code('chmod', '+x', it)} makes it so."
        return f"{_code(it)} is no program: {_code('cat', it)} shows what is in it."
    if there.kind:
        return (
            f"You may not do that with {_code(it)}: {_code('ls', '-ld', it)} shows who may read, write and execute it."
        )
    return None


def _is_directory(it: str) -> str:
    if not it.strip("./"):
        return f"{_code(it)} is a directory: {_code('ls', it)} shows what is in it."
    return f"{_code(it)} is a directory: {_code('cd', it)} goes into it, {_code('ls', it)} shows what is in it."


def directory(failure: Failure, it: str, program: str) -> str | None:
    if failure.look(it).kind != "directory":
        return None
    if program == "rm":
        return f"{_code(it)} is a directory: `rmdir` removes an empty one, `rm -r` removes one with all that is in it."
    if program == "cp":
        return f"{_code(it)} is a directory: `cp -r` copies one with all that is in it."
    if not program and re.search(rf">\s*['\"]?{re.escape(it)}", failure.command):
        return f"{_code(it)} is a directory, and output can only go to a file: name one inside it."
    return _is_directory(it)


def no_directory(failure: Failure, it: str, program: str) -> str | None:
    kind = failure.look(it.rstrip("/")).kind
    if kind == "file" and program == "cd":
        return f"{_code(it)} is a file, and `cd` goes into directories: {_code('cat', it)} shows what is in it."
    return f"{_code(it.rstrip('/'))} is a file and no directory." if kind == "file" else None


def cannot_cd(failure: Failure, it: str, program: str) -> str | None:
    """dash says the same whether it is missing or a file."""
    return no_directory(failure, it, program) or no_file(failure, it, program)


def exists(failure: Failure, it: str, program: str) -> str | None:
    kind = failure.look(it).kind
    more = " `mkdir -p` does not mind." if program == "mkdir" and kind == "directory" else ""
    return f"There is a {kind} {_code(it)} already.{more}" if kind in ("file", "directory") else None


def not_empty(_failure: Failure, it: str, _program: str) -> str:
    return (
        f"{_code(it)} is not empty, and `rmdir` removes empty directories only: {_code('ls', '-A', it)} shows the rest."
    )


# ---------------------------------------------------------------- the shape of a command


def script(failure: Failure, it: str, _program: str) -> str | None:
    name, _, line = it.replace(": line ", ":").replace(": ", ":").rpartition(":")
    return (
        f"The shell cannot read {_code(name)}: look at line {line} and at what stands before it."
        if name in failure.words
        else None
    )


def quote(failure: Failure, it: str, _program: str) -> str:
    text = failure.command
    sign = it or ("'" if text.count("'") % 2 and not text.count('"') % 2 else '"')
    if sign == "'" and re.search(r"\w'\w", text):
        return 'The apostrophe opens a quotation that nothing closes: put the text into double quotes (`"it\'s"`).'
    return f"A quotation is opened by `{sign}` and never closed: a second `{sign}` is missing."


def unclosed(_failure: Failure, it: str, _program: str) -> str:
    closing = {"$(": ")"}.get(it, it)
    return f"A bracket is never closed: `{closing}` is missing."


def syntax(failure: Failure, it: str, _program: str) -> str | None:
    words = [word for word in failure.words if word.strip()]
    if words and words[-1] in ("|", "||", "&&", "|&"):
        return f"The command ends with `{words[-1]}`: what comes after it is missing."
    if words and words[-1] in (">", ">>", "<"):
        return f"The name of a file is missing after `{words[-1]}`."
    if failure.dialect != "fish":
        if it in BLOCKS.values() and not any(end == it and begin in words for begin, end in BLOCKS.items()):
            return f"`{it}` ends something that was not begun."
        loops = [word for word in words if word in ("for", "while", "until")]
        if len(loops) > words.count("do"):
            return f"After `{loops[0]} …` a `; do` is missing."
        if words.count("if") > words.count("then"):
            return "After the condition of `if` a `; then` is missing."
        for begin, end in BLOCKS.items():
            if begin in words and words.count(end) < sum(words.count(one) for one, by in BLOCKS.items() if by == end):
                return f"`{begin}` is not ended: `{end}` is missing."
    elif any(word in words for word in (*BLOCKS, "switch", "function", "begin")) and not it:
        return "What was begun is not ended: an `end` is missing."
    if it in (")", "}", "]"):
        return f"There is a `{it}` that closes nothing. As plain text it stands in quotes."
    return f"The shell does not expect `{it}` there: look at what stands just before it." if it else None


def cd_words(failure: Failure, _it: str, _program: str) -> str | None:
    words = failure.last[1:] if failure.last[:1] == ("cd",) else ()
    whole = " ".join(words)
    if words and failure.look(whole).kind == "directory":
        return f"A name with spaces needs quotes: {_code('cd', whole)}."
    return "`cd` takes one directory; a name with spaces needs quotes." if len(words) > 1 else None


def test_words(failure: Failure, _it: str, _program: str) -> str | None:
    variable = re.search(r'(?<!["\w])\$\{?(\w+)', failure.command)
    if variable:
        name = f"${variable[1]}"
        return f'`{name}` in `[ … ]` may be empty or of several words: in double quotes, `"{name}"`, it is one.'
    return '`[ … ]` takes a value, an operator and a value, with spaces between them: `[ "$a" = "$b" ]`.'


def test_end(_failure: Failure, _it: str, _program: str) -> str:
    return "`]` must be a word of its own: a space is missing before it."


def test_number(_failure: Failure, it: str, _program: str) -> str:
    return f"`-eq`, `-lt` and the like compare whole numbers, and “{it}” is none: `=` compares texts."


def redirection(_failure: Failure, _it: str, _program: str) -> str:
    return "The name after `>` or `<` is empty or more than one word: put the variable into double quotes."


def too_long(_failure: Failure, _it: str, _program: str) -> str:
    return "Too many names for one command: a loop, `xargs`, or `find … -exec … {} +` take them in portions."


def unset(_failure: Failure, it: str, _program: str) -> str:
    return f"The variable `{it}` has no value, and `set -u` makes that an error."


def option(_failure: Failure, it: str, program: str) -> str:
    flag = it if it.startswith("-") else f"-{it}"
    return f"`{program}` has no option `{flag}`: `{program} --help` or `man {program}` lists those that it has."


def operand(_failure: Failure, it: str, program: str) -> str:
    if it:
        return f"`{program}` needs one name more: where to."
    return f"`{program}` was not told what to work on: the name comes after it."


Advice = Callable[[Failure, str, str], str | None]
ADVICE: Mapping[str, Advice] = {
    "no-command": no_command, "bracket": bracket, "prompt": lambda *_: _PROMPT, "equals": equals,
    "script": script, "interpreter": interpreter, "carriage-return": carriage_return,
    "no-file": no_file, "cannot-cd": cannot_cd, "no-match": no_match, "denied": denied, "directory": directory,
    "no-directory": no_directory, "exists": exists, "not-empty": not_empty,
    "quote": quote, "unclosed": unclosed, "syntax": syntax, "cd-words": cd_words,
    "test-words": test_words, "test-end": test_end, "test-number": test_number,
    "redirection": redirection, "too-long": too_long, "unset": unset, "option": option, "operand": operand,
}  # fmt: skip
"""What is said about each kind of complaint."""


def about(failure: Failure, complaint: Complaint) -> str | None:
    """The advice about one complaint; None where nothing certain can be said."""
    return ADVICE[complaint.kind](failure, complaint.it, complaint.program)
