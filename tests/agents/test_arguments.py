"""The arguments of a first start and of a resume, tool by tool."""

from __future__ import annotations

import contextlib
import uuid

import pytest
from hypothesis import given
from hypothesis import strategies as st

from session_magics.agents.arguments import Arguments, resume_arguments, start_arguments
from session_magics.agents.tools import Options, Tool, tools
from session_magics.errors import UsageMistake

TOOLS = tools()
ID = "0198c1f2-0000-7000-8000-00000000000a"

CLAUDE_BYPASS = "--dangerously-skip-permissions"
CODEX_BYPASS = "--dangerously-bypass-approvals-and-sandbox"


def split(line: str) -> tuple[str, ...]:
    """Words of a table's row; an underscore stands for a blank within a word."""
    return tuple(word.replace("_", " ") for word in line.split())


# tool, arguments of the first start, what reopens the conversation ID, what reopens without an id
RESUMES = [
    ("claude", "", f"--resume {ID}", "--continue"),
    ("claude", "--verbose --model opus", f"--verbose --model opus --resume {ID}", "--verbose --model opus --continue"),
    ("claude", "--session-id x --verbose", f"--verbose --resume {ID}", "--verbose --continue"),
    ("claude", "--session-id=x --verbose", f"--verbose --resume {ID}", "--verbose --continue"),
    ("claude", "--resume x --verbose", f"--verbose --resume {ID}", "--verbose --continue"),
    ("claude", "--resume=x --verbose", f"--verbose --resume {ID}", "--verbose --continue"),
    ("claude", "-r x --verbose", f"--verbose --resume {ID}", "--verbose --continue"),
    ("claude", "-r=x -rx", f"--resume {ID}", "--continue"),
    ("claude", "--continue --verbose -c", f"--verbose --resume {ID}", "--verbose --continue"),
    ("claude", "--resume --verbose", f"--verbose --resume {ID}", "--verbose --continue"),
    ("claude", "-r -c --model opus", f"--model opus --resume {ID}", "--model opus --continue"),
    ("claude", "--session-id", f"--resume {ID}", "--continue"),
    ("claude", "--from-pr 12 --verbose", f"--verbose --resume {ID}", "--verbose --continue"),
    ("claude", "--resume x --fork-session", f"--resume {ID}", "--continue"),
    ("claude", f"{CLAUDE_BYPASS} -c", f"{CLAUDE_BYPASS} --resume {ID}", f"{CLAUDE_BYPASS} --continue"),
    ("claude", "--model opus fix_it", f"--model opus --resume {ID}", "--model opus --continue"),
    ("claude", "fix_it --verbose", f"--verbose --resume {ID}", "--verbose --continue"),
    ("claude", "--verbose fix_it", f"--verbose --resume {ID}", "--verbose --continue"),
    ("claude", "--unknown fix_it", f"--unknown fix_it --resume {ID}", "--unknown fix_it --continue"),
    ("claude", "--add-dir a b -c", f"--add-dir a b --resume {ID}", "--add-dir a b --continue"),
    ("claude", "-p -c fix_it", f"-p fix_it --resume {ID}", "-p fix_it --continue"),
    ("claude", "-pc fix_it", f"-p fix_it --resume {ID}", "-p fix_it --continue"),
    ("claude", "--model=opus -- -c --resume x", f"--model=opus --resume {ID} -- -c --resume x", None),
    ("claude", "mcp list -c", "mcp list -c", "mcp list -c"),
    ("custom", "--resume=x --verbose", f"--verbose --resume {ID}", "--verbose --continue"),
    ("codex", "", f"resume {ID}", "resume --last"),
    ("codex", f"--model o3 {CODEX_BYPASS}", f"resume {ID} --model o3 {CODEX_BYPASS}", None),
    ("codex", f"--model o3 {CODEX_BYPASS}", None, f"resume --last --model o3 {CODEX_BYPASS}"),
    ("codex", "-m o3 --yolo fix_it", f"resume {ID} -m o3 --yolo", "resume --last -m o3 --yolo"),
    ("codex", "resume x --search", f"resume {ID} --search", "resume --last --search"),
    ("codex", "--search resume x go_on", f"resume {ID} --search", "resume --last --search"),
    ("codex", "resume --last go_on --oss", f"resume {ID} --oss", "resume --last --oss"),
    ("codex", "--full-auto fix_it", f"resume {ID} --full-auto", "resume --last --full-auto"),
    ("codex", "fork x --worktree -m o3", f"resume {ID} -m o3", "resume --last -m o3"),
    ("codex", "fork x --oss", f"resume {ID} --oss", "resume --last --oss"),
    ("codex", "-i a.png b.png --oss", f"resume {ID} --oss", "resume --last --oss"),
    ("codex", "-c a=1 -c b=2", f"resume {ID} -c a=1 -c b=2", "resume --last -c a=1 -c b=2"),
    ("codex", "--oss -- fix_it", f"resume {ID} --oss -- fix_it", "resume --last --oss -- fix_it"),
    ("codex", "exec fix_it", "exec fix_it", "exec fix_it"),
    ("grok", "", f"--resume={ID}", "--continue"),
    ("grok", "--resume x -m g", f"-m g --resume={ID}", "-m g --resume=x"),
    ("grok", "--resume=x -m g", f"-m g --resume={ID}", "-m g --resume=x"),
    ("grok", "-r x -m g", f"-m g --resume={ID}", "-m g --resume=x"),
    ("grok", "-r -m g", f"-m g --resume={ID}", "-m g --continue"),
    ("grok", "--continue -c -m g", f"-m g --resume={ID}", "-m g --continue"),
    ("grok", "--session-id x", f"--resume={ID}", "--resume=x"),
    ("gemini", "-m g", f"-m g --resume {ID}", "-m g --resume latest"),
    ("gemini", "--resume=5 --yolo", f"--yolo --resume {ID}", "--yolo --resume latest"),
    ("gemini", "-r latest -y", f"-y --resume {ID}", "-y --resume latest"),
    ("gemini", "-i fix_it -y", f"-y --resume {ID}", "-y --resume latest"),
    ("gemini", "--prompt-interactive=fix_it -y", f"-y --resume {ID}", "-y --resume latest"),
    ("gemini", "-y fix_it", f"-y --resume {ID}", "-y --resume latest"),
    ("gemini", "-p fix_it -y", f"-p fix_it -y --resume {ID}", "-p fix_it -y --resume latest"),
    ("aider", "a.py b.py", "a.py b.py --restore-chat-history", "a.py b.py --restore-chat-history"),
    ("aider", "--restore-chat-history --yes-always", "--yes-always --restore-chat-history", None),
    ("opencode", "dir", f"dir --session {ID}", "dir --continue"),
    ("opencode", "-s x --fork", f"--session {ID}", "--continue"),
    ("opencode", "--session=x -c -m p/m", f"-m p/m --session {ID}", "-m p/m --continue"),
    ("opencode", "--prompt fix_it dir", f"dir --session {ID}", "dir --continue"),
    ("opencode", "run fix_it", "run fix_it", "run fix_it"),
    ("shell", "-c ls", "-c ls", "-c ls"),
]


