"""What people write after ``%session``, and what it means; its help, and the names of keys."""

from __future__ import annotations

import re
import shlex
import subprocess
import sys
from argparse import Namespace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from session_magics import RestartLimit
from session_magics.errors import UsageMistake
from session_magics.verbs.parser import KEYS, HelpRequest, key_bytes, parse_cell, parse_verb, parse_words, verbs

FIVE = RestartLimit(5)
VERBS = [verb for verb, _, _ in verbs()]


def call(verb: str, *, json: bool = False, **expected: object) -> Namespace:
    return Namespace(verb=verb, json=json, **expected)


def start(name: str, *argv: str, **given_options: object) -> Namespace:
    values = "on shell cwd size backend max_restarts wait_for wait_port timeout tool parent"
    unset = {**dict.fromkeys(values.split()), "approve_all": False}
    other = {"env": {}, "labels": {}, "lifetime": "detached", "restart": "no"}
    return call("start", **{**unset, **other, "name": name, "argv": argv, **given_options})


def wait(**given_options: object) -> Namespace:
    unset = dict.fromkeys(("pattern", "port", "silence", "timeout"))
    return call("wait", **{**unset, "name": "w", **given_options})


def stop(*names: str, **given_options: object) -> Namespace:
    return call("stop", **{"names": names, "labels": {}, "all": False, "grace": None, "now": False, **given_options})


def approve(name: str | None, **given_options: object) -> Namespace:
    unset = {"allow": (), "deny": (), "minutes": None, "most": None, "off": False}
    return call("approve", **{**unset, "name": name, **given_options})


def clean(**given_options: object) -> Namespace:
    unset = dict.fromkeys(("older", "keep", "total"))
    return call("clean", **{**unset, "labels": {}, "dry_run": False, **given_options})


def send(text: str | None, *keys: str, enter: bool = True) -> Namespace:
    return call("send", name="w", text=text, keys=keys, enter=enter)


