"""The corpus of completion: text with the cursor as ``‸``, and what is offered there.

``only``: exactly these; empty: nothing. ``among``: at least these. What is replaced, together with an item, must be
what stands in the text then: ``becomes`` checks the whole text after the first item was taken.
"""

from __future__ import annotations

import shutil
from collections.abc import Callable, Iterable
from dataclasses import dataclass

from session_magics.completion import Completions


@dataclass(frozen=True)
class Row:
    text: str
    only: tuple[str, ...] | None = None
    among: tuple[str, ...] = ()
    becomes: str = ""


FILES = (
    "my file.txt",
    "my dir/in side",
    "plain.txt",
    "größe.md",
    "it's",
    "a$b",
    "#hash",
    "tab.tar",
    "big.tar.gz",
    "run.sh",
)
"""Files of the directory that rows are completed in; ``run.sh`` may be executed."""

NAMES = "corpus_var=1; CORPUS_DIR=$PWD"

# Every shell of the Bourne family.
COMMON = (
    # files and quoting
    Row("cat pl‸", ("plain.txt",), becomes="cat plain.txt"),
    Row("cat my‸", ("my\\ dir/", "my\\ file.txt")),
    Row("cat my\\ f‸", ("my\\ file.txt",), becomes="cat my\\ file.txt"),
    Row("cat 'my f‸", ("'my file.txt",), becomes="cat 'my file.txt"),
    Row('cat "my f‸', ('"my file.txt',), becomes='cat "my file.txt'),
    Row("cat my\\ dir/‸", ("in\\ side",), becomes="cat my\\ dir/in\\ side"),
    Row("cat 'my dir/i‸", ("in side",), becomes="cat 'my dir/in side"),
    Row("cat grö‸", ("größe.md",), becomes="cat größe.md"),
    Row("cat it‸", ("it\\'s",), becomes="cat it\\'s"),
    Row("cat 'it‸", ("'it'\\''s",)),
    Row('cat "it‸', ("\"it's",)),
    Row("cat a‸", ("a\\$b",)),
    Row('cat "a‸', ('"a\\$b',)),
    Row("cat \\#‸", ("\\#hash",)),
    Row("cat pl‸ more", ("plain.txt",), becomes="cat plain.txt more"),
    Row("cat none-such‸", ()),
    Row("cat .gi‸", (".git/",), becomes="cat .git/"),
    Row("cat /et‸", ("etc/",), becomes="cat /etc/"),
    Row("cat ./pl‸", ("plain.txt",), becomes="cat ./plain.txt"),
    Row("cd m‸", ("my\\ dir/",)),
    Row("cat ~/cor‸", ("corpus-home.txt",), becomes="cat ~/corpus-home.txt"),
    Row("cat ~ro‸", among=("~root/",)),
    Row('cat "$CORPUS_DIR/pl‸', ("plain.txt",), becomes='cat "$CORPUS_DIR/plain.txt'),
    Row("cat $CORPUS_DIR/my\\ d‸", ("my\\ dir/",), becomes="cat $CORPUS_DIR/my\\ dir/"),
    Row("cat ${CORPUS_DIR}/pl‸", ("plain.txt",)),
    Row("cat $(pwd)/pl‸", ()),
    # redirections and assignments
    Row("cat <pl‸", ("plain.txt",), becomes="cat <plain.txt"),
    Row("true >pl‸", ("plain.txt",)),
    Row("true 2>>pl‸", ("plain.txt",)),
    Row("true &> pl‸", ("plain.txt",)),
    Row("file=pl‸", ("plain.txt",), becomes="file=plain.txt"),
    Row("places=/usr:/et‸", ("etc/",), becomes="places=/usr:/etc/"),
    Row("home=~/cor‸", ("corpus-home.txt",)),
    # variables
    Row("echo $corpus_v‸", ("corpus_var",), becomes="echo $corpus_var"),
    Row("echo ${corpus_v‸", ("corpus_var",), becomes="echo ${corpus_var"),
    Row('echo "a $corpus_v‸', ("corpus_var",)),
    Row("echo ${#corpus_v‸", ("corpus_var",)),
    Row("echo $((corpus_v‸", ("corpus_var",)),
    Row("echo '$corpus_v‸", ()),
    # where commands stand
    Row("corpus_al‸", ("corpus_alias",)),
    Row("whil‸", ("while",)),
    Row("unali‸", ("unalias",)),
    Row("mkfif‸", ("mkfifo",)),
    Row("true | mkfif‸", ("mkfifo",)),
    Row("true && mkfif‸", ("mkfifo",)),
    Row("true; mkfif‸", ("mkfifo",)),
    Row("if mkfif‸", ("mkfifo",)),
    Row("A=1 mkfif‸", ("mkfifo",)),
    Row("echo $(mkfif‸", ("mkfifo",)),
    Row("echo `mkfif‸", ("mkfifo",)),
    Row('echo "x $(cat pl‸', ("plain.txt",)),
    Row("( mkfif‸", ("mkfifo",)),
    Row("sudo mkfif‸", ("mkfifo",)),
    Row("./ru‸", ("run.sh",), becomes="./run.sh"),
    Row("./pl‸", ()),
    # cells of several lines
    Row("for f in a b; do\n  cat pl‸\ndone", ("plain.txt",), becomes="for f in a b; do\n  cat plain.txt\ndone"),
    Row("cat <<END\n$HOM pl‸", ()),
    Row("cat <<END\ntext\nEND\ncat pl‸", ("plain.txt",)),
    Row("true \\\n  pl‸", ("plain.txt",)),
    Row("# a comment pl‸", ()),
    Row("true # pl‸", ()),
    Row("echo a#pl‸", ()),
    Row("é=ü; cat pl‸", ("plain.txt",), becomes="é=ü; cat plain.txt"),
    # a command's own
    Row("git che‸", among=("checkout", "cherry", "cherry-pick")),
    Row("git checkout corpus-br‸", ("corpus-branch",)),
    Row("git log --pretty=one‸", ("oneline",), becomes="git log --pretty=oneline"),
    Row("true | git che‸", among=("checkout",)),
)

