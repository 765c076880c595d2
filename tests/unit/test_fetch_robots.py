"""What robots.txt allows, and for how long its word holds."""

import pytest
from effort import within

from salticus.fetch.base import Answer
from salticus.fetch.robots import Robots
from salticus.types import Status

URL = "http://a.org/x"
HOUR, DAY = 3600.0, 86_400.0
RULES = b"User-agent: *\nDisallow: /x\n"


def answer(code: int = 200, body: bytes = b"", status: Status = Status.OK) -> Answer:
    fault = None if status is Status.OK else "it broke"
    return Answer("http://a.org/robots.txt", status, 0.0, code=code, body=body, fault=fault)


def learned(*answers: Answer, at: float = 0.0) -> Robots:
    robots = Robots()
    for one in answers:
        robots.learn(one, at)
    return robots


def allowed(robots: Robots, url: str = URL, at: float = 1.0) -> bool:
    return robots.refusal(url, at) is None


def test_nothing_is_allowed_before_it_was_read() -> None:
    robots = Robots()
    assert robots.due(0.0)
    assert not allowed(robots)


def test_rules_are_followed() -> None:
    robots = learned(answer(body=RULES))
    assert not allowed(robots)
    assert allowed(robots, "http://a.org/y")
    assert robots.free_until == 0.0


@pytest.mark.parametrize("code", [400, 401, 403, 404, 410, 301])
def test_no_rules_allow_all(code: int) -> None:
    robots = learned(answer(code, body=RULES))
    assert allowed(robots)
    assert robots.free_until == DAY


@pytest.mark.parametrize("code", [429, 500, 503])
def test_unreachable_allows_nothing(code: int) -> None:
    robots = learned(answer(code))
    assert not allowed(robots)
    assert robots.code == code


@pytest.mark.parametrize("status", [Status.NETWORK, Status.TIMEOUT, Status.BROKEN])
def test_failures_allow_nothing_and_say_why(status: Status) -> None:
    refusal = learned(answer(0, status=status)).refusal(URL, 1.0)
    assert refusal == (status, "robots.txt could not be reached: it broke")


@pytest.mark.parametrize("code", [200, 206, 301, 403, 404])
@pytest.mark.parametrize("status", [Status.NETWORK, Status.TIMEOUT, Status.BROKEN])
def test_an_answer_that_broke_off_allows_nothing_whatever_its_code(
    code: int, status: Status
) -> None:
    robots = learned(answer(code, RULES, status))
    refusal = robots.refusal(URL, 1.0)
    assert refusal is not None
    assert refusal[0] is status
    assert robots.free_until == 0.0
    again = Robots(robots.code, robots.text, robots.until)
    assert not allowed(again), "nor after a restart"
    assert not allowed(again, at=3 * DAY)


def test_rules_read_before_outlast_a_body_that_cannot_be_read() -> None:
    robots = learned(answer(body=RULES))
    robots.learn(answer(200, b"", Status.BROKEN), DAY)
    assert allowed(robots, "http://a.org/y", DAY + 1)
    assert not allowed(robots, URL, DAY + 1)
    assert robots.due(DAY + 60)


def test_a_host_off_limits_is_unsafe_and_not_remembered_as_closed() -> None:
    robots = learned(answer(0, status=Status.UNSAFE))
    assert robots.refusal(URL, 1.0) == (Status.UNSAFE, "it broke")
    assert robots.code is None


@pytest.mark.parametrize(
    "body",
    [
        b"",
        b"<html><body>Not found</body></html>",
        b"\x00\xff\xfe" * 100,
        b"Disallow: /",
        b"User-agent: other\nDisallow: /",
        b"User-agent: *\nDisallow:\n",
    ],
)
def test_rubbish_and_rules_for_others_allow_all(body: bytes) -> None:
    assert allowed(learned(answer(body=body)))


@pytest.mark.parametrize(
    ("agent", "ours"),
    [
        ("Salticus", True),
        ("salticus", True),
        ("SALTICUS/2.0", True),
        ("*", True),
        ("Salt", False),
        ("Salticusbot", False),
        ("s", False),
    ],
)
def test_agents_are_whole_tokens(agent: str, *, ours: bool) -> None:
    robots = learned(answer(body=f"User-agent: {agent}\nDisallow: /\n".encode()))
    assert allowed(robots) is not ours


