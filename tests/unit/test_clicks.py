"""Clicks: what lines say, which of them count, and what the commands tell."""

from __future__ import annotations

import io
import sys
from pathlib import Path

import pytest

from salticus.errors import InputError
from salticus.signals.clicks import AccessLogReader, JsonLines, Left, LineReader, Table, click_of

from .cli_stage import TEA, Stage

NEW_YEAR = 1_767_225_600_000_000
COMBINED = '203.0.113.7 - jo [01/Jan/2026:00:00:00 +0000] "%s" %s 12 "-" "%s"'
GO = click_of("/go?url={url}")


def asked(target: str, status: int = 200, agent: str = "Firefox", method: str = "GET") -> bytes:
    return (COMBINED % (f"{method} {target} HTTP/1.1", status, agent)).encode()


def reason(reader: LineReader, line: bytes) -> str:
    with pytest.raises(Left) as caught:
        reader.read(line)
    return caught.value.reason


@pytest.mark.parametrize(
    ("header", "line"),
    [
        (b"url,at,clicks,impressions", b"http://a/,2026-01-01,2,7"),
        (b"URL;Time;Clicks;Impressions", b"http://a/;2026-01-01T01:00+01:00;2;7"),
        (b"page\ttimestamp\tclicks\timpressions", b"http://a/\t1767225600\t2.0\t7"),
        (b"\xef\xbb\xbfimpressions,note,at,page,clicks", b'7,"a, b",1767225600000,http://a/,2'),
        (b"page|at|clicks|impressions", b"http://a/|Thu, 01 Jan 2026 00:00:00 GMT|2|7"),
    ],
)
def test_tables_are_read_by_their_header(header: bytes, line: bytes) -> None:
    row = Table(header).read(line)
    assert (row.url, row.at, row.clicks, row.impressions) == ("http://a/", NEW_YEAR, 2, 7)


@pytest.mark.parametrize(
    ("cells", "expected"), [(",", (1, 0)), ("5,", (5, 0)), (",5", (0, 5)), ("0,0", (0, 0))]
)
def test_a_row_without_counts_is_one_click(cells: str, expected: tuple[int, int]) -> None:
    row = Table(b"url,at,clicks,impressions").read(f"http://a/,2026-01-01,{cells}".encode())
    assert (row.clicks, row.impressions) == expected


@pytest.mark.parametrize(
    ("line", "why"),
    [
        (b"{", "unreadable"),
        (b'{"url": 5, "at": 5}', "url"),
        (b'{"url": "http://a/", "at": true}', "time"),
        (b'{"url": "http://a/", "at": 1e30}', "time"),
        (b'{"url": "http://a/", "at": "yesterday"}', "time"),
        (b'{"url": "http://a/", "at": 5, "clicks": -1}', "count"),
        (b'{"url": "http://a/", "at": 5, "clicks": "NaN"}', "count"),
        (b'{"url": "http://a/", "at": 5, "clicks": 1.5}', "count"),
        (b'{"url": "http://a/", "at": 5, "clicks": [1]}', "count"),
        (b'{"url": "http://a/", "at": 5, "clicks": 1e300}', "absurd"),
    ],
)
def test_wrong_rows_are_told_by_their_reason(line: bytes, why: str) -> None:
    assert reason(JsonLines(), line) == why


def test_a_quote_that_is_not_closed_costs_one_line() -> None:
    assert reason(Table(b"url,at"), b'"http://a/,2026-01-01') == "unreadable"


@pytest.mark.parametrize(
    ("pattern", "target"),
    [
        ("/go?url={url}", "/go?url=http%3A%2F%2Fa%2F%3Fq%3D1&from=list"),
        (r"/(?:out|go)\?.*\bto=(?P<url>[^&]+)", "/out?from=list&to=http%3A%2F%2Fa%2F%3Fq%3D1"),
        ("/r/{url}/end", "/r/http:%2f%2fa%2f%3Fq=1/end"),
    ],
)
def test_clicks_go_through_the_own_site(pattern: str, target: str) -> None:
    row = AccessLogReader(click_of(pattern)).read(asked(target, 302))
    assert (row.url, row.at, row.clicks) == ("http://a/?q=1", NEW_YEAR, 1)


def test_lines_of_the_pages_own_site_are_addresses() -> None:
    common = b'::1 - - [01/Jan/2026:01:00:00 +0100] "GET /tea%20pot?x=1 HTTP/1.1" 304 -'
    row = AccessLogReader().read(common)
    assert (row.url, row.at) == ("/tea%20pot?x=1", NEW_YEAR)


