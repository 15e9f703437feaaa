"""What a holder is told when it is started: everything that is not, or must not be, on disk."""

from __future__ import annotations

from session_magics.holder import wire

END = b"end"
"""Last field of a message: whoever was killed while sending one has started nothing."""


class Launch:
    """One start of a session. Text is bytes as the system has it; the environment is complete."""

    def __init__(self, **fields: bytes) -> None:
        self.directory = fields["directory"]
        self.argv = wire.unpack(fields["argv"])
        self.env = wire.pairs(wire.unpack(fields["env"]))
        self.cwd = fields["cwd"]
        self.size = (int(fields["rows"]), int(fields["columns"]))
        self.generation = int(fields.get("generation", b"1"))
        self.restart = fields.get("restart", b"no").decode()
        self.max_restarts = (int(fields.get("max_restarts", b"0")), float(fields.get("restart_window", b"0")))
        """So many restarts by policy within so many seconds; 0: no limit, and no window."""
        self.shell = fields.get("shell", b"").decode()
        """The dialect, or nothing for a program."""
        self.hangup = bool(self.shell) or fields.get("hangup") == b"1"
        """Whether the program is an interactive shell, which a HUP ends and no TERM."""
        self.rc = fields.get("rc", b"1") == b"1"
        self.functions = fields.get("functions", b"")
        """What a shell is given beside the words of ours, at each start of it."""
        self.owner = (int(fields.get("owner_pid", b"0")), int(fields.get("owner_tick", b"0")))
        """Pid and start tick of the kernel that the session ends with; 0 for none."""
        self.parent = (int(fields.get("parent_pid", b"0")), int(fields.get("parent_tick", b"0")))
        """Pid and start tick of the program whose end stops the session; 0 for none."""
        self.again = wire.unpack(fields.get("again", b""))
        """The argv from the second generation on; nothing where it stays the same."""
        self.name_file = fields.get("name_file", b"")
        """The name's claim, to be given up with the owner."""
        self.tmux = fields.get("tmux", b"")
        """Path of the tmux that holds the terminal; nothing for a terminal of our own."""
        self.name = fields.get("name", b"")
        self.cap = int(fields.get("cap", b"0"))
        self.far = wire.pairs(wire.unpack(fields.get("far", b"")))
        """Where the program runs elsewhere: how to get there, see ``relay``; nothing for a holder."""
        self.forsaken = float(fields.get("forsaken", b"0"))
        """Seconds without any client after which all is ended; 0: never."""
        self.place = fields.get("place", b"").decode()
        """Where else the program runs, for messages; the fields below are about that."""
        self.control, self.client = wire.unpack(fields.get("control", b"")), wire.unpack(fields.get("client", b""))
        """Commands of this side that reach the place without Python there: by clean pipes, and on a terminal there."""
        self.near_env = wire.pairs(wire.unpack(fields.get("near_env", b"")))
        self.near_unset = wire.unpack(fields.get("near_unset", b""))
        self.near_cwd = fields.get("near_cwd", b"")
        """The same commands' environment, as far as it differs from ours, and directory."""
        self.cleanup = wire.unpack(fields.get("cleanup", b""))
        """A command of this side that gives up what was made there for the session; run at its very end."""
        self.unset = wire.unpack(fields.get("unset", b""))
        """Variables that the program shall not have, though the place has them."""

    @classmethod
    def parse(cls, message: bytes) -> Launch:
        """Read what ``encode`` wrote."""
        flat = wire.unpack(message)
        if flat[-1:] != [END]:
            raise wire.BadFrame("the launch message was cut short")
        flat.pop()
        return cls(**{key.decode(): value for key, value in wire.pairs(flat).items()})


def encode(**fields: bytes) -> bytes:
    """The message for a holder's standard input."""
    return wire.pack(*[part for key, value in fields.items() for part in (key.encode(), value)], END)
