"""A host's turns and pauses, without a network."""

import asyncio
import math
from datetime import UTC, datetime
from email.utils import format_datetime

import pytest

from salticus.fetch.base import Answer
from salticus.fetch.hosts import HostLimiter, jitter, retry_after
from salticus.types import HostState, Status

NOW = 1_750_000_000.0
HOUR, DAY = 3600.0, 86_400.0


def host(delay: float = 2.0, concurrency: int = 1, start: float = 0.0) -> HostLimiter:
    return HostLimiter("a.org", delay=delay, concurrency=concurrency, start=start)


def answer(code: int = 200, status: Status = Status.OK, after: str | None = None) -> Answer:
    return Answer("http://a.org/", status, NOW, code=code, retry_after=after)


def judged(gate: HostLimiter, *answers: Answer) -> float:
    """Seconds that the host is left alone after the last of the answers."""
    for one in answers:
        gate.judge(one, seed=0)
        gate.slots.active += 1
        gate.leave(NOW)
    return gate.next_at - NOW


def test_a_new_host_waits_its_delay_from_the_start() -> None:
    gate = host(start=NOW)
    assert not gate.enter(NOW + 1.9)
    assert gate.enter(NOW + 2.0)


def test_the_delay_counts_from_the_answer_not_from_the_request() -> None:
    gate = host()
    assert gate.enter(NOW)
    gate.leave(NOW + 10)
    assert not gate.enter(NOW + 11.9)
    assert gate.enter(NOW + 12)


def test_with_a_delay_requests_do_not_overlap() -> None:
    gate = host(concurrency=8)
    assert gate.enter(NOW)
    assert not gate.enter(NOW + 100)


def test_without_a_delay_as_many_as_allowed() -> None:
    gate = host(delay=0.0, concurrency=2)
    assert [gate.enter(NOW) for _ in range(3)] == [True, True, False]
    gate.leave(NOW)
    assert gate.enter(NOW)


@pytest.mark.parametrize(
    ("text", "seconds"),
    [
        ("0", 0.0),
        ("120", 120.0),
        (" 7 ", 7.0),
        ("99999999999999999999", DAY),
        ("-5", 0.0),
        ("1.5", 0.0),
        ("soon", 0.0),
        ("²", 0.0),
        ("", 0.0),
        (None, 0.0),
        (format_datetime(datetime.fromtimestamp(NOW + 90, UTC), usegmt=True), 90.0),
        (format_datetime(datetime.fromtimestamp(NOW - 90, UTC), usegmt=True), 0.0),
        ("Fri, 31 Dec 9999 23:59:59 GMT", DAY),
        ("Fri, 31 Dec 0000 23:59:59 GMT", 0.0),
    ],
)
def test_retry_after(text: str | None, seconds: float) -> None:
    assert retry_after(answer(429, after=text)) == seconds


@pytest.mark.parametrize("code", [301, 403, 429, 500, 503])
def test_retry_after_is_honoured_whatever_the_code(code: int) -> None:
    assert judged(host(), answer(code, after="300")) == 300.0


def test_busy_hosts_are_left_alone_ever_longer_up_to_an_hour() -> None:
    gate = host()
    pauses = [judged(gate, answer(503)) for _ in range(14)]
    for k, pause in enumerate(pauses):
        assert min(2.0 * 2**k, HOUR) <= pause <= min(3.0 * 2**k, HOUR)
    assert pauses[-1] == HOUR


def test_busy_pauses_start_at_a_second() -> None:
    assert 1.0 <= judged(host(delay=0.0), answer(429)) <= 1.5


@pytest.mark.parametrize("bad", [answer(500), answer(0, Status.NETWORK), answer(0, Status.TIMEOUT)])
def test_repeated_failures_add_milder_pauses(bad: Answer) -> None:
    gate = host()
    pauses = [judged(gate, bad) for _ in range(12)]
    assert pauses[0] == 2.0, "the first failure costs no more than the delay"
    assert 2.0 <= pauses[1] <= 3.0
    assert 4.0 <= pauses[2] <= 6.0
    assert pauses[-1] == 300.0


@pytest.mark.parametrize(
    "fault", [answer(200, Status.BROKEN), answer(200, Status.TOO_LARGE), answer(0, Status.UNSAFE)]
)
def test_faults_of_a_page_are_not_its_hosts(fault: Answer) -> None:
    gate = host()
    assert judged(gate, fault, fault, fault) == 2.0
    assert gate.strikes == 0


@pytest.mark.parametrize("code", [200, 304, 302, 404])
def test_success_ends_the_strikes(code: int) -> None:
    gate = host()
    judged(gate, answer(503), answer(503))
    assert gate.strikes == 2
    judged(gate, answer(code))
    assert gate.strikes == 0


