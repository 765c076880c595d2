"""Words for pages: patterns as people write them, rows and JSON as they are read."""

from __future__ import annotations

from fnmatch import fnmatchcase

from hypothesis import given
from hypothesis import strategies as st

from salticus.store.nouns import PageState
from salticus.urls import canonical
from salticus.views.listing import HEADER, as_json, as_row, pattern
from salticus.views.times import ago, iso, moment, plain, span, when

urls = st.from_regex(r"https?://[a-z]{1,5}\.example/[a-zA-Z0-9/_.-]{0,12}", fullmatch=True)
times = st.integers(0, 4 * 10**15)


def page(**known: object) -> PageState:
    blank: dict[str, object] = dict.fromkeys(
        ("kind", "last_visit", "last_answer", "last_change", "status", "fault", "value")
    )
    counts = dict.fromkeys(("added", "visits", "changes", "failures"), 0)
    fixed = {"page": 1, "url": "http://a.example/", "host": "a.example", "tags": [], "fields": {}}
    more = {"max_interval": None, "demand": None}
    return PageState(**{**blank, **counts, **fixed, **more, **known})  # type: ignore[arg-type]


@given(urls)
def test_a_url_means_itself(url: str) -> None:
    own = canonical(url)[0]
    assert fnmatchcase(own, pattern(url))
    assert "*" not in pattern(url)


@given(urls, st.data())
def test_a_part_of_a_url_finds_it(url: str, data: st.DataObject) -> None:
    bare = url.partition("://")[2]
    start = data.draw(st.integers(0, len(bare) - 1))
    end = data.draw(st.integers(start + 1, len(bare)))
    assert fnmatchcase(url, pattern(bare[start:end]))


@given(urls)
def test_a_pattern_is_taken_as_it_is(url: str) -> None:
    assert pattern(f"{url}*") == f"{url}*"
    assert pattern("*.pdf") == "*.pdf"
    assert pattern("/p/*") == "*/p/*"


@given(times, times)
def test_times_are_told(at: int, now: int) -> None:
    assert when(at) == when(moment(at))
    assert when(at)[:10] == (iso(at) or "")[:10]
    assert plain({"at": moment(at)}) == {"at": iso(at)}
    assert span(max(0, now - at) / 1e6) + " ago" == ago(moment(at), moment(now))


def test_a_row_has_every_column() -> None:
    row = as_row(page(value="long " * 30, changes=3), now=moment(0))
    assert len(row) == len(HEADER)
    assert len(row[HEADER.index("value")]) <= 24
    assert row[-1] == "http://a.example/"


def test_json_has_all_and_the_state() -> None:
    told = as_json(page(status="ok", last_visit=10**15))
    assert told["state"] == "well"
    assert told["last_visit"] == "2001-09-09T01:46:40.000000Z"
    assert told["last_change"] is None
