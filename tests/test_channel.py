from __future__ import annotations

import random
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from session_magics.display import channel
from session_magics.display.channel import Channel
from session_magics.holder.logfile import LogWriter


class Page:
    """A port with views behind it, over a line that may lose messages. The time is its own."""

    def __init__(self, folder: Path) -> None:
        self.now = 1000.0
        self.messages: list[tuple[Mapping[str, Any], bytes]] = []
        self.channel = Channel(folder, lambda: None)

    def post(self, content: Mapping[str, Any], buffers: Sequence[bytes] = ()) -> None:
        self.messages.append((content, buffers[0] if buffers else b""))

    def say(self, kind: str, view: str = "a", **fields: object) -> None:
        self.channel.receive(self, {"t": kind, "view": view, **fields}, self.now)

    def step(self, seconds: float = 0.016) -> tuple[Mapping[str, Any], bytes] | None:
        """Let time pass; the message that is sent then."""
        self.now += seconds
        sent, _ = self.channel.step(self.now)
        return self.messages[-1] if sent else None


class Log:
    """A log that is written as a holder does."""

    def __init__(self, folder: Path) -> None:
        self.folder, self.data = folder, b""
        self.writer = LogWriter(str(folder))

    def write(self, size: int) -> None:
        data = random.Random(len(self.data)).randbytes(size)
        self.data += data
        self.writer.append(data)


@pytest.fixture
def log(tmp_path: Path) -> Log:
    return Log(tmp_path)


@pytest.fixture
def page(log: Log) -> Page:
    return Page(log.folder)


def begun(page: Page) -> None:
    page.say("sync", **{"from": -1, "s": 1})
    page.step()


def test_nothing_is_sent_to_nobody(log: Log, page: Page) -> None:
    log.write(1000)
    assert page.step() is None
    assert page.channel.step(page.now) == (False, None)


def test_a_view_is_answered_even_if_there_is_nothing_to_show(log: Log, page: Page) -> None:
    page.say("sync", **{"from": -1, "s": 7})
    assert page.step() == ({"t": "o", "v": ["a"], "p": 0, "o": 0, "s": 7, "reset": True}, b"")


def test_the_first_message_after_a_pause_goes_at_once_and_the_next_waits(log: Log, page: Page) -> None:
    begun(page)
    page.now += 1
    log.write(10)
    assert page.step(0) is not None
    log.write(10)
    assert page.step(0.001) is None
    assert page.step(channel.PACE) is not None


def test_a_view_that_does_not_answer_gets_one_window_and_no_more(log: Log, page: Page) -> None:
    begun(page)
    log.write(4 * channel.WINDOW_BYTES)
    sent = 0
    while (message := page.step()) and message[0]["t"] == "o":
        sent += len(message[1])
    assert sent == channel.WINDOW_BYTES
    page.now += channel.SILENCE
    assert page.step() is None
    page.say("ack", n=sent)
    assert page.step() is not None


def test_a_view_that_owes_an_answer_is_told_where_it_should_be(log: Log, page: Page) -> None:
    begun(page)
    log.write(10)
    page.step()
    assert page.step(0.1) is None
    assert page.step(channel.HEAD_EVERY) == ({"t": "head", "v": ["a"], "o": 10}, b"")


def test_a_view_that_was_cut_off_goes_on_where_it_is(log: Log, page: Page) -> None:
    begun(page)
    log.write(50)
    page.step()
    page.now += channel.SILENCE + 1
    log.write(50)
    assert page.step() is None
    page.say("here", n=0)
    message = page.step()
    assert message is not None
    assert (message[0]["p"], message[1]) == (0, log.data)


def test_views_at_the_same_place_share_messages(log: Log, page: Page) -> None:
    for view in ("a", "b"):
        page.say("sync", view, **{"from": -1, "s": 1})
        page.step()
    log.write(10)
    message = page.step()
    assert message is not None and message[0]["v"] == ["a", "b"]
    assert page.step() is None


def test_a_long_log_is_shown_from_a_line_near_its_end(log: Log, page: Page) -> None:
    log.write(3 * channel.REPLAY_BYTES)
    page.say("sync", **{"from": -1, "s": 1})
    message = page.step()
    assert message is not None
    begin = message[0]["p"]
    assert message[0]["reset"] and begin == message[0]["o"]
    assert 0 <= begin - (len(log.data) - channel.REPLAY_BYTES) <= channel.LINE_NEAR
    assert log.data[begin - 1 : begin] == b"\n"


