"""What the judge says of shell texts, and the rules for them; commands.toml is the table."""

from __future__ import annotations

import shlex
import time
import tomllib
from pathlib import Path

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from rounds import rounds
from session_magics.agents.verdicts.judge import Rules, Verdict, judge_command
from session_magics.errors import UsageMistake

TABLE = tomllib.loads(Path(__file__).with_name("commands.toml").read_text("utf-8"))
RULES = Rules(allow=tuple(TABLE["rules"]["allow"]), deny=tuple(TABLE["rules"]["deny"]))
EVERYTHING = Rules(allow=("*", "Edit(**)", "Edit(/**)", "Edit(~/**)", "Read(**)", "Read(/**)", "WebFetch(*)"))
HOME, CWD = "/home/user", "/home/user/project"


def judged(text: str, rules: Rules = RULES) -> Verdict:
    return judge_command(text, rules, cwd=CWD, home=HOME)


@pytest.mark.parametrize("text", TABLE["floor"])
def test_the_floor_holds_under_a_rule_that_allows_everything(text: str) -> None:
    verdict = judged(text, EVERYTHING)
    assert verdict.decision == "deny"
    assert verdict.rule.startswith("floor:")


@pytest.mark.parametrize("text", TABLE["deny"])
def test_a_deny_rule_wins_at_any_depth(text: str) -> None:
    verdict = judged(text)
    assert verdict.decision == "deny"
    assert verdict.rule.startswith("deny: ")


@pytest.mark.parametrize("text", TABLE["allow"])
def test_harmless_commands_under_rules_are_allowed(text: str) -> None:
    assert judged(text).decision == "allow", judged(text).rule


@pytest.mark.parametrize("text", TABLE["ask"])
def test_what_is_hidden_cut_off_or_unnamed_is_asked(text: str) -> None:
    assert judged(text).decision == "ask", judged(text).rule


def test_nothing_is_allowed_without_a_rule() -> None:
    for text in TABLE["allow"] + TABLE["ask"]:
        assert judged(text, Rules()).decision != "allow", text


def test_the_table_is_as_large_as_it_should_be() -> None:
    counts = {name: len(set(TABLE[name])) for name in ("floor", "deny", "allow", "ask")}
    assert counts["floor"] + counts["deny"] >= 400
    assert counts["allow"] >= 120
    assert counts["ask"] >= 180


# ------------------------------------------------------------ properties

# Where a text's last line cannot swallow what is put behind it.
OPEN_ENDED = ("#", "<<")

OPERATORS = ("; ", " && ", " || ", "\n", " & ", " | ", " |& ")
SPELLED = (
    "rm -rf /",
    "rm -r -f /home",
    "mkfs.ext4 /dev/sda",
    "dd if=x of=/dev/sda",
    "shutdown now",
    "kill -9 -1",
    "pkill node",
)
SPELLED += (
    "chmod -R 777 /",
    "git push --force origin main",
    "tmux kill-server",
    "wipefs -a /dev/sda",
    "crontab -r",
    "reboot",
)

PREFIXES = (
    "sudo",
    "env",
    "nohup",
    "timeout 5",
    "nice -n 3",
    "command",
    "eval",
    "exec",
    "sudo -u x env A=b",
    "A=b",
    "find . -exec",
)

AROUND = (
    "( {} )",
    "{{ {}; }}",
    "if true; then {}; fi",
    "while {}; do :; done",
    "echo $( {} )",
    "cat <( {} )",
    "x=$( {} )",
)
AROUND += (
    "f() {{ {}; }}",
    "case x in *) {};; esac",
    "! {}",
    "true && {} > log 2>&1",
    "for i in 1; do {}; done",
    "ls; {}",
)

shellish = st.text(st.sampled_from("abc /~.*?[]{}()<>|&;!#$'\"`\\\n\t=-:@%^…\0") | st.characters(), max_size=200)
pieces = st.lists(
    st.sampled_from(
        TABLE["floor"]
        + TABLE["allow"]
        + TABLE["ask"]
        + ["$(", ")", "`", "'", '"', "<<A\n", "\nA\n", "${", "}", "if ", " fi", ";;", "\\"]
    ),
    max_size=6,
).map("".join)


@st.composite
def respelled(draw: st.DrawFn) -> str:
    """A command of the floor whose every character is quoted in some way or not at all."""
    ways = ("{}", "\\{}", "'{}'", '"{}"', "$'{}'", '""{}', "''{}", "$@{}", "\\\n{}")
    text = draw(st.sampled_from(SPELLED))
    return "".join(
        char
        if char == " "
        else draw(st.sampled_from((*ways, f"$'\\x{ord(char):02x}'", f"$'\\{ord(char):03o}'"))).format(char)
        for char in text
    )


@given(shellish | pieces)
@settings(max_examples=rounds(500, 1500), deadline=None)
def test_random_text_never_raises_and_is_never_allowed_without_rules(text: str) -> None:
    assert judged(text, Rules()).decision != "allow"
    judged(text, EVERYTHING)