# ----------------------------------------------------------------- the line magic


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        ("", call("list", labels={}, engines=False)),
        ("list --json --label a=b --label c=d", call("list", json=True, labels={"a": "b", "c": "d"}, engines=False)),
        ("list --engines", call("list", labels={}, engines=True)),
        (
            "start web python3 -m http.server -b 127.0.0.1",
            start("web", "python3", "-m", "http.server", "-b", "127.0.0.1"),
        ),
        ("start web --cwd /t prog --cwd /u", start("web", "prog", "--cwd", "/u", cwd="/t")),
        ("start --cwd /t web prog -- --help", start("web", "prog", "--", "--help", cwd="/t")),
        ("start web -- --odd -h", start("web", "--odd", "-h")),
        ("start -- web prog -x", start("web", "prog", "-x")),
        ("start web sh -c 'echo \"$HOME\" {x}'", start("web", "sh", "-c", 'echo "$HOME" {x}')),
        ("start web prog ''", start("web", "prog", "")),
        ("start web --shell fish", start("web", shell="fish")),
        ("start web --env A=1 --label k=v p", start("web", "p", env={"A": "1"}, labels={"k": "v"})),
        ("start web --size 40x120 --lifetime kernel p", start("web", "p", size=(40, 120), lifetime="kernel")),
        ("start web --restart on-failure p", start("web", "p", restart="on-failure")),
        ("start a --tool claude", start("a", tool="claude")),
        ("start a --tool claude --approve-all -- -p hi", start("a", "-p", "hi", tool="claude", approve_all=True)),
        ("start b --parent a p", start("b", "p", parent="a")),
        ("tools", call("tools")),
        ("shell a", call("shell", name="a")),
        ("tmux a zoom", call("tmux", name="a", action="zoom")),
        ("approve", approve(None)),
        ("approve a", approve("a")),
        ("approve --off", approve(None, off=True)),
        ("approve a --allow 'git *' --allow ls --minutes 5", approve("a", allow=("git *", "ls"), minutes=5.0)),
        (
            "approve a --allow x --deny y --minutes 1h --most 3",
            approve("a", allow=("x",), deny=("y",), minutes=60.0, most=3),
        ),
        ("start web --backend tmux p", start("web", "p", backend="tmux")),
        ("start web --wait-for '^on \\d+' --timeout 9 p", start("web", "p", wait_for="^on \\d+", timeout=9.0)),
        ("info w", call("info", name="w")),
        ("tail w", call("tail", name="w", lines=20, follow=False)),
        ("tail -n 5 w -f", call("tail", name="w", lines=5, follow=True)),
        ("tail -fn5 w", call("tail", name="w", lines=5, follow=True)),
        ("snapshot w", call("snapshot", name="w", html=False)),
        ("snapshot w --html", call("snapshot", name="w", html=True)),
        ("attachments w", call("attachments", name="w")),
        ("send w hello   world", send("hello world")),
        ("send w 'echo \"a  b\" $x'", send('echo "a  b" $x')),
        ("send w ls -la --no-enter", send("ls -la", enter=False)),
        ("send --no-enter w ls -h --help", send("ls -h --help", enter=False)),
        ("send w git checkout -- file", send("git checkout -- file")),
        ("send w -- --key -x", send("--key -x")),
        ("send w ''", send("")),
        ("send w --key C-c", send(None, "C-c", enter=False)),
        ("send w yes --key Down --key=Enter", send("yes", "Down", "Enter", enter=False)),
        ("interrupt w", call("interrupt", name="w")),
        ("wait w", wait()),
        ("wait w --timeout 0 -- -x", wait(timeout=0.0, pattern="-x")),
        ("wait w 'a b'", wait(pattern="a b")),
        ("wait --port w", wait(port=0)),
        ("wait --port 8000 w --timeout 2m", wait(port=8000, timeout=120.0)),
        ("wait w --port=8000", wait(port=8000)),
        ("wait w --silence 1.5", wait(silence=1.5)),
        ("start web --wait-port prog 8000", start("web", "prog", "8000", wait_port=0)),
        ("start web --wait-port 8000 --timeout 9 p", start("web", "p", wait_port=8000, timeout=9.0)),
        (
            "start web --restart always --max-restarts 5/2m p",
            start("web", "p", restart="always", max_restarts=RestartLimit(5, 120.0)),
        ),
        ("start web --restart always --max-restarts 5 p", start("web", "p", restart="always", max_restarts=FIVE)),
        ("stop a b --grace 2", stop("a", "b", grace=2.0)),
        ("stop --all --now", stop(all=True, now=True)),
        ("stop --label crew=a --label b=c", stop(labels={"crew": "a", "b": "c"})),
        ("restart w@token", call("restart", name="w@token", labels={}, env={})),
        ("restart w --env A=1", call("restart", name="w", labels={}, env={"A": "1"})),
        ("restart --label crew=a", call("restart", name=None, labels={"crew": "a"}, env={})),
        ("remove --force a --keep-log b", call("remove", names=("a", "b"), labels={}, force=True, keep_log=True)),
        ("remove --label a=b", call("remove", names=(), labels={"a": "b"}, force=False, keep_log=False)),
        ("clean", clean()),
        ("clean --older 7d --keep 3 --total 1G", clean(older=604800.0, keep=3, total=10**9)),
        ("clean --older 0 --label a=b --dry-run", clean(older=0.0, labels={"a": "b"}, dry_run=True)),
        ("resize w 40x120", call("resize", name="w", size=(40, 120))),
        ("doctor", call("doctor")),
    ],
)
def test_the_line_of_a_verb_is_read(line: str, expected: Namespace) -> None:
    assert parse_verb(line) == expected


