#!/usr/bin/env python3
"""Write options.md, the page on the defaults that can be set, from the traits themselves.

python docs/write_options.py           writes it
python docs/write_options.py --check   fails if it is not what would be written
"""

from __future__ import annotations

import re
import sys
from pathlib import Path

from traitlets import Bool, Enum, TraitType

from session_magics.magics.magics import SessionMagics
from session_magics.verbs.parser import HelpRequest, parse_cell

PAGE = Path(__file__).parent / "options.md"
EXAMPLES: dict[str, object] = {
    "backend": "tmux",
    "display": "text",
    "displays": True,
    "lifetime": "detached",
    "limit": 500_000,
    "shell_program": "zsh",
    "size": "40x120",
    "status_line": True,
    "timeout": 600.0,
}
"""For each trait that is no switch a value other than its default."""
CELL_OPTION = {"shell_program": "shell"}
"""Traits whose option has another name."""
BEGIN, END = "<!-- traits -->\n", "<!-- /traits -->\n"


def sections() -> str:
    """What the page says of each trait, in the order of the class."""
    options = cell_options()
    traits = SessionMagics.class_own_traits(config=True)
    return "\n".join(section(name, trait, options) for name, trait in traits.items())


def section(name: str, trait: TraitType, options: set[str]) -> str:  # type: ignore[type-arg]
    """What the page says of one trait."""
    word = CELL_OPTION.get(name, name).replace("_", "-")
    flags = [f"`{flag}`" for flag in (f"--{word}", f"--no-{word}") if flag in options]
    facts = [f"Values: {values(trait)}.", f"Default: `{trait.default_value!r}`."]
    if flags:
        facts.append(f"For one cell: {' or '.join(flags)}.")
    other = not trait.default_value if isinstance(trait, Bool) else EXAMPLES[name]
    example = f"```python\n%config SessionMagics.{name} = {other!r}\n```"
    return f"### `{name}`\n\n{trait.help}\n{' '.join(facts)}\n\n{example}\n"


def values(trait: TraitType) -> str:  # type: ignore[type-arg]
    """What may be assigned."""
    if isinstance(trait, Enum):
        return ", ".join(f"`{value!r}`" for value in trait.values)
    kind = {"Unicode": "text", "Bool": "`True`, `False`", "Int": "a whole number", "Float": "a number"}
    return kind[type(trait).__name__] + (", or `None`" if trait.allow_none else "")


def cell_options() -> set[str]:
    """The options of ``%%sh_session``, as its help names them."""
    try:
        parse_cell("--help")
    except HelpRequest as request:
        return set(re.findall(r"^ +(?:-\w, )?(--[a-z-]+)", request.text, re.M))
    raise AssertionError("--help asks for help")


def page() -> str:
    """The page: what is between the marks is written anew."""
    before, _, rest = PAGE.read_text(encoding="utf-8").partition(BEGIN)
    _, _, after = rest.partition(END)
    return f"{before}{BEGIN}\n{sections()}\n{END}{after}"


def main() -> int:
    new = page()
    if "--check" in sys.argv[1:]:
        same = PAGE.read_text(encoding="utf-8") == new
        print("docs/options.md is as the traits are" if same else "out of date: python docs/write_options.py")
        return 0 if same else 1
    PAGE.write_text(new, encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