@given(st.sampled_from(TABLE["allow"]), st.sampled_from(OPERATORS), st.sampled_from(TABLE["floor"]), st.booleans())
@example("cat <<'EOF'\n$(rm -rf /)\nEOF", "\n", "bash <<EOF\nrm -rf /\nEOF", False)
@settings(max_examples=rounds(500, 1500), deadline=None)
def test_what_is_allowed_does_not_lift_the_floor_of_what_is_beside_it(
    harmless: str, operator: str, dangerous: str, behind: bool
) -> None:
    first, second = (harmless, dangerous) if behind else (dangerous, harmless)
    if any(mark in first for mark in OPEN_ENDED) or first.endswith("&") or dangerous.startswith("xargs"):
        operator = "\n"
    assert judged(first + operator + second, EVERYTHING).rule.startswith("floor:")


@given(respelled())
@settings(max_examples=rounds(300, 1000), deadline=None)
def test_quoting_a_command_differently_keeps_it_on_the_floor(text: str) -> None:
    assert judged(text, EVERYTHING).rule.startswith("floor:")


@given(
    st.sampled_from(SPELLED),
    st.lists(st.sampled_from(PREFIXES), max_size=3),
    st.lists(st.sampled_from((*AROUND, "sh -c", "eval", "ssh host")), max_size=4),
)
@settings(max_examples=rounds(300, 1000), deadline=None)
def test_wrapping_a_command_keeps_it_on_the_floor(text: str, prefixes: list[str], around: list[str]) -> None:
    text = " ".join(prefix for prefix in (*sorted(prefixes, key="A=b".__ne__), text))
    for wrapper in around:
        text = wrapper.format(text) if "{" in wrapper else f"{wrapper} {shlex.quote(text)}"
    assert judged(text, EVERYTHING).rule.startswith("floor:")


@given(
    shellish.filter(lambda text: "\n" not in text),
    st.sampled_from(["git log {}", "git log '{}", 'git log "{}', "git log {} \\"]),
)
@settings(max_examples=rounds(200, 500), deadline=None)
def test_a_text_that_is_cut_off_is_never_allowed(text: str, cut: str) -> None:
    if cut == "git log {}":
        text = text.replace("…", "") + "…"
    elif cut[-3] in "'\"":
        text = text.replace(cut[-3], "").replace("\\", "")
    else:
        text = "a"
    assert judged(cut.format(text)).decision != "allow"


GROWING = (
    "git log a; ",
    "echo a | ",
    "sudo ",
    "eval ",
    "xargs ",
    "$(",
    "{a,b}",
    "a=$b$b;b=$a$a;",
    "> a ",
    "cat *",
    "rm -rf */?/",
    "`",
    "((",
    "${x:-",
)


@pytest.mark.parametrize("unit", GROWING)
def test_time_grows_no_faster_than_the_text(unit: str) -> None:
    def cost(length: int) -> float:
        begin = time.process_time()
        judged((unit * length)[:length])
        return time.process_time() - begin

    cost(4000)  # the first use of a table
    # Four times the text may take eight times as long, plus a clock tick; other work makes either one slower at times.
    assert any(cost(16000) <= 8 * cost(4000) + 0.02 for _ in range(5))


# ------------------------------------------------------------ rules


@pytest.mark.parametrize(
    "rule",
    [
        "",
        "  ",
        "Bash(git *",
        "Bash()",
        "Exec(git)",
        "WebFetch(example.org)",
        "git\nlog",
        "a" * 300,
        "Bash git)",
        "*" * 9,
    ],
)
def test_a_bad_rule_is_refused_with_what_to_do(rule: str) -> None:
    for kind in ("allow", "deny"):
        with pytest.raises(UsageMistake, match=r"rule .*: (write|use|the parentheses|nothing)") as error:
            Rules(**{kind: (rule,)})
        assert "\n" not in str(error.value)


@pytest.mark.parametrize(
    ("rule", "text", "fits"),
    [
        ("git status", "git status", True),
        ("git status", "git status -s", False),
        ("git *", "git", True),
        ("git *", "gitk", False),
        ("Bash(git *)", "git log", True),
        ("Bash(git log:*)", "git log -5", True),
        ("Bash(git log:*)", "git logx", False),
        ("npm run test*", "npm run test:unit", True),
        ("npm run test*", "npm run build", False),
        ("git  log", "git   log", True),
        ("git (log)", "git log", False),
        ("g?t log", "git log", False),
        ("Edit(git *)", "git log", False),
        ("* --version", "node --version", True),
    ],
)
def test_what_a_rule_for_commands_fits(rule: str, text: str, fits: bool) -> None:
    if rule == "git (log)":
        with pytest.raises(UsageMistake):
            Rules(allow=(rule,))
        return
    assert (judged(text, Rules(allow=(rule,))).decision == "allow") is fits
    assert (judged(text, Rules(deny=(rule,))).decision == "deny") is fits


def test_the_rule_of_a_verdict_names_what_decided() -> None:
    assert judged("git status") == Verdict("allow", "allow: git *")
    assert judged("git push") == Verdict("deny", "deny: git push*")
    assert judged("rm -rf /") == Verdict("deny", "floor:rm-recursive")
    assert judged("unknown x") == Verdict("ask", "no rule for: unknown x")
    assert judged("git log '") == Verdict("ask", "not understood")
