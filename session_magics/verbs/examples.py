"""How help shows the verbs: in groups, and each with lines that can be typed as they stand."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

GROUPS: Mapping[str, tuple[str, ...]] = {
    "start and end": ("start", "shell", "stop", "restart", "interrupt", "remove", "clean"),
    "look": ("list", "info", "tail", "show", "attach", "snapshot", "attachments", "history"),
    "speak to": ("send", "wait", "resize", "approve", "tmux"),
    "record and teach": ("record", "play", "expect", "scratch"),
    "around": ("copy", "tools", "import", "doctor", "kernel", "completion"),
}
"""The verbs by what they are for; a title, and names in the order in which help shows them."""
OTHERS = "more"
"""The title of verbs that are in no group."""

CELL_EXAMPLES = ("build --timeout 10m --out log", "--set files --get total", "far --on ssh:far")
EXAMPLES: Mapping[str, tuple[str, ...]] = {
    "start": (
        "web -- python3 -u -m http.server 8123",
        "train --label run=1 --restart on-failure -- python3 -u train.py",
        "db --wait-port 5432 --timeout 30 -- postgres -D data",
        'fix --tool claude -- "fix the tests"',
    ),
    "list": ("", "--label run=1"),
    "tail": ("web", "web -n 100", "web -f"),
    "show": ("web", "web --rows 12", "web --read-only"),
    "snapshot": ("web --html",),
    "send": ("repl print(6 * 7)", "repl --key C-d", "menu --no-enter 2"),
    "wait": ('web "Serving HTTP" --timeout 20', "web --port 8123", "train"),
    "stop": ("web", "--label run=1 --grace 30", "--all --now"),
    "restart": ("web", "web --env DEBUG=1", "--label run=1"),
    "remove": ("web", "web train --force"),
    "clean": ("--dry-run", "--older 7d", "--keep 20 --total 1G"),
    "copy": ("train:/data/model.bin .", "src container:web:/srv"),
    "approve": ("fix --allow 'git status' --allow 'npm test*' --minutes 30", "fix", "--off"),
    "import": ("sessions.json --dry-run",),
    "expect": (
        "--contains total",
        "--status 0 --file notes.txt --hint 'mkdir makes a directory'",
        "--cwd src --strict",
    ),
    "record": ("main demo.cast", "main demo.cast --from 5m", "main demo.cast --from cell:3 --to cell:5", "main --stop"),
    "scratch": ("--reset", "main --from lesson-files"),
    "play": ("demo.cast --speed 2 --idle-limit 1", "web --no-autoplay"),
    "history": ("main", "main --failed -n 10"),
    "kernel": ("install --user", "install --sys-prefix --name session-zsh", "list", "remove --user"),
}
"""The words behind a verb."""


def grouped(names: Iterable[str]) -> dict[str, list[str]]:
    """Part verbs by group; groups of which there is none are left out."""
    rest = set(names)
    parts = {title: [name for name in group if name in rest] for title, group in GROUPS.items()}
    rest.difference_update(*parts.values())
    parts[OTHERS] = sorted(rest)
    return {title: part for title, part in parts.items() if part}
