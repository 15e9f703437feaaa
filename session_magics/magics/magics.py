"""The magics as IPython knows them: traits, help, one-line errors."""

from __future__ import annotations

import math
import sys
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from IPython.core.error import UsageError
from IPython.core.interactiveshell import InteractiveShell
from IPython.core.magic import Magics, cell_magic, line_magic, magics_class, no_var_expand
from traitlets import Bool, Enum, Float, Int, TraitError, Unicode, validate

from session_magics.display.cell import LIMIT
from session_magics.display.pump import Pump
from session_magics.display.questions import Questions
from session_magics.errors import CellCommandError, CheckFailed, SessionError, UsageMistake
from session_magics.magics import inspecting, notebook, replies
from session_magics.magics.cells import CellRunner
from session_magics.verbs.options import nonempty
from session_magics.verbs.options import size as size_of
from session_magics.verbs.parser import HelpRequest, parse_cell, parse_verb

if TYPE_CHECKING:
    from session_magics.completion import Completions
    from session_magics.display.terminal import Terminal
    from session_magics.display.theatre import Theatre
    from session_magics.listing import Listing
    from session_magics.magics.cellcompletion import CellCompleter
    from session_magics.recording.formats import Cast
    from session_magics.recording.playing import Settings
    from session_magics.recording.recorder import Recordings
    from session_magics.registry import Registry
    from session_magics.session import Session


