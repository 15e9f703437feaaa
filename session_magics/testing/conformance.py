"""Checks of what every backend has to do, one function each. Public through ``session_magics.testing``."""

from __future__ import annotations

import select
import signal
import threading
import time
from collections.abc import Callable

from session_magics.errors import SessionBusy, SessionNotRunning, StartFailed
from session_magics.model import BackingOff, Command, Exited, FailedToStart, GaveUp, RestartLimit, Running
from session_magics.news import NO_OFFSET
from session_magics.registry import Registry
from session_magics.testing.behaviour import CELLS
from session_magics.testing.fake import FakeBackend
from session_magics.testing.rig import LIMIT, Rig, ended, insist, outcome, raises, receive_until, same

QUIET = 0.15
"""Seconds for which nothing must happen where nothing should."""


# ------------------------------------------------------------------ programs


def output_is_exact_from_the_first_byte(rig: Rig) -> None:
    """Every byte value, then 200 kB, reach the log in order and are there when the end is."""
    data = bytes(range(256)) + b"0123456789abcdef" * 12_800
    with rig.started("print", data[:256].hex(), 12_800, 0, ready=False) as session:
        ended(session)
        same(session.output(), data, "output")


def an_end_is_a_code_or_a_signal(rig: Rig) -> None:
    """Both are on record exactly, also for a program that ends at once."""
    for code in (0, 3, 255):
        with rig.started("print", "", 0, code, ready=False) as session:
            same(ended(session).code, code, "exit code")
    for number in (signal.SIGTERM, signal.SIGKILL):
        with rig.started("die", int(number), ready=False) as session:
            state = ended(session)
            same((state.code, state.signal), (None, number), "code and signal")
            same(session.wait(), -number, "wait")


def a_program_that_is_not_there_fails_to_start(rig: Rig) -> None:
    """The error and the record name it."""
    try:
        rig.registry.start("check-missing", Command(("/no/such/program",)))
    except StartFailed as error:
        same("/no/such/program" in error.reason, True, f"reason {error.reason!r} names the program")
    else:
        raise AssertionError("a missing program started")
    state = rig.registry.get("check-missing").state()
    same(isinstance(state, FailedToStart), True, f"state {state}")
    rig.registry.remove("check-missing")


def input_arrives_exactly(rig: Rig) -> None:
    """Every byte value, in two pieces, to a program on a raw terminal."""
    data = bytes(range(256)) * 8
    with rig.started("echo", len(data)) as session, session.link() as link:
        link.send(data[:1000])
        link.send(data[1000:])
        ended(session)
        same(session.output()[len(b"ready\n") :].decode(), data.hex(), "input as the program got it")


def input_that_nobody_reads_is_refused_as_busy(rig: Rig) -> None:
    """All or nothing: a refused send has sent nothing, and the link goes on."""
    with rig.started("deaf") as session, session.link() as link:

        def flood() -> None:
            for _ in range(64):
                link.send(b"x" * 65536)

        raises(SessionBusy, flood, "4 MB for a program that does not read")
        same(isinstance(session.state(), Running), True, "still running")
        link.resize(30, 90)


def a_resize_is_seen_by_the_program(rig: Rig) -> None:
    """At the start and later, also after a restart."""
    with rig.started("size", size=(31, 101)) as session:
        session.wait_for("31x101", LIMIT)
        session.resize(40, 120)
        session.wait_for("40x120", LIMIT)
        begin = len(session.output())
        with session.link() as link:
            link.restart(LIMIT)
        session.wait_for("40x120", LIMIT, begin=begin)
        same(session.info().size, (40, 120), "size in the record")


def an_interrupt_reaches_the_program(rig: Rig) -> None:
    """As SIGINT."""
    with rig.started("sleep") as session:
        session.interrupt()
        same(ended(session).signal, signal.SIGINT, "signal")


def insisting_interrupts_are_harder(rig: Rig) -> None:
    """INT, TERM, KILL: a program that ignores the first two ends all the same."""
    with rig.started("stubborn") as session:
        insist(session.interrupt)
        same(ended(session).signal, signal.SIGKILL, "signal")


# ---------------------------------------------------------------------- ends


def a_stop_asks_first(rig: Rig) -> None:
    """A program may end in its own way within the grace; the stop returns with the end on record."""
    with rig.started("gentle") as session:
        state = session.stop(LIMIT)
        same(isinstance(state, Exited) and state.code, 7, "exit code")
        same(session.output().endswith(b"bye\n"), True, "its last words are in the log")