@pytest.mark.parametrize(("tool", "args", "known", "unknown"), RESUMES)
def test_c10_resume(tool: str, args: str, known: str | None, unknown: str | None) -> None:
    if known is not None:
        assert resume_arguments(TOOLS[tool], split(args), ID) == split(known)
    if unknown is not None:
        assert resume_arguments(TOOLS[tool], split(args), None) == split(unknown)


def test_c10_words_that_are_no_prompt_stay_behind_a_command_that_reopens() -> None:
    options = Options(reopen_commands=("open",), latest=("--last",))
    tool = Tool(
        "demo", latest_args=("open", "--last"), resume_args=("open", "{id}"), resume_first=True, options=options
    )
    assert resume_arguments(tool, ["open", "x", "file"], ID) == ("open", ID, "file")
    assert resume_arguments(tool, ["open", "--last", "file"], ID) == ("open", ID, "file")
    assert resume_arguments(tool, ["file"], None) == ("open", "--last", "file")


@pytest.mark.parametrize("tool", TOOLS)
def test_c10_a_second_resume_is_like_the_first(tool: str) -> None:
    first = resume_arguments(TOOLS[tool], ["--model", "m"], ID)
    assert resume_arguments(TOOLS[tool], first, ID) == first


def test_c10_claude_gets_a_fresh_id() -> None:
    first, second = (start_arguments(TOOLS["claude"], ["--verbose"], approve=False) for _ in range(2))
    assert first == Arguments(("--verbose", "--session-id", str(first.conversation)), first.conversation)
    assert uuid.UUID(first.conversation) != uuid.UUID(second.conversation)


# tool, the user's arguments, the conversation that they settle
OWN_IDS = [
    ("claude", "--session-id x", "x"),
    ("claude", "--session-id=x", "x"),
    ("claude", "--session-id", None),
    ("claude", "--resume x", "x"),
    ("claude", "-r=x", "x"),
    ("claude", "--resume", None),
    ("claude", "--from-pr 12", None),
    ("claude", "--continue", None),
    ("claude", "-pc", None),
    ("claude", "mcp list", None),
    ("codex", "", None),
    ("codex", "resume x", "x"),
    ("codex", "resume --last x", None),
    ("codex", "fork x", None),
    ("grok", "--resume x", "x"),
    ("gemini", "--resume 3", None),
    ("opencode", "--session x", "x"),
    ("shell", "-c ls", None),
]


