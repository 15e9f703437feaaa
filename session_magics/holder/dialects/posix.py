"""The protocol in the words of a POSIX shell (dash, ksh, sh); the other dialects derive from it."""

from __future__ import annotations

from session_magics.holder.records import listed_trap

HISTORY_BYTES = 1 << 16
"""Longest cell that a shell's history keeps: beyond that it is data, and the shell would copy it a few times."""


def mark(nonce: bytes) -> bytes:
    """What stands in the output where a command begins or ends; a control string that no terminal knows."""
    return b"\033]7788;" + nonce + b"\007"


def quoted(text: bytes) -> bytes:
    """The bytes as one word of any Bourne-like shell."""
    return b"'" + text.replace(b"'", b"'\\''") + b"'"


class Cell:
    """What the lines of one command need to know."""

    __slots__ = ("begin", "end", "flags", "hidden", "last", "number", "text", "traps")

    def __init__(self, number: int, text: bytes, begin: bytes, end: bytes) -> None:
        self.number, self.text, self.begin, self.end = number, text, begin, end
        self.flags = b""
        """Letters of ``$-`` as the last command left them."""
        self.traps = b""
        """What ``trap`` listed then."""
        self.hidden = False
        """Whether it is a command of ours: it meets no traps of the user's, and no history has it."""
        self.last = 0
        """The status that ``$?`` shall have at the start."""

    @property
    def kept(self) -> bool:
        """Whether it belongs into the shell's history."""
        return not self.hidden and len(self.text) <= HISTORY_BYTES and not self.text.isspace() and self.text != b""