def a_stop_forces_after_the_grace(rig: Rig) -> None:
    """Not before it, and without another limit."""
    with rig.started("stubborn") as session:
        began = time.monotonic()
        state = session.stop(0.3)
        same(isinstance(state, Exited) and state.signal, signal.SIGKILL, "signal")
        same(0.25 < time.monotonic() - began < LIMIT, True, f"stopped after {time.monotonic() - began:.2f} s, in time")


def a_stop_now_cuts_a_grace_short(rig: Rig) -> None:
    """Both stops return."""
    with rig.started("stubborn") as session:
        waiting = threading.Thread(target=session.stop, args=(60.0,))
        with session.link() as link:
            waiting.start()
            same(link.stop(0.0, hurry=True), (), "survivors")
        waiting.join(LIMIT)
        same(waiting.is_alive(), False, "the patient stop still waits")


def a_dead_session_cannot_be_reached(rig: Rig) -> None:
    """Connecting raises, open links end, and stopping again is harmless."""
    with rig.started("sleep") as session, session.link() as link:
        session.stop(now=True)
        raises(SessionNotRunning, session.connect, "connecting through the session")
        raises(SessionNotRunning, lambda: rig.registry.backend.connect(session.directory, "gone"), "connecting")

        def drain() -> None:
            while link.receive(LIMIT):
                pass

        raises(SessionNotRunning, drain, "receiving on a link whose holder has gone")
        same(bool(select.select([link], [], [], 0)[0]), True, "the link stays readable")
        raises(SessionNotRunning, lambda: link.send(b"x"), "sending")
        same(isinstance(session.stop(), Exited), True, "state after a second stop")


def force_ends_a_session(rig: Rig) -> None:
    """Without asking, and it is harmless when nothing is left."""
    with rig.started("stubborn") as session:
        same(tuple(rig.registry.backend.force(session.directory, session.id)), (), "survivors")
        same(ended(session).signal, signal.SIGKILL, "signal")
        same(tuple(rig.registry.backend.force(session.directory, session.id)), (), "survivors of nothing")


def a_restart_is_the_next_generation(rig: Rig) -> None:
    """Same id and log, another pid, and the links stay."""
    with rig.started("sleep") as session, session.link() as link:
        before, begin = session.info(), len(session.output())
        same(link.restart(LIMIT), before.generation + 1, "generation")
        session.wait_for("ready", LIMIT, begin=begin)
        after = session.info()
        same((after.id, after.running, after.pid != before.pid), (before.id, True, True), "id, running, another pid")
        link.watch(0, 0)
        receive_until(link, lambda: link.log_end, "a bell on the old link")


def a_policy_starts_a_program_again(rig: Rig) -> None:
    """After a failure, with the state telling so; a stop ends that."""
    with rig.started("print", "66", 0, 3, ready=False, restart="on-failure") as session:
        with session.news() as news:
            while session.info().generation < 2:
                same(news.wait(NO_OFFSET, time.monotonic() + LIMIT), True, "a second generation comes")
        session.stop(now=True)
        same(isinstance(session.state(), BackingOff | Running), False, "stopped for good")


def a_policy_gives_up_at_its_limit(rig: Rig) -> None:
    """The state tells so, with the status of the last end; a stop leaves it as it is, and a restart begins anew."""
    options = {"restart": "always", "max_restarts": RestartLimit(1)}
    with rig.started("print", "66", 0, 3, ready=False, **options) as session:
        for generation in (2, 4):
            same(session.wait(LIMIT), 3, "status")
            state = session.settled()
            same(isinstance(state, GaveUp) and (state.code, state.signal, state.restarts), (3, None, 1), "given up")
            same(session.stop(), state, "state after a stop")
            same(session.info().generation, generation, "generation")
            if generation == 2:
                rig.registry.restart(session.name)


def a_restart_may_bring_another_program(rig: Rig) -> None:
    """It is the one that every later generation starts, too."""
    with rig.started("print", "66", 0, 3, ready=False, restart="always") as session:
        same(session.wait_for("f", LIMIT), "f", "output of the first program")
        with session.link() as link:
            link.restart(LIMIT, rig.argv("print", "67", 0, 3))
        with session.news() as news:
            while not session.output().endswith(b"gg"):
                same(news.wait(NO_OFFSET, time.monotonic() + LIMIT), True, "two generations of the second program")


def a_group_is_stopped_by_its_label(rig: Rig) -> None:
    """All that carry it, and no other."""
    labels = {"crew": "a", "part": "b"}
    with (
        rig.started("sleep", labels=labels) as one,
        rig.started("gentle", labels=labels) as other,
        rig.started("stubborn", labels={"crew": "b"}) as stranger,
    ):
        same(rig.registry.stop_all({"crew": "a"}, grace=LIMIT), [one.name, other.name], "stopped")
        same([isinstance(session.state(), Exited) for session in (one, other)], [True, True], "both have ended")
        same(isinstance(stranger.state(), Running), True, "another one runs")
        same(rig.registry.stop_all({"crew": "a"}), [], "stopped a second time")