def test_our_own_group_outweighs_the_general_one() -> None:
    robots = learned(answer(body=RULES + b"\nUser-agent: Salticus\nDisallow: /y\n"))
    assert allowed(robots)
    assert not allowed(robots, "http://a.org/y")


def test_a_byte_order_mark_and_misspellings_do_not_hide_a_rule() -> None:
    assert not allowed(learned(answer(body=b"\xef\xbb\xbf" + RULES)))
    assert not allowed(learned(answer(body=b"User-agent: *\nDiasllow: /x\n")))


def test_wildcards_and_the_longest_match() -> None:
    robots = learned(answer(body=b"User-agent: *\nDisallow: /*.pdf$\nDisallow: /a\nAllow: /a/b\n"))
    assert not allowed(robots, "http://a.org/q/r.pdf")
    assert allowed(robots, "http://a.org/q/r.pdf?x")
    assert not allowed(robots, "http://a.org/a/c")
    assert allowed(robots, "http://a.org/a/b/c")


def test_only_the_first_500_kib_count_and_no_line_is_cut() -> None:
    start = b"User-agent: *\nDisallow: /first\n".ljust(512_000 - len(b"\nDisallow: /x"), b"#")
    robots = learned(answer(body=start + b"\nDisallow: /x/only/this\nDisallow: /x\n"))
    assert not allowed(robots, "http://a.org/first")
    assert allowed(robots), "neither the cut line nor what follows it counts"


def test_an_answer_holds_for_a_day() -> None:
    robots = learned(answer(body=RULES))
    assert not robots.due(DAY - 1)
    assert robots.due(DAY)


def test_it_is_asked_again_after_doubling_pauses_up_to_an_hour() -> None:
    robots, now, pauses = Robots(), 0.0, []
    for _ in range(9):
        robots.learn(answer(500), now)
        start = now
        while not robots.due(now):
            now += 60.0
        pauses.append(now - start)
    assert pauses == [60, 120, 240, 480, 960, 1920, HOUR, HOUR, HOUR]


def test_read_rules_stay_in_force_while_unreachable_up_to_a_week() -> None:
    robots = learned(answer(body=RULES))
    robots.learn(answer(500), DAY)
    assert not robots.due(DAY + 59)
    assert allowed(robots, "http://a.org/y", DAY + 59)
    assert not allowed(robots, URL, DAY + 59)
    assert allowed(robots, "http://a.org/y", 7 * DAY - 1)
    assert not allowed(robots, "http://a.org/y", 7 * DAY)
    assert (robots.code, robots.until) == (200, DAY)


def test_success_forgets_failures() -> None:
    robots = learned(answer(500), answer(500), answer(404), answer(500))
    assert robots.code == 404
    robots.learn(answer(500), DAY)
    assert robots.due(DAY + 120)


@pytest.mark.parametrize(
    ("line", "seconds"),
    [
        ("Crawl-delay: 7", 7.0),
        ("crawl-delay: 0.5", 0.5),
        ("Crawl-delay: 1e12", DAY),
        ("Crawl-delay: nan", 0.0),
        ("Crawl-delay: -3", 0.0),
        ("Crawl-delay: soon", 0.0),
        ("", 0.0),
    ],
)
def test_crawl_delay(line: str, seconds: float) -> None:
    assert learned(answer(body=f"User-agent: *\n{line}\n".encode())).delay() == seconds


def test_crawl_delay_for_others_does_not_matter() -> None:
    assert learned(answer(body=b"User-agent: other\nCrawl-delay: 7\n")).delay() == 0.0


def test_a_file_of_many_agents_with_many_rules_is_read_in_no_time() -> None:
    agents = "".join(f"User-agent: a{i}\n" for i in range(15_000))
    rules = "".join(f"Disallow: /{i}\n" for i in range(15_000))
    robots = learned(answer(body=(agents + rules).encode()))
    with within(100):  # it would be minutes if rules were multiplied
        assert allowed(robots)


# -------------------------------------------------------------------------------- hostile files