@pytest.mark.parametrize(("tool", "args", "conversation"), OWN_IDS)
def test_c10_what_the_user_says_of_the_conversation_is_respected(tool: str, args: str, conversation: str) -> None:
    assert start_arguments(TOOLS[tool], split(args), approve=False) == Arguments(split(args), conversation)


def test_c10_a_fork_gets_an_id_of_its_own() -> None:
    started = start_arguments(TOOLS["claude"], ["--resume", "x", "--fork-session"], approve=False)
    assert started.conversation != "x"
    assert started.args == ("--resume", "x", "--fork-session", "--session-id", started.conversation)


def test_c10_additions_go_before_the_end_of_options() -> None:
    started = start_arguments(TOOLS["claude"], ["--verbose", "--", "--session-id", "x"], approve=True)
    end = ("--session-id", str(started.conversation), "--", "--session-id", "x")
    assert started.args == ("--verbose", CLAUDE_BYPASS, *end)
    assert uuid.UUID(started.conversation)


# tool, the user's arguments, the approval switch that is added
APPROVALS = [
    ("claude", "--continue", CLAUDE_BYPASS),
    ("claude", f"--continue {CLAUDE_BYPASS}", ""),
    ("claude", "--continue --permission-mode bypassPermissions", ""),
    ("claude", "--continue --permission-mode=bypassPermissions", ""),
    ("codex", "", CODEX_BYPASS),
    ("codex", CODEX_BYPASS, ""),
    ("codex", "--yolo", ""),
    ("gemini", "", "--approval-mode=yolo"),
    ("gemini", "--approval-mode yolo", ""),
    ("gemini", "--approval-mode=yolo", ""),
    ("gemini", "-y", ""),
    ("gemini", "--yolo", ""),
    ("aider", "a.py", "--yes-always"),
    ("aider", "--yes-always", ""),
    ("aider", "--yes", ""),
    ("grok", "", ""),
    ("custom", "--continue", ""),
    ("opencode", "", ""),
    ("shell", "", ""),
    ("claude", "mcp list", ""),
]


@pytest.mark.parametrize(("tool", "args", "added"), APPROVALS)
def test_c10_the_approval_switch_is_there_once(tool: str, args: str, added: str) -> None:
    assert start_arguments(TOOLS[tool], split(args), approve=True).args == split(f"{args} {added}")
    assert start_arguments(TOOLS[tool], split(args), approve=False).args == split(args)


@pytest.mark.parametrize("tool", ["claude", "codex", "gemini", "aider"])
def test_c10_the_approval_switch_survives_a_resume(tool: str) -> None:
    started = start_arguments(TOOLS[tool], [], approve=True)
    switch = TOOLS[tool].approve_args
    assert set(switch) < set(resume_arguments(TOOLS[tool], started.args, started.conversation))


@pytest.mark.parametrize(
    ("tool", "args"),
    [
        ("claude", "--permission-mode plan"),
        ("claude", "--permission-mode=default"),
        ("codex", "-a untrusted"),
        ("codex", "--full-auto"),
        ("codex", "--approve-for-me"),
        ("gemini", "--approval-mode=auto_edit"),
    ],
)
def test_approval_that_an_argument_contradicts_is_a_mistake(tool: str, args: str) -> None:
    with pytest.raises(UsageMistake, match="leave one of them out"):
        start_arguments(TOOLS[tool], split(args), approve=True)
    assert start_arguments(TOOLS[tool], split(args), approve=False).args[:1] == split(args)[:1]


WORDS = st.sampled_from([
    "--resume", "--resume=x", "-r", "-rx", "--session-id", "--session-id=y", "--continue", "-c", "--last", "--all",
    "--prompt", "--fork-session", "-i", "-s", "--verbose", "--model", "opus", "fix", "resume", "fork", "exec", "mcp",
    "--", "--yolo", "-", "-p", "-pc", "--image", "a.png", "7",
])  # fmt: skip


@given(st.sampled_from(list(TOOLS.values())), st.lists(WORDS, max_size=8), st.sampled_from([None, ID]))
def test_c10_any_arguments(tool: Tool, args: list[str], conversation: str | None) -> None:
    """A first start keeps every word, what is behind ``--`` is left alone, a resume of a resume changes nothing."""
    end = args.index("--") if "--" in args else len(args)
    for approve in (False, True):
        with contextlib.suppress(UsageMistake):
            started = start_arguments(tool, args, approve=approve).args
            assert started[:end] == tuple(args[:end])
            assert started[len(started) - len(args) + end :] == tuple(args[end:])
    resumed = resume_arguments(tool, args, conversation)
    assert resumed[len(resumed) - len(args) + end :] == tuple(args[end:])
    assert resume_arguments(tool, resumed, conversation) == resumed
