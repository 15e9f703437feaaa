"""What the programs of the conformance checks do: as real programs, and the same as functions of the fake backend."""

from __future__ import annotations

import signal

from session_magics.testing.scripted import FakeTerminal, Signalled

BEHAVIOURS = r"""
import os, signal, sys, termios, time, tty
what, words = sys.argv[1], sys.argv[2:]
if what in ("echo", "deaf"):
    tty.setraw(0)
mode = termios.tcgetattr(0)
mode[1] &= ~termios.OPOST
termios.tcsetattr(0, termios.TCSANOW, mode)
tty_out = os.fdopen(1, "wb", 0)
def say(data):
    while data:
        data = data[tty_out.write(data):]
def size(*_):
    rows = os.get_terminal_size(0)
    say(b"%dx%d\n" % (rows.lines, rows.columns))
for name in ("SIGINT", "SIGTERM", "SIGHUP"):
    number = getattr(signal, name)
    signal.signal(number, signal.SIG_IGN if what == "stubborn" else signal.SIG_DFL)
if what == "print":
    say(bytes.fromhex(words[0]) + b"0123456789abcdef" * int(words[1]))
    os._exit(int(words[2]))
if what == "die":
    os.kill(os.getpid(), int(words[0]))
if what == "gentle":
    signal.signal(signal.SIGTERM, lambda *_: (say(b"bye\n"), os._exit(7)))
if what == "size":
    signal.signal(signal.SIGWINCH, size)
say(b"ready\n")
if what == "size":
    size()
if what == "echo":
    data = b""
    while len(data) < int(words[0]):
        data += os.read(0, 65536)
    say(data.hex().encode())
    os._exit(0)
while True:
    time.sleep(60)
"""
"""A Python program: ``print HEX TIMES CODE``, ``die SIGNAL``, ``echo BYTES``, ``gentle``, ``size``, ``stubborn``,
``deaf``, ``sleep``. All but the first two print "ready" once they can take what comes."""

CELLS = {"true": ":", "three": "printf hello; (exit 3)", "wait": "sleep 60"}
"""Shell text of the cells that the checks run."""


def fake_behaviour(terminal: FakeTerminal) -> int:
    """The same as BEHAVIOURS, for a FakeBackend."""
    _, what, *words = terminal.argv
    if what == "print":
        terminal.write(bytes.fromhex(words[0]) + b"0123456789abcdef" * int(words[1]))
        return int(words[2])
    if what == "die":
        raise Signalled(int(words[0]))
    terminal.write("ready\n")
    if what == "echo":
        data = b""
        while len(data) < int(words[0]):
            data += terminal.read()
        terminal.write(data.hex())
        return 0
    while True:
        if what == "size":
            terminal.write("{}x{}\n".format(*terminal.size))
        try:
            terminal.pause()
        except Signalled as signalled:
            if what == "gentle" and signalled.number == signal.SIGTERM:
                terminal.write("bye\n")
                return 7
            if what != "stubborn" or signalled.number == signal.SIGKILL:
                raise


def fake_cell(terminal: FakeTerminal, text: str) -> int:
    """The same as CELLS, for a FakeBackend."""
    if text == CELLS["three"]:
        terminal.write("hello")
        return 3
    if text == CELLS["wait"]:
        terminal.pause()
    return 0