@pytest.mark.parametrize(
    "body",
    [
        RULES.decode().encode("utf-16"),
        RULES.decode().encode("utf-16-le"),
        RULES.decode().encode("utf-16-be"),
        b"\xef\xbb\xbf" + RULES,
        b"\xff\xfe" + RULES.decode().encode("utf-16-le"),
        b"\xfe\xff" + RULES.decode().encode("utf-16-be"),
        RULES.replace(b"\n", b"\r\n"),
        RULES.replace(b"\n", b"\r"),
        b"\x80\xff\n" + RULES,
    ],
)
def test_rules_count_in_whatever_encoding_they_were_saved(body: bytes) -> None:
    robots = learned(answer(body=body))
    assert not allowed(robots)
    assert allowed(robots, "http://a.org/y")


def test_a_long_file_in_utf_16_is_cut_between_lines() -> None:
    text = "User-agent: *\nDisallow: /first\n" + "#\n" * 150_000 + "Disallow: /x\n"
    robots = learned(answer(body=text.encode("utf-16")))
    assert not allowed(robots, "http://a.org/first")
    assert allowed(robots)
    assert robots.text.endswith("\n")


HEAD = b"User-agent: *\n"
SLOW = {
    "many wildcards": HEAD + b"".join(b"Disallow: /*a%d*\n" % i for i in range(40_000)),
    "long wildcards": HEAD + (b"Disallow: /" + b"*a" * 20 + b"*b$\n") * 10_000,
    "one wildcard": HEAD + b"Disallow: /" + b"*a" * 250_000 + b"b\n",
    "as many as count": HEAD + b"".join(b"Disallow: /*a*%d\n" % i for i in range(2500)),
    "many paths": HEAD + b"".join(b"Disallow: /%d\n" % i for i in range(40_000)),
    "many exceptions": HEAD
    + b"".join(b"Allow: /*%d\n" % i for i in range(40_000))
    + b"Disallow: /",
}


@pytest.mark.parametrize("name", SLOW)
def test_no_file_makes_a_check_slow(name: str) -> None:
    robots = learned(answer(body=SLOW[name][:512_001]))
    robots.refusal(URL, 1.0)  # the rules are read at the first
    long = "http://a.org/" + "a" * 1000
    with within(3):
        for i in range(5):
            robots.refusal(f"{long}{i}", 1.0)


def test_what_was_checked_once_is_known_for_a_long_file() -> None:
    robots = learned(answer(body=SLOW["as many as count"] + b"#" * 20_000))
    for url in (URL, f"{URL}1", URL):
        assert allowed(robots, url) == allowed(robots, url)
    rules = robots._parsed()
    assert rules._verdicts is not None
    assert URL in rules._verdicts
    rules._verdicts.update({str(i): True for i in range(1000)})
    rules.allow("http://a.org/another")
    assert len(rules._verdicts) <= 1000


def test_a_file_of_too_many_wildcards_is_read_strictly() -> None:
    many = b"".join(b"Disallow: /q/*%d\n" % i for i in range(5000))
    robots = learned(answer(body=HEAD + many + b"Disallow: /z*x\nAllow: /z*y\nDisallow: /w\n"))
    assert not allowed(robots, "http://a.org/zebra"), "stricter than was written"
    assert not allowed(robots, "http://a.org/z/y")
    assert not allowed(robots, "http://a.org/w")
    assert allowed(robots, "http://a.org/a")
    assert robots.delay() == 0.0
    slow = learned(answer(body=HEAD + b"Crawl-delay: 7\n" + many + b"Disallow: /z*x\n"))
    assert slow.delay() == 7.0


def test_wildcards_of_other_crawlers_do_not_count() -> None:
    many = b"".join(b"Disallow: /*%d\n" % i for i in range(5000))
    body = b"User-agent: other\n" + many + b"\n" + HEAD + b"Disallow: /z*x\n"
    robots = learned(answer(body=body))
    assert allowed(robots, "http://a.org/zebra")
    assert not allowed(robots, "http://a.org/zx")


@pytest.mark.parametrize("status", [Status.UNSAFE, Status.CERTIFICATE, Status.BLOCKED])
def test_what_keeps_us_from_the_host_itself_is_told_as_it_is(status: Status) -> None:
    robots = learned(answer(0, status=status))
    assert robots.refusal(URL, 1.0) == (status, "it broke")
    assert robots.code is None
    assert robots.due(61.0)