def test_jitter_depends_on_seed_host_and_strikes_alone() -> None:
    assert jitter(1, "a", 2) == jitter(1, "a", 2)
    draws = {jitter(s, h, k) for s in (1, 2) for h in ("a", "b") for k in (1, 2)}
    assert len(draws) == 8
    assert all(0 <= draw < 1 for draw in draws)


@pytest.mark.parametrize(
    ("next_at", "start", "seconds", "expected"),
    [
        (0.0, NOW, 20.0, 10.0),
        (NOW + 10, NOW, 20.0, 5.0),
        (NOW + 20, NOW, 20.0, 0.0),
        (NOW + 99, NOW, 20.0, 0.0),
        (0.0, NOW, 1.0, 0.5),
    ],
)
def test_capacity(next_at: float, start: float, seconds: float, expected: float) -> None:
    gate = host()
    gate.next_at = next_at
    assert gate.capacity(start, seconds) == expected


def test_capacity_without_a_delay() -> None:
    gate = host(delay=0.0)
    assert gate.capacity(NOW, 20.0) == math.inf
    gate.next_at = NOW + 30
    assert gate.capacity(NOW, 20.0) == 0.0
    assert gate.capacity(NOW, 40.0) == math.inf


def test_what_is_remembered_comes_back() -> None:
    before = host()
    before.robots.learn(
        Answer("", Status.OK, NOW, code=200, body=b"User-agent: *\nDisallow: /x\nCrawl-delay: 5"),
        NOW,
    )
    before.heed()
    judged(before, answer(503, after="600"))
    after = host(start=NOW + 1)
    after.recall(before.state(), NOW + 1)
    assert after.state() == before.state()
    assert after.delay == 5.0
    assert after.robots.refusal("http://a.org/x", NOW) is not None


def test_a_recalled_host_waits_its_delay_once_more() -> None:
    gate = host(start=NOW)
    gate.recall(HostState("a.org", next_at=NOW - 500), NOW)
    assert gate.next_at == NOW + 2.0


def test_times_that_cannot_be_are_cut() -> None:
    gate = host(start=NOW)
    gate.recall(HostState("a.org", next_at=NOW * 2, robots_code=404, robots_until=NOW * 2), NOW)
    assert gate.next_at == NOW + DAY
    assert gate.robots.until == NOW + DAY


def test_robots_raises_the_delay_and_never_lowers_it() -> None:
    gate = host(delay=2.0, start=NOW)
    for seconds, expected in ((10, 10.0), (1, 2.0)):
        rules = f"User-agent: *\nCrawl-delay: {seconds}\n".encode()
        gate.robots.learn(Answer("", Status.OK, NOW, code=200, body=rules), NOW)
        gate.heed()
        assert gate.delay == expected
    assert gate.next_at == NOW + 10.0, "the longer delay counts from the last answer"


def test_a_crawl_delay_ends_concurrency() -> None:
    gate = host(delay=0.0, concurrency=4)
    rules = b"User-agent: *\nCrawl-delay: 3\n"
    gate.robots.learn(Answer("", Status.OK, NOW, code=200, body=rules), NOW)
    gate.heed()
    assert gate.slots.limit == 1


def test_a_hopeless_turn_is_refused_at_once() -> None:
    async def main() -> None:
        gate = host(delay=100.0, start=NOW)
        assert not await gate.turn(NOW + 100, lambda: NOW)
        first = asyncio.create_task(gate.turn(math.inf, lambda: NOW))
        await asyncio.sleep(0)
        assert gate.earliest(NOW) == NOW + 200
        assert not await gate.turn(NOW + 200, lambda: NOW), "one is ahead already"
        first.cancel()
        await asyncio.gather(first, return_exceptions=True)
        assert gate.earliest(NOW) == NOW + 100
        assert gate.slots.active == 0

    asyncio.run(main())


def test_a_new_pause_sends_away_those_it_makes_hopeless() -> None:
    async def main() -> None:
        gate = host(delay=0.0)
        assert gate.enter(NOW)
        waiting = asyncio.create_task(gate.turn(NOW + 50, lambda: NOW))
        await asyncio.sleep(0)
        gate.judge(answer(429, after="60"), seed=0)
        assert await asyncio.wait_for(waiting, 600) is False

    asyncio.run(main())


def test_a_shut_host_gives_no_turns() -> None:
    async def main() -> None:
        gate = host(delay=100.0, start=NOW)
        waiting = [asyncio.create_task(gate.turn(math.inf, lambda: NOW)) for _ in range(3)]
        await asyncio.sleep(0)
        gate.shut()
        assert await asyncio.wait_for(asyncio.gather(*waiting), 600) == [False] * 3
        assert not await gate.turn(math.inf, lambda: NOW + 1000)
        assert gate.slots.active == 0

    asyncio.run(main())