# --------------------------------------------------------------------- links


def the_state_is_read_from_the_directory_alone(rig: Rig) -> None:
    """Another registry, which knows no backend that could answer, tells the same."""
    with rig.started("sleep") as session:
        stranger = Registry(rig.registry.store.root, backend=FakeBackend())
        same(stranger.get(session.name).state(), session.state(), "state while it runs")
        session.stop(now=True)
        same(stranger.get(session.name).state(), session.state(), "state after the end")


def two_links_serve_two_callers(rig: Rig) -> None:
    """Both send, both are rung, and one that hangs up does not hurt the other."""
    with rig.started("echo", 6) as session, session.link() as one:
        with session.link() as other:
            for link in (one, other):
                link.watch(0, NO_OFFSET)
                receive_until(link, lambda link=link: link.log_end, "a bell")  # type: ignore[misc]
            one.send(b"abc")
            other.send(b"de")
        one.send(b"f")
        ended(session)
        same(session.output(), b"ready\n" + b"abcdef".hex().encode(), "input of both")


def a_bell_rings_once_for_each_watch(rig: Rig) -> None:
    """At once for what is there already, not at all for what is not, and not twice."""
    with rig.started("echo", 2) as session, session.link() as link:
        end = len(session.output())
        link.watch(end, NO_OFFSET)
        same(link.receive(QUIET), False, "something came though nothing was written")
        link.watch(end - 1, NO_OFFSET)
        receive_until(link, lambda: link.log_end >= end, "a bell for what is there already")
        link.watch(NO_OFFSET, NO_OFFSET)
        link.resize(30, 90)
        same(link.receive(QUIET), False, "a bell for what was not watched")
        link.watch(NO_OFFSET, link.index_size)
        link.resize(31, 91)
        receive_until(link, lambda: link.index_size, "a bell for an event")
        rung = link.index_size
        link.resize(32, 92)
        same((link.receive(QUIET), link.index_size), (False, rung), "what came after the one bell")


# --------------------------------------------------------------------- cells


def a_cell_begins_and_finishes(rig: Rig) -> None:
    """Its output is a slice of the log, its status exact, and its events are in the index."""
    with rig.cells() as link:
        ticket = link.run(CELLS["three"])
        fields = outcome(link, ticket)
        same(fields[3:5], [b"3", b"done"], "status and state")
        session = rig.registry.get("check-cells")
        same(session.output(int(fields[1]), int(fields[2])), b"hello", "output")
        same(link.finished(ticket), None, "the outcome, handed out a second time")
        same(outcome(link, link.run(CELLS["true"]))[3], b"0", "status of the next cell")


def a_second_cell_is_refused_as_busy(rig: Rig) -> None:
    """The first goes on, and an interrupt ends it and not the shell."""
    with rig.cells() as link, rig.registry.get("check-cells").link() as other:
        ticket = link.run(CELLS["wait"])
        receive_until(link, lambda: link.begun(ticket), "the beginning")
        raises(SessionBusy, lambda: outcome(other, other.run(CELLS["true"])), "a second cell")
        link.interrupt()
        same(outcome(link, ticket)[3], b"130", "status of the interrupted cell")
        same(outcome(other, other.run(CELLS["true"]))[3], b"0", "status of a cell after it")


CHECKS: tuple[Callable[[Rig], None], ...] = (
    output_is_exact_from_the_first_byte,
    an_end_is_a_code_or_a_signal,
    a_program_that_is_not_there_fails_to_start,
    input_arrives_exactly,
    input_that_nobody_reads_is_refused_as_busy,
    a_resize_is_seen_by_the_program,
    an_interrupt_reaches_the_program,
    insisting_interrupts_are_harder,
    a_stop_asks_first,
    a_stop_forces_after_the_grace,
    a_stop_now_cuts_a_grace_short,
    a_dead_session_cannot_be_reached,
    force_ends_a_session,
    a_restart_is_the_next_generation,
    a_policy_starts_a_program_again,
    a_policy_gives_up_at_its_limit,
    a_restart_may_bring_another_program,
    a_group_is_stopped_by_its_label,
    the_state_is_read_from_the_directory_alone,
    two_links_serve_two_callers,
    a_bell_rings_once_for_each_watch,
    a_cell_begins_and_finishes,
    a_second_cell_is_refused_as_busy,
)
"""Every check; each takes a Rig."""
