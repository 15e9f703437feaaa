"""What the judge says of paths and addresses."""

from __future__ import annotations

from pathlib import Path

import pytest

from session_magics.agents.verdicts.judge import Rules, Verdict, judge_command, judge_path, judge_url

EVERYTHING = Rules(allow=("*", "Edit(**)", "Edit(/**)", "Edit(~/**)", "Read(**)", "Read(/**)", "WebFetch(*)"))
HOME, CWD = "/home/user", "/home/user/project"


@pytest.fixture
def places(tmp_path: Path) -> tuple[str, str]:
    home = tmp_path / "home"
    (home / "project" / "src").mkdir(parents=True)
    (home / ".ssh").mkdir()
    return str(home / "project"), str(home)


def test_a_path_below_the_directory_is_allowed_by_its_rule_alone(places: tuple[str, str]) -> None:
    cwd, home = places
    rules = Rules(allow=("Edit(src/**)", "Read(**)"))
    assert judge_path("src/a.py", "edit", rules, cwd=cwd, home=home) == Verdict("allow", "allow: Edit(src/**)")
    assert judge_path(f"{cwd}/src/b/c.py", "edit", rules, cwd=cwd, home=home).decision == "allow"
    assert judge_path("a.py", "edit", rules, cwd=cwd, home=home).decision == "ask"
    assert judge_path("src/../a.py", "edit", rules, cwd=cwd, home=home).decision == "ask"
    assert judge_path("a.py", "read", rules, cwd=cwd, home=home).decision == "allow"
    assert judge_path("src/a.py", "edit", Rules(), cwd=cwd, home=home).decision == "ask"


def test_deny_wins_over_allow_for_paths(places: tuple[str, str]) -> None:
    cwd, home = places
    rules = Rules(allow=("Edit(**)",), deny=("Edit(src/secret*)",))
    assert judge_path("src/secret.py", "edit", rules, cwd=cwd, home=home) == Verdict("deny", "deny: Edit(src/secret*)")
    assert judge_path("src/x/../secret.py", "edit", rules, cwd=cwd, home=home).decision == "deny"


def test_a_link_is_judged_by_where_it_leads(places: tuple[str, str], tmp_path: Path) -> None:
    cwd, home = places
    Path(cwd, "out").symlink_to(tmp_path)
    Path(cwd, "rc").symlink_to(Path(home, ".bashrc"))
    Path(cwd, "keys").symlink_to(Path(home, ".ssh"))
    assert judge_path("out/a", "edit", EVERYTHING, cwd=cwd, home=home).decision == "ask"
    assert judge_path("rc", "edit", EVERYTHING, cwd=cwd, home=home).rule == "floor:startup-or-credential-file"
    assert judge_path("keys/authorized_keys", "edit", EVERYTHING, cwd=cwd, home=home).decision == "deny"
    assert judge_path("keys/id_rsa", "read", EVERYTHING, cwd=cwd, home=home).decision == "ask"
    assert judge_command("echo x > rc", EVERYTHING, cwd=cwd, home=home).decision != "allow"
    assert judge_command("echo x > out/a", EVERYTHING, cwd=cwd, home=home).decision == "ask"


@pytest.mark.parametrize(
    "path",
    [
        "~/.bashrc",
        "~/.ssh/authorized_keys",
        "../.zshrc",
        "~/.aws/credentials",
        "/etc/hosts",
        "/dev/sda",
        "~/.claude/settings.json",
        "//etc/passwd",
    ],
)
def test_no_rule_lets_a_file_be_edited_that_is_obeyed_or_holds_keys(path: str) -> None:
    assert judge_path(path, "edit", EVERYTHING, cwd=CWD, home=HOME).rule.startswith("floor:")


@pytest.mark.parametrize(
    "path",
    ["~/.ssh/id_rsa", "~/.netrc", ".env", "/etc/shadow", "/tmp/x", "", " ", "a…", "a\x1b[0m", "a\u202e", ".git/config"],
)
def test_no_rule_lets_a_secret_or_an_unclear_path_be_read_unasked(path: str) -> None:
    assert judge_path(path, "read", EVERYTHING, cwd=CWD, home=HOME).decision == "ask"


@pytest.mark.parametrize(
    ("url", "decision"),
    [
        ("https://example.org/a?b=c", "allow"),
        ("http://EXAMPLE.org:8080/", "allow"),
        ("https://api.example.net/", "allow"),
        ("https://bad.example.net/", "deny"),
        ("https://example.net/", "ask"),
        ("https://example.org.evil.com/", "ask"),
        ("https://example.org@evil.com/", "ask"),
        ("https://user@example.org/", "ask"),
        ("ftp://example.org/", "ask"),
        ("file:///etc/passwd", "ask"),
        ("https://example.org\\@evil.com/", "ask"),
        ("https://еxample.org/", "ask"),
        ("https://example.org/…", "ask"),
        ("example.org", "ask"),
        ("https://[::1", "ask"),
        ("", "ask"),
    ],
)
def test_an_address_is_judged_by_its_host(url: str, decision: str) -> None:
    rules = Rules(
        allow=("WebFetch(domain:example.org)", "WebFetch(domain:*.example.net)"),
        deny=("WebFetch(domain:bad.example.net)",),
    )
    assert judge_url(url, rules).decision == decision
    assert judge_url(url, Rules()).decision == "ask"
