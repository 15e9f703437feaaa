r"""The protocol in fish, 3.2 and later.

fish runs nothing of what it reads from a pipe before the pipe's end, so it gets a terminal session. Nothing is typed at
its prompt all the same: a cell is a *key* that is bound to two commands, one that runs the cell and one that reports
its end in case the first was given up. fish keeps no history of such commands, echoes nothing and draws no new prompt.
The text itself comes through a FIFO, after record B: by then the holder has given the terminal the modes of a cell.

``exit`` is a function of ours: a shell that ends in a command of a key ends with the status of before that key.

Between cells the *bind mode* is one in which no other key means anything, so that what was typed too late for a
program is not taken for a command.
"""

from __future__ import annotations

from session_magics.holder.dialects.posix import Cell, Dialect

RUN, AGAIN = b"\x1e", b"\x1f"


class Fish(Dialect):
    """See above; the two lines of ``command`` are the key and what goes into the FIFO."""

    utility = special = b"builtin "
    keys = (RUN, AGAIN)
    nothing = b"0 - - 0\0\0"
    start_up = b"builtin true"
    """config.fish is read by fish itself before it takes its first key."""
    lost = "functions, abbreviations, unexported variables and jobs"
    functions = rb"""
@U set -g __sm_n 0; @U set -g __sm_i 0; @U set -g __sm_mode default; @U set -g fish_greeting
function __sm_b
    @U printf '\001B\t0\t\0' @F
    @U set -l number; @U set -l begin; @U set -l end; @U set -l last
    begin
        @U read -d ' ' -z number begin end last
        @U read -gz __sm_cell
    end <$__sm_lines
    @U test -z "$__sm_cell" -a "$number" = 0; and return
    @U set -g __sm_i $number; @U set -g __sm_end $end
    @U set -g fish_bind_mode $__sm_mode
    @U set -g __sm_exit 0
    @U printf '\033]7788;%s\007' $begin @T
    return $last
end
function __sm_v
    @U printf '\001V\t0\t'; @U set -gxL; @U printf '\0'
end
function __sm_e
    @U test "$__sm_n" = "$__sm_i"; and return
    __sm_k
    @U printf '\001E\t%s\t%s\t\t%s\0' $__sm_i $argv[1] $PWD @F
    @U set -g __sm_n $__sm_i
    @U printf '\033]7788;%s\007' $__sm_end @T
    __sm_v @F
end
function __sm_k
    @U test "$fish_bind_mode" = __sm; or @U set -g __sm_mode $fish_bind_mode
    @U bind -M __sm \x1e '__sm_b; eval $__sm_cell; __sm_e $status' '__sm_e A$status'
    @U bind -M __sm \x1f '__sm_e A$status'
    @U set -g fish_bind_mode __sm
    function exit
        @U set -g __sm_exit $argv[1] $status
        @U exit $argv
    end
    function fish_prompt; end
    function fish_right_prompt; end
    function fish_mode_prompt; end
    function fish_title; end
    function fish_job_summary; end
end
function __sm_x --on-event fish_exit
    begin
        __sm_v
        @U printf '\001S\t%s\t%s\0' $__sm_i $__sm_exit[1]
        @U printf '\001X\t%s\t%s\0' $__sm_i $PWD
    end @F
    @U printf '\033]7788;%s\007' $__sm_end @T
end
function __sm_p --on-event fish_prompt
    __sm_k
    @U printf '\001R\t0\t\0' @F
end
"""

    def __init__(self, program: bytes, directory: bytes, *, rc: bool) -> None:
        super().__init__(program, directory, rc=rc)
        self._lines = directory + b"/lines"
        options = [b"-i"] if rc else [b"-i", b"--no-config"]
        # Standard input becomes the terminal, once the holder has written a line: the terminal's modes are noted and
        # the file is there then.
        wrapper = [b"/bin/sh", b"-c", b'read -r _ <"$0"; exec "$@" <&1', self._lines]
        self.argv = [*wrapper, program, *options, b"-C", b"source " + _quoted(directory + b"/init.fish")]

    def files(self) -> dict[str, bytes]:
        """See Dialect."""
        places = b"@U set -g __sm_fifo %s; @U set -g __sm_lines %s; @U set -g __sm_tty %s\n" % (
            _quoted(self.directory + b"/records"), _quoted(self._lines), self.tty,
        )  # fmt: skip
        return {"init.fish": self.fill(places + self.functions) + self.given_functions()}

    def init(self, tty: bytes) -> bytes:
        """See Dialect."""
        self.tty = _quoted(tty)
        return b"\n"

    def fill(self, template: bytes) -> bytes:
        """See Dialect."""
        for place, text in ((b"@U", b"builtin"), (b"@F", b">$__sm_fifo"), (b"@T", b">$__sm_tty")):
            template = template.replace(place, text)
        return template

    def command(self, cell: Cell) -> tuple[bytes, bytes]:
        """See Dialect."""
        return RUN, b"%d %s %s %d\0%s\0" % (cell.number, cell.begin, cell.end, cell.last, cell.text)

    def restore(self, environment: bytes, cwd: bytes) -> bytes:
        """See Dialect; ``environment`` is what ``set -gxL`` printed, name and quoted values on each line."""
        lines = [b"builtin set -gx " + line + b" 2>/dev/null" for line in environment.splitlines() if line]
        return b"\n".join([*lines, b"builtin cd -- " + _quoted(cwd), b""])


def _quoted(text: bytes) -> bytes:
    """The bytes as one word of fish."""
    return b"'" + text.replace(b"\\", b"\\\\").replace(b"'", b"\\'") + b"'"