@pytest.mark.parametrize(
    ("line", "word"),
    [
        ("strat x", "did you mean 'start'? verbs are start, list"),
        ("kill x", "did you mean 'stop'"),
        ("help strat", "did you mean 'start'"),
        ("start", "NAME is missing; usage: %session start NAME"),
        ("start web", "PROGRAM is missing"),
        ("start ../x prog", "no session name"),
        ("start web --foo prog", "go after its name"),
        ("start web --restart sometimes p", "'on-failure'"),
        ("start web --timeout 3 p", "--wait-for"),
        ("start web --wait-port --wait-for x p", "--wait-for or --wait-port"),
        ("start web --max-restarts 5 p", "belongs to --restart"),
        ("start web --restart always --max-restarts 0/60s p", "such as 5 or 5/60s"),
        ("start web --restart always --max-restarts 5/ p", "such as 5 or 5/60s"),
        ("start web --restart always --max-restarts 5/0 p", "such as 5 or 5/60s"),
        ("wait w --port 0", "no port"),
        ("wait --port 99999 w", "no port"),
        ("wait --port 8000", "NAME is missing"),
        ("wait w --silence 0", "above 0"),
        ("wait w x --port", "PATTERN and --port are different things to wait for: give one"),
        ("wait w --silence 1 --port 80", "--port and --silence"),
        ("wait w (", "regular expression"),
        ("wait w a b", "'b' is a word too many"),
        ("clean --older 7w", "30s, 10m, 2h, 7d"),
        ("clean --total much", "500k, 2MB or 1MiB"),
        ("clean --keep x", "whole number"),
        ("clean --keep 9999999999", "9 digits"),
        ("approve a --allow x --minutes abc", "'abc' is no number of minutes"),
        ("approve a --allow x --minutes 0", "0 leaves no time: give a number of minutes above 0"),
        ("clean web", "'web' is a word too many"),
        ("stop --label crew", "KEY=VALUE"),
        ("stop a --label crew=a", "not two of them"),
        ("stop --all --label crew=a", "not two of them"),
        ("restart", "NAME or --label is missing"),
        ("restart a --label crew=a", "not both"),
        ("remove a --label crew=a", "not both"),
        ("start web --shell bash p", "takes no PROGRAM"),
        ("start web --wait-for ( p", "regular expression"),
        ("start web --cwd -- p", "--cwd: expected one argument"),
        ("list x", "'x' is a word too many; usage: %session list"),
        ("info", "NAME is missing"),
        ("info a b", "'b' is a word too many"),
        ("tail w -n x", "whole number"),
        ("tail w -n", "expected one argument"),
        ("send w", "TEXT or --key is missing"),
        ("send w --ky C-c", "did you mean --key? (text with a dash goes after --)"),
        ("send w --key Foo", "known are Enter"),
        ("send w --key Entr", "did you mean Enter?"),
        ("stop", "NAME, --label or --all is missing"),
        ("stop --all x", "not two of them"),
        ("stop x --now --grace 3", "--now or --grace"),
        ("remove", "NAME or --label is missing"),
        ("resize w", "missing"),
        ("resize w 40", "ROWSxCOLUMNS"),
        ("resize w 0x0", "rows 1 to 1000"),
        ("doctor x", "too many"),
        ("send w 'a", "close the quote"),
    ],
)
def test_a_wrong_verb_is_told_in_one_line(line: str, word: str) -> None:
    with pytest.raises(UsageMistake, match=re.escape(word)) as caught:
        parse_verb(line)
    assert "\n" not in str(caught.value)


@given(st.lists(st.text(max_size=8), max_size=4), st.lists(st.text(max_size=8), min_size=1, max_size=6))
def test_the_words_of_a_program_stay_untouched(head: list[str], argv: list[str]) -> None:
    words = [*head, *argv]
    assert parse_words(["start", "web", "--cwd", "/t", "--", *words]).argv == tuple(words)
    assert parse_words(["start", "web", "prog", *words]).argv == ("prog", *words)


TRICKY = [
    "--help", "-h", "--", "-", "-n", "-f", "-fn3", "--key", "C-c", "--all", "--env", "A=1", "--size", "1x1",
    "--port", "--port=1", "--wait-port", "--label", "a=b", "7d", "--json=1", "--set", "a", "--timeout", "1", "--bg",
]  # fmt: skip
WORDS = st.one_of(
    st.sampled_from(TRICKY),
    st.text(max_size=6),
)