@magics_class
class SessionMagics(Magics):
    """Shell cells and named sessions. ``%config SessionMagics`` shows the defaults that can be set."""

    shell_program = Unicode("bash", help="Shell of %%sh_session when --shell is not given.").tag(config=True)
    lifetime = Enum(["kernel", "detached"], "kernel", help="Whether a shell ends with the kernel or lives on.").tag(
        config=True
    )
    rc = Bool(True, help="Whether a shell reads its start-up file.").tag(config=True)
    size = Unicode("", help="Terminal size of new shells, such as 24x80.").tag(config=True)
    limit = Int(LIMIT, min=0, help="Bytes of a cell's output that are shown; the log keeps more.").tag(config=True)
    display = Enum(
        ["auto", "terminal", "text"],
        "auto",
        help="Whether a cell becomes a terminal while it runs: after half a second, "
        "at once, or never; with text, sessions and the list of them are text too.",
    ).tag(config=True)
    backend = Enum(
        ["auto", "native", "tmux"], "auto", help="What holds programs that %session start is given; auto is native."
    ).tag(config=True)
    timeout = Float(None, allow_none=True, help="Seconds after which a cell is interrupted.").tag(config=True)

    explain = Bool(False, help="Whether a line in plain words stands under a cell that failed, for common errors.").tag(
        config=True
    )
    status_line = Bool(
        False, help="Whether a line with directory, exit status and duration stands under each shell cell."
    ).tag(config=True)
    displays = Bool(
        False,
        help="Whether new shells have functions that show an image, HTML or JavaScript from their standard input: "
        "display, displayHTML, displayJS.",
    ).tag(config=True)

    def __init__(self, shell: InteractiveShell, registry: Registry | None = None) -> None:
        super().__init__(shell)
        self._registry = registry
        self._runner: CellRunner | None = None
        self._told = self._warned = False
        self._theatre: Theatre | None = None
        self._questions = Questions(shell, lambda *asked: replies.reply_aside(self, *asked))
        self._pump = Pump(shell, self._questions)
        self._completer: CellCompleter | None = None
        self._recordings: Recordings | None = None

    @validate("size", "shell_program")
    def _check_text(self, proposal: Any) -> str:
        value: str = proposal["value"]
        try:
            if proposal["trait"].name == "shell_program":
                nonempty(value)
            elif value:
                size_of(value)
        except UsageMistake as mistake:
            raise TraitError(str(mistake)) from None
        return value

    @validate("timeout")
    def _check_timeout(self, proposal: Any) -> float | None:
        seconds: float | None = proposal["value"]
        if seconds is not None and not 0 < seconds < math.inf:
            raise TraitError(f"{seconds:g} s is no time limit: give a number of seconds above 0, or None")
        return seconds

    @property
    def registry(self) -> Registry:
        """The registry, imported and opened at first use: loading the extension is cheap and touches no disk."""
        if self._registry is None:
            from session_magics.registry import Registry

            self._registry = Registry()
        return self._registry

    def _news(self) -> str:
        """What the person should know about where the records are; only once."""
        registry = self.registry
        news = "" if self._told else registry.store.relocated or ""
        self._told = True
        return news

    def _outlook(self) -> str | None:
        """What will end the sessions that are started here; only once."""
        from session_magics.outlook import outlook  # for the first start alone

        news = None if self._warned else outlook()
        self._warned = True
        return news

    @property
    def runner(self) -> CellRunner:
        """What runs cells, made at first use."""
        if self._runner is None:
            assert self.shell is not None
            self._runner = CellRunner(self.shell, self.registry, self, lambda: self.theatre)
        return self._runner

    @property
    def theatre(self) -> Theatre:
        """What serves live terminals, made at first use."""
        if self._theatre is None:
            from session_magics.display.theatre import Theatre

            self._theatre = Theatre(self.shell, self.registry, self._pump)
        return self._theatre

    def terminal(self, session: Session, *, read_only: bool = False, rows: int | None = None) -> Terminal:
        """What shows a session live when it is displayed."""
        from session_magics.display.terminal import Terminal  # the widget libraries are slow to import

        return Terminal(self.theatre, session, read_only=read_only, rows=rows)

    def player(self, cast: Cast, title: str, settings: Settings) -> object:
        """What plays a recording when it is displayed."""
        from session_magics.display.player import Player  # the widget libraries are slow to import

        return Player(self.theatre.router, cast, title, settings)

    @property
    def recordings(self) -> Recordings:
        """Those that run in this kernel."""
        if self._recordings is None:
            from session_magics.recording.recorder import Recordings  # few notebooks record

            self._recordings = Recordings()
        return self._recordings

    @property
    def live(self) -> bool:
        """Whether sessions are shown live: a page with widgets may be there, and text alone is not asked for."""
        return self.display != "text" and notebook.shows_widgets(self.shell)

    def display_session(self, session: Session) -> None:
        """How a Session is shown as the value of a cell. NotImplementedError: as any other value."""
        if not self.live:
            raise NotImplementedError
        self.terminal(session)._ipython_display_()

    def display_listing(self, listing: Listing) -> None:
        """How a Listing is shown as the value of a cell. NotImplementedError: as any other value."""
        if not self.live or listing.fixed:
            raise NotImplementedError
        from session_magics.display.table import show_table

        show_table(self.theatre, listing)

    def complete(self, cell: str, cursor: int, *, aside: bool = False) -> Completions | None:
        """What could stand at the cursor of a whole cell, of which ``cursor`` code points are before it.

        None: neither a cell of ours nor a line. It waits for no command: a busy session is not asked. ``aside``: no
        session is, as in another thread than that of the cells.
        """
        if self._completer is None:
            from session_magics.magics.cellcompletion import CellCompleter  # nobody may ever press Tab

            self._completer = CellCompleter(self)
        return self._completer.complete(cell, cursor, aside=aside)

    def inspect(self, cell: str, cursor: int, detail: int = 0, *, aside: bool = False) -> dict[str, str] | None:
        """What stands at the cursor of a whole cell, as a mime bundle; None: not ours, or nothing is known.

        ``aside``: as in ``complete``.
        """
        return inspecting.inspect(self, cell, cursor, detail, aside=aside)

    def is_complete(self, cell: str) -> tuple[str, str]:
        """Whether a whole cell of ours could be run as it is: Jupyter's status, and the indent of a next line."""
        return inspecting.is_complete(self, cell)

    def asks_help(self, cell: str) -> str | None:
        """The word of a shell cell that is ``NAME?`` or ``?NAME``, and no file's pattern; None for any other."""
        return inspecting.asks_help(self, cell)

    def close(self) -> None:
        """Detach from all sessions; they live on."""
        self._questions.close()
        if self._runner is not None:
            self._runner.close()
        if self._theatre is not None:
            self._theatre.close()
        if self._recordings is not None:
            self._recordings.close()

    @no_var_expand
    @cell_magic
    def sh_session(self, line: str, cell: str) -> None:
        """Run the cell in a shell that lives on between cells.

        %%sh_session [NAME] [options]

        Directory, variables, functions, aliases, options and jobs carry over to the next cell of that NAME (main, if
        none is given). The last command decides: a status other than 0 raises an error, so that Run All stops, and is
        in _exit_code. ■ interrupts the command; the shell lives on. A prompt is asked in the notebook.

        Examples:
            %%sh_session
            cd project && make

        In a second shell, named build; its text goes to the Python variable log:
            %%sh_session build --timeout 10m --out log
            make test

        From Python to the shell before, from the shell to Python after:
            %%sh_session --set files --get total
            total=$(cat "${files[@]}" | wc -l)

        Return at once, while output goes on below the cell:
            %%sh_session server --bg
            ./serve

        A failing command is no error:
            %%sh_session --no-raise-error
            grep -q needle haystack

        %%sh_session --help (with any text below) lists the options, %config SessionMagics the defaults.
        """

        def run() -> None:
            self.runner.run(parse_cell(line), cell, notice=self._news())

        with self._pump.running():
            _translated(run)

    @no_var_expand
    @line_magic
    def session(self, line: str) -> Any:
        """Start, list, watch and stop named programs that outlive the kernel.

        %session VERB …

        Examples:
            %session start web -- python3 -u -m http.server 8123
            %session wait web "Serving HTTP"
            %session list
            %session tail web
            %session show web
            %session send web --key C-c
            %session stop web

        Verbs give values back; list and show are live where the page has widgets:
            lines = %session tail web -n 100

        %session help lists the verbs, %session VERB --help shows the words of one.
        """

        def run() -> object:
            from session_magics.verbs.actions import Verbs

            words = parse_verb(line)
            for news in filter(None, (self._news(), self._outlook() if words.verb == "start" else None)):
                print(f"session-magics: {news}", file=sys.stderr)
            live, player = (self.terminal, self.player) if self.live else (None, None)
            shown = notebook.line(self.shell)
            verbs = Verbs(
                self.registry,
                _show,
                terminal=live,
                line=shown,
                backend=self.backend,
                cells=self.runner,
                recordings=lambda: self.recordings,
                player=player,
            )
            return verbs.call(words)

        with self._pump.running():
            value = _translated(run)
        return Text(value) if type(value) is str else value


class Text(str):
    """A string whose display is itself, without quotes."""

    def _repr_pretty_(self, printer: Any, _cycle: bool) -> None:
        printer.text(str(self))


def _show(text: str) -> None:
    print(text, end="", flush=True)


def _translated(run: Callable[[], Any]) -> Any:
    """Run, and turn our errors into what IPython shows in one line; those of a cell's command show themselves."""
    try:
        return run()
    except HelpRequest as request:
        print(request.text)
        return None
    except (CellCommandError, CheckFailed):
        raise
    except SessionError as error:
        raise UsageError(str(error)) from None