@pytest.mark.parametrize(
    ("line", "why"),
    [
        (asked("/go?url=x", 404), "failed"),
        (asked("/go?url=x", agent="Googlebot/2.1"), "bot"),
        (asked("/go?url=x", agent="My Spider"), "bot"),
        (asked("/go?url=x", agent="Salticus/0.1 (+https://a)"), "bot"),
        (asked("/search?q=tea"), "other"),
        (asked("/go?url=x", method="HEAD"), "other"),
        (asked("/go?url=x").replace(b"Jan", b"Foo"), "time"),
        (b"hello", "unreadable"),
        (b"[" * 60_000, "unreadable"),
        (b'a [b] "' + b"\\" * 60_000, "unreadable"),
    ],
)
def test_requests_that_are_no_clicks(line: bytes, why: str) -> None:
    assert reason(AccessLogReader(GO), line) == why


@pytest.mark.parametrize("wrong", ["(", "/go", "(?P<page>x)"])
def test_a_pattern_must_say_where_the_address_is(wrong: str) -> None:
    with pytest.raises(InputError, match="--click"):
        click_of(wrong)


# ------------------------------------------------------------------------------------- the command


@pytest.fixture
def stage(tmp_path: Path) -> Stage:
    made = Stage(tmp_path)
    made.furnish()
    return made


def write(stage: Stage, name: str, *lines: str) -> str:
    (stage.folder / name).write_text("".join(f"{line}\n" for line in lines))
    return str(stage.folder / name)


def test_a_report_accounts_for_every_line(stage: Stage) -> None:
    bad = f"{TEA},2999-01-01,1,1"
    file = write(stage, "c.csv", "url,at,clicks,impressions", f"{TEA},2026-01-01,20000,3", bad)
    text = stage.ok("clicks", "import", file)
    for line in (
        "clicks over the cap 10,000",
        "a time more than an hour ahead 1 (first in line 3)",
    ):
        assert line in " ".join(text.split())
    other = write(stage, "d.jsonl", '{"url": "http://new.example/\\u001b[1m", "at": 5}')
    (told,) = stage.json("clicks", "import", other)["files"]
    assert (told["format"], told["unknown"], told["unknown_pages"]) == ("jsonl", 1, 1)
    assert told["most_unknown"][0]["lines"] == 1


def test_a_file_that_was_counted_is_refused(stage: Stage) -> None:
    file = write(stage, "a.csv", "url,at", f"{TEA},2026-01-01")
    new = write(stage, "b.csv", "url,at", f"{TEA},2026-01-02")
    stage.ok("clicks", "import", file)
    assert "a.csv: counted before" in stage.refusal("clicks", "import", file)
    found = stage.json("clicks", "import", file, new)["files"]
    assert [each["counted"] for each in found] == [0, 1]
    assert stage.json("clicks", "import", file, "--again")["files"][0]["counted"] == 1


def test_standard_input_is_counted(stage: Stage, monkeypatch: pytest.MonkeyPatch) -> None:
    lines = io.BytesIO(asked("/tea") + b"\n")
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BufferedReader(lines)))
    words = ("clicks", "import", "-", "--base", "http://a.example")
    assert stage.json(*words)["files"][0]["clicks"] == 1


def test_what_is_wrong_with_a_file_is_said(stage: Stage) -> None:
    log = write(stage, "access.log", asked("/tea").decode())
    assert "--click" in stage.refusal("clicks", "import", log)
    table = write(stage, "t.csv", "address,at", f"{TEA},2026-01-01")
    assert f"{table}:1: " in stage.refusal("clicks", "import", table)
    assert f"{table}:1: " in stage.refusal("clicks", "import", table, "--format", "csv")
    bad = write(stage, "bad.csv", "url,at", f"{TEA},never", "x")
    assert f"{bad}:2: no time" in stage.refusal("clicks", "import", bad)
    good = write(stage, "good.csv", "url,at", f"{TEA},2026-01-01")
    assert "nowhere" in stage.refusal("clicks", "import", good, "nowhere")
    assert stage.json("clicks", "import", good)["files"][0]["counted"] == 1


# --------------------------------------------------------------------------------------- search


def test_search_shows_offers_and_counts_nothing(stage: Stage) -> None:
    (found,) = stage.json("search", "te")
    assert (found["url"], found["last_visit"] is None) == (TEA, False)
    text = stage.ok("search", "TEA", "--limit", "1")
    assert TEA in text
    assert "\x1b" not in text
    assert stage.ok("search", "coffee") == "nothing was found\n"
    assert stage.json("search", '"', "NOT") == []