@given(st.one_of(st.sampled_from(["", "help", *VERBS]), WORDS), st.lists(WORDS, max_size=6))
def test_any_words_give_a_call_a_one_line_mistake_or_help(verb: str, words: list[str]) -> None:
    for parse in (lambda: parse_words([verb, *words]), lambda: parse_cell(shlex.join(words))):
        try:
            parse()
        except UsageMistake as mistake:
            assert len(str(mistake).splitlines()) == 1
        except HelpRequest as request:
            assert request.text.startswith("usage: ")


# --------------------------------------------------------------------------- help


@pytest.mark.parametrize("verb", VERBS)
def test_help_of_a_verb_is_a_text_and_names_all_its_options(verb: str) -> None:
    texts = []
    for line in (f"help {verb}", f"{verb} --help", f"{verb} -h"):
        with pytest.raises(HelpRequest) as caught:
            parse_verb(line)
        texts.append(caught.value.text)
    assert len(set(texts)) == 1
    usage, options = texts[0].split("options:")
    missing = [name for name in re.findall(r"--[a-z-]+", options) if name not in usage and name not in LONG_FORMS]
    assert missing == []


LONG_FORMS = ("--help", "--last", "--lines", "--follow", "--json")
"""Long forms whose short ones are in the usage, and what every verb takes."""


@pytest.mark.parametrize("line", ["help", "--help", "-h"])
def test_help_lists_every_verb(line: str) -> None:
    with pytest.raises(HelpRequest) as caught:
        parse_verb(line, program="session-magics")
    assert all(f"  {verb} " in caught.value.text for verb in VERBS)
    assert caught.value.text.startswith("usage: session-magics VERB")


def test_the_help_has_no_colour_codes_and_does_not_depend_on_the_terminal(monkeypatch: pytest.MonkeyPatch) -> None:
    texts = []
    for columns in ("40", "200"):
        monkeypatch.setenv("COLUMNS", columns)
        monkeypatch.setenv("FORCE_COLOR", "1")
        with pytest.raises(HelpRequest) as caught:
            parse_verb("help start")
        texts.append(caught.value.text)
    assert texts[0] == texts[1] and "\x1b" not in texts[0]


def test_verbs_are_a_table_for_the_readme() -> None:
    assert all(usage.split()[0] == verb and "\n" not in usage + told and told for verb, usage, told in verbs())


def test_the_parser_needs_no_ipython() -> None:
    code = "import sys, session_magics.verbs.parser; print('IPython' in sys.modules, 'traitlets' in sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.split() == ["False", "False"]


# --------------------------------------------------------------------------- keys


@pytest.mark.parametrize(
    ("name", "data"),
    [
        ("Enter", b"\r"), ("enter", b"\r"), ("Up", b"\x1b[A"), ("F1", b"\x1bOP"), ("F12", b"\x1b[24~"),
        ("C-a", b"\x01"), ("C-C", b"\x03"), ("C-z", b"\x1a"), ("C-[", b"\x1b"), ("C-\\", b"\x1c"), ("C-]", b"\x1d"),
        ("C-@", b"\0"), ("C-Space", b"\0"), ("M-x", b"\x1bx"), ("M-X", b"\x1bX"), ("M-é", "\x1bé".encode()),
        ("M-Enter", b"\x1b\r"), ("M-C-c", b"\x1b\x03"), ("S-Tab", b"\x1b[Z"), ("Backspace", b"\x7f"),
    ],
)  # fmt: skip
def test_keys_send_what_a_terminal_sends(name: str, data: bytes) -> None:
    assert key_bytes(name) == data


@pytest.mark.parametrize("name", ["", "M-", "C-", "C-é", "F13", "x", "M-\n", "Entre"])
def test_an_unknown_key_lists_the_known(name: str) -> None:
    with pytest.raises(UsageMistake, match="known are Enter") as caught:
        key_bytes(name)
    assert "\n" not in str(caught.value)


def test_each_key_is_known_by_any_case() -> None:
    assert all(key_bytes(name) == key_bytes(name.upper()) == data for name, data in KEYS.items())