def outrun(log: Log, page: Page) -> int:
    """A program that is too fast for a view; the offset that the view was taken to."""
    begun(page)
    log.write(channel.OUTRUN_BYTES + channel.WINDOW_BYTES)
    message = page.step(channel.GLIMPSE_EVERY)
    assert message is not None
    assert message[0]["p"] == 0 and message[0]["o"] >= len(log.data) - channel.GLIMPSE_BYTES
    assert message[0]["o"] + len(message[1]) == len(log.data)
    return len(log.data)


def test_a_view_of_a_program_too_fast_for_it_sees_glimpses(log: Log, page: Page) -> None:
    for _ in range(3):
        position = outrun(log, page) if not log.data else len(log.data)
        page.say("ack", n=position)
        log.write(2 * channel.CALM_BYTES)
        assert page.step(channel.GLIMPSE_EVERY / 2) is None
        message = page.step(channel.GLIMPSE_EVERY / 2)
        assert message is not None
        assert message[0]["p"] == position and len(message[1]) <= channel.GLIMPSE_BYTES
        assert message[0]["o"] + len(message[1]) == len(log.data)


def test_it_gets_the_output_anew_once_the_program_is_slower(log: Log, page: Page) -> None:
    page.say("ack", n=outrun(log, page))
    log.write(100)
    message = page.step(channel.GLIMPSE_EVERY)
    assert message is not None
    assert message[0]["t"] == "head" and message[0]["o"] == len(log.data) - 99
    page.say("sync", **{"from": len(log.data) - 100, "s": 2})
    answer = page.step()
    assert answer is not None
    assert answer[0]["reset"] and answer[0]["s"] == 2
    assert 0 <= answer[0]["o"] - (len(log.data) - channel.REPLAY_BYTES) <= channel.LINE_NEAR
    shown = answer[1]
    while (message := page.step()) and message[0]["t"] == "o":
        shown += message[1]
        page.say("ack", n=message[0]["o"] + len(message[1]))
    assert shown == log.data[answer[0]["o"] :]


def test_a_glimpse_that_was_lost_is_missed(log: Log, page: Page) -> None:
    position = outrun(log, page)
    assert page.step(channel.GLIMPSE_EVERY) is None
    message = page.step(channel.HEAD_EVERY)
    assert message is not None
    assert message[0]["p"] == position


def test_the_size_follows_the_newest_view_and_then_the_one_that_is_used(log: Log, page: Page) -> None:
    for view in ("a", "b"):
        page.say("sync", view, **{"from": -1, "s": 1})
    assert page.channel.owner == "b"
    page.channel.own("a")
    assert page.channel.owner == "a"
    page.say("bye", "a")
    assert page.channel.owner == "b"


def test_the_size_never_follows_a_view_that_only_looks(log: Log, page: Page) -> None:
    page.channel.receive(page, {"t": "sync", "view": "a", "from": -1, "s": 1}, page.now)
    page.channel.receive(page, {"t": "sync", "view": "b", "from": -1, "s": 1}, page.now, touches=False)
    assert page.channel.owner == "a"
    page.say("bye", "a")
    assert page.channel.owner == ""


@settings(deadline=None, max_examples=60)
@given(data=st.data(), losses=st.floats(0, 0.5))
def test_everything_arrives_once_and_in_order_whatever_is_lost(
    tmp_path_factory: pytest.TempPathFactory, data: st.DataObject, losses: float
) -> None:
    log = Log(tmp_path_factory.mktemp("log"))
    page = Page(log.folder)
    chance = data.draw(st.randoms(use_true_random=False))
    shown, request, waiting, asked = b"", 0, True, 0.0

    def ask() -> None:
        nonlocal request, waiting, asked
        request, waiting, asked = request + 1, True, page.now
        if chance.random() >= losses:
            page.say("sync", **{"from": len(shown) if shown else -1, "s": request})

    ask()
    for step in range(4000):
        if step < 50:
            log.write(chance.randrange(0, 5000))
        message = page.step(0.1)
        if waiting and page.now - asked > 3:
            ask()
        if message is None or chance.random() < losses:
            if step > 50 and len(shown) == len(log.data):
                break
            if step % 200 == 199 and not waiting:
                page.say("here", n=len(shown))
            continue
        content, piece = message
        if content.get("s") == request and waiting:
            waiting = False
            shown = b"" if content["reset"] else shown
        if waiting:
            continue
        if content["t"] == "head":
            if content["o"] > len(shown):
                ask()
        elif content["p"] > len(shown):
            ask()
        else:
            shown += piece[len(shown) - content["o"] :]
            if chance.random() >= losses:
                page.say("ack", n=len(shown))
    page.channel.close()
    log.writer.close()
    assert shown == log.data