BASH = (
    Row("corpus_fun‸", ("corpus_function",)),
    Row("corpus_words ‸", ("apple", "banana")),
    Row("corpus_words b‸", ("banana",)),
    Row("corpus_given x‸", ("x:corpus_given:2:corpus_given x",)),
    Row("corpus_given 'x y‸", among=()),
    Row("corpus_slow pl‸", ("plain.txt",)),
    Row("corpus_asks ‸", ("asked",)),
    Row("corpus_alias che‸", among=("checkout", "cherry-pick")),
    Row("tar xf ‸", among=("tab.tar", "big.tar.gz")),
    Row("cat $'my f‸", ("$'my file.txt",)),
    Row("arr=(pl‸", ("plain.txt",)),
    Row("cat <(cat pl‸", ("plain.txt",)),
    Row("[[ -f pl‸", ("plain.txt",)),
)
BASH_NAMES = """
corpus_function() { :; }
complete -W 'apple banana' corpus_words
_corpus_given() { COMPREPLY=("x:$1:${#COMP_WORDS[@]}:$COMP_LINE"); }; complete -F _corpus_given corpus_given
_corpus_slow() { sleep 100; }; complete -F _corpus_slow corpus_slow
_corpus_asks() { read answer; COMPREPLY=(asked$answer); }; complete -F _corpus_asks corpus_asks
"""

FISH = (
    Row("cat pl‸", ("plain.txt",), becomes="cat plain.txt"),
    Row("cat my‸", ("my\\ dir/", "my\\ file.txt")),
    Row("cat 'my f‸", ("'my file.txt",)),
    Row("cat my\\ dir/‸", ("in\\ side",), becomes="cat my\\ dir/in\\ side"),
    Row("cat ~/cor‸", ("corpus-home.txt",)),
    Row("echo $corpus_v‸", ("corpus_var",)),
    Row("corpus_fun‸", ("corpus_function",)),
    Row("corpus_words ‸", ("apple", "banana")),
    Row("true; mkfif‸", ("mkfifo",)),
    Row("echo (mkfif‸", ("mkfifo",)),
    Row("# pl‸", ()),
)
FISH_NAMES = (
    "set corpus_var 1; set CORPUS_DIR $PWD; function corpus_function; end; complete -c corpus_words -xa 'apple banana'"
)

# While another command runs: what was seen before, and files of where that command is.
BUSY = (
    Row("cat in‸", ("in\\ side",)),
    Row("echo $corpus_v‸", ("corpus_var",)),
    Row("corpus_fun‸", ("corpus_function",)),
    Row("corpus_al‸", ("corpus_alias",)),
    Row("mkfif‸", ("mkfifo",)),
    Row("git che‸", among=("checkout",)),
)

# Whole cells of a notebook.
CELLS = (
    Row("%session st‸", ("start", "stop")),
    Row("x = %session ta‸", ("tail",)),
    Row("%session tail --li‸", ("--lines",)),
    Row("%session start web mkfif‸", ("mkfifo",)),
    Row("%session start web cat /et‸", ("etc/",)),
    Row("%session start --restart on‸", ("on-failure",)),
    Row("%session tail corpus-se‸", ("corpus-session",)),
    Row("%%sh_session --timeo‸", ("--timeout",)),
    Row("%%sh_session --shell z‸", ("zsh",)),
    Row("%%sh_session corpus-sh‸", ("corpus-shell",)),
    Row("%%sh_session corpus-shell\necho $corpus_in‸", ("corpus_inside",)),
    Row("%%sh_session none-yet --shell bash\nmkfif‸", ("mkfifo",)),
    Row("%%sh_session corpus-shell\n# pl‸", ()),
)


def after(row: Row, found: Completions) -> str:
    """The text of the row once the first item was taken."""
    text = row.text.replace("‸", "")
    return text[: found.start] + found.items[0].text + text[found.end :] if found.items else text


def wrong(rows: Iterable[Row], complete: Callable[[str, int], Completions | None]) -> list[str]:
    """Complete and print every row; those that did not give what they should."""
    failed = []
    for row in rows:
        if "git" in row.text and not shutil.which("git"):
            continue
        found = complete(row.text.replace("‸", ""), row.text.index("‸"))
        assert found is not None, row
        items = [one.text for one in found.items]
        good = set(row.among) <= set(items) if row.only is None else sorted(items) == sorted(row.only)
        good = good and (not row.becomes or after(row, found) == row.becomes)
        line = f"{'ok  ' if good else 'FAIL'} {row.text!r:50} {found.start}:{found.end} {items[:5]}"
        print(line)  # noqa: T201
        failed += [] if good else [line]
    return failed