class Dialect:
    """The words of one kind of shell.

    In the templates ``@U`` stands before a utility and ``@S`` before a special built-in, so that neither an alias
    nor a function of the user's can take its place; ``@F`` redirects into the FIFO and ``@T`` to the terminal.
    Both are opened for reading and writing: that never blocks, even when the holder is gone. Some shells read a pipe
    byte by byte, a system call each, so the lines of a cell are short and the functions long. The environment is
    reported last, under the number 0: nobody waits for it. TMOUT, after which some shells end that read no command,
    is 0 between cells; it and the prompts come last of all, as setting a read-only variable ends the function.
    """

    utility = b"\\command "
    special = b"\\"
    options: tuple[str, ...] = ("-i",)
    keys: tuple[bytes, bytes] | None = None
    """What is typed to run a cell, and to have its end reported again; None if both are lines in a pipe."""
    nothing = b""
    """Goes into the pipe when a shell asks what to run and there is nothing: the key was another's."""
    start_up = b'[ -z "${ENV-}" ] || [ ! -r "$ENV" ] || . "$ENV"'
    """The cell that reads the user's start-up file."""
    lost = "functions, aliases, unexported variables and jobs"
    prepare = b"PS1= PS2= __sm_n=0 __sm_i=0; @Strap '' INT\n"
    functions = rb"""
__sm_b() { __sm_i=$1; [ -z "${__sm_tm-}" ] || { TMOUT=$__sm_tm; __sm_tm=; }
 @Uprintf '\001B\t%s\t\0' "$1" @F; @Uprintf '\033]7788;%s\007' "$2" @T; }
__sm_r() { return "$1"; }
__sm_t() { @Uprintf '\001T\t%s\t' "$1"; }
__sm_v() { @Uprintf '\001V\t%s\t' "$1"; @Sexport -p; @Uprintf '\0'; }
__sm_x() { { __sm_v "$__sm_i"; @Uprintf '\001X\t%s\t%s\0' "$__sm_i" "$PWD"; } @F 2>/dev/null; }
__sm_e() { @Strap '' INT; __sm_f=$-; @Sset +exuv
 @Uprintf '\001E\t%s\t%s\t%s\t%s\0' "$1" "$2" "$__sm_f" "$PWD" @F
 @Uprintf '\033]7788;%s\007' "$3" @T; __sm_n=$1; __sm_v 0 @F; [ -z "$PS1$PS2" ] || PS1= PS2=
 [ -z "${TMOUT-}" ] || { __sm_tn=$TMOUT; TMOUT=0; __sm_tm=$__sm_tn; }; }
"""
    exit_hook = b"@Strap __sm_x EXIT\n"
    ending = (
        b'{ __sm_s=@A$?;[ "$__sm_n" = @N ]||{ { __sm_t @N;@Strap;@Uprintf "\\0";} @F;'
        b'__sm_e @N "$__sm_s" @E;};__sm_r "${__sm_s#A}";} >/dev/null 2>&1'
    )

    def __init__(self, program: bytes, directory: bytes, *, rc: bool) -> None:
        self.argv = [program, *[one.encode() for one in self.options]]
        self.program, self.directory, self.rc = program, directory, rc
        self.tty = b""
        self.given = b""
        """Functions that whoever starts the session gives its shell (see ``showing``)."""
        self._untrap, self._set, self._ending = map(self.fill, (b"@Strap - INT", b"@Sset -", self.ending))

    def without_rc(self) -> Dialect:
        """The same shell, its start-up file not read."""
        other = type(self)(self.program, self.directory, rc=False)
        other.given = self.given
        return other

    def files(self) -> dict[str, bytes]:
        """Names and texts of the files that the lines refer to; good for the terminal given to ``init`` last."""
        return {}

    def init(self, tty: bytes) -> bytes:
        """What makes a fresh shell on that terminal ready for commands."""
        self.tty = quoted(tty)
        places = b"__sm_fifo=%s __sm_tty=%s\n" % (quoted(self.directory + b"/records"), self.tty)
        return places + self.fill(self.prepare + self.functions + self.exit_hook) + self.given_functions()

    def given_functions(self) -> bytes:
        """``given``, for the terminal given to ``init`` last."""
        return self.given.replace(b"@TTY@", self.tty)

    def fill(self, template: bytes) -> bytes:
        """A template with its places filled."""
        places = ((b"@U", self.utility), (b"@S", self.special), (b"@F", b'1<>"$__sm_fifo"'), (b"@T", b'1<>"$__sm_tty"'))
        for place, text in places:
            template = template.replace(place, text)
        return template

    def command(self, cell: Cell) -> tuple[bytes, bytes]:
        """What runs a cell: a line, and what the shell gets once that has begun, lines that report the end again."""
        flags = bytes(one for one in cell.flags if one in b"euvx")
        before = (listed_trap(cell.traps, b"INT") or self._untrap) + b"; "  # or an interrupt at the begin is lost
        if flags:
            before += self._set + flags + b"; "
        before += b"__sm_b %d %s; " % (cell.number, cell.begin)
        if b"e" not in flags:  # with it, a status that is not 0 would end the shell here
            before += b"__sm_r %d; " % cell.last
        ending = self._ending.replace(b"@N", b"%d" % cell.number).replace(b"@E", cell.end)
        first = self.run(cell, before, traced=b"x" in flags or b"v" in flags)
        return first + b" " + ending.replace(b"@A", b"") + b"\n", b"\n" + ending.replace(b"@A", b"A") + b"\n"

    def run(self, cell: Cell, before: bytes, *, traced: bool) -> bytes:
        """The part of the line that runs the text, ``before`` coming first and unheard."""
        run = self.special + b"eval " + quoted(cell.text) + b" <" + self.tty
        if traced or listed_trap(cell.traps, b"DEBUG"):
            return self.muffled(before + run)
        return b"{ " + before + b"} >/dev/null 2>&1; " + run + b" ;"

    def muffled(self, run: bytes) -> bytes:
        """The same where a trace or trap would show the words of ours: their output is thrown away with them."""
        return b"{ " + run + b" >" + self.tty + b" 2>&1; } >/dev/null 2>&1;"

    def restore(self, environment: bytes, cwd: bytes) -> bytes:
        """A cell that brings a fresh shell to the exported environment and the directory of an earlier one."""
        return environment + b"\n" + self.utility + b"cd -- " + quoted(cwd) + b"\n"


class Posix(Dialect):
    """dash, ksh and whatever is called sh.

    ksh opens the user's history at its start and keeps every line in it that it reads: it gets another file.
    """

    def __init__(self, program: bytes, directory: bytes, *, rc: bool) -> None:
        super().__init__(program, directory, rc=rc)
        if b"ksh" in program.rpartition(b"/")[2]:
            self.argv = [b"/bin/sh", b"-c", b'HISTFILE=/dev/null exec "$@"', b"sh", *self.argv]
            self.prepare = b"@Stypeset +x HISTFILE\n" + self.prepare
