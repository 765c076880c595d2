"""Whatever strangers send: a value or an error of ours, in the time and memory that it may take."""

from __future__ import annotations

import asyncio
import contextlib
import gzip
import json
import mmap
import tempfile
import time
import zlib
from collections.abc import Awaitable, Callable
from datetime import UTC, datetime
from pathlib import Path

import brotli
import polars as pl
import pytest
import zstandard
from effort import within
from hypothesis import example, given, settings
from hypothesis import strategies as st
from yarl import URL

from salticus.checks.extract import check_reading
from salticus.config import Extract, Rule, Span
from salticus.errors import ExtractError, InputError, SalticusError
from salticus.exchange.check import check, examine
from salticus.exchange.convert.base import ConvertOptions
from salticus.exchange.convert.build import convert_log
from salticus.exchange.folder import Log
from salticus.exchange.info import info
from salticus.exchange.truth import read_pages, read_truth, read_values
from salticus.extract.about import canonical_link
from salticus.extract.base import Content
from salticus.extract.charset import declared
from salticus.extract.offer import Offer
from salticus.extract.pool import GRACE_S, MEMORY, Extraction, PageReader
from salticus.extract.price import currency, price
from salticus.extract.rules import Routes
from salticus.extract.words import availability, condition
from salticus.fetch.base import Answer
from salticus.fetch.codecs import TooLarge, Undecodable, decoder
from salticus.fetch.hosts import retry_after
from salticus.fetch.http import charset
from salticus.fetch.identity import Cookies, cookies_txt
from salticus.fetch.polite import location
from salticus.fetch.robots import Robots
from salticus.lab.worlds.mall import zoo
from salticus.lab.worlds.mall.render import STYLES, Padding, page_head
from salticus.lab.worlds.mall.stock import MallPage
from salticus.signals.merchant import MerchantFeed, Spelling
from salticus.signals.opened import Opened
from salticus.types import Reading, Status, Target
from salticus.urls import canonical

from . import fuzzing
from .fuzzing import HANGING, HUGE, MOST, ODD, named, seeds, spoilt, taken

SHOP = "https://www.shop.example/p/1?variant=2"
LIST = "https://www.shop.example/list.xml"
FAST = settings(deadline=None, max_examples=200)


def mall_pages() -> list[bytes]:
    """An offer in every markup of the mall, and each as every small beast of its zoo spoils it."""
    offers = [MallPage("1", 0, "/o/1", "Kettle & lid", markup=style) for style in STYLES]
    sound = [Padding(0).page(page_head(page, "19.9 EUR InStock"), "now") for page in offers]
    spoilers = [zoo.SPOILT[name] for name in ("half", "latin", "utf-16", "invalid", "sessions")]
    beasts = [zoo.INSTEAD[name]("/o/1")[:MOST] for name in ("wall", "soft-404", "calendar")]
    return [*sound, *(spoil(page)[:MOST] for spoil in spoilers for page in sound), *beasts]


PAGES = [*seeds("*.html", folder="offers"), *seeds("*.html"), *mall_pages()]
LISTS = [*seeds("*.xml", "feed.json", "sitemap.txt", "hub.html"), zoo.INSTEAD["xml-bomb"]("")]
DATA = seeds("*.json", "*.pdf")

# ------------------------------------------------------------------------------------ extraction

RULES = (
    Rule("*", select={"price": "[itemprop=price]@content", "title": "h1", "n": "xpath:count(//p)"}),
    Rule("*", select={"price": "json:script|$..price", "x": "xpath:string(//title)"}, value=("x",)),
    Rule("*", kind="offer", select={"price": "json:$..price", "name": "json:$.items[*].title"}),
    Rule("*", ignore=("css:nav, .x", "xpath://p|//div", "re:[0-9]+ [a-z]+", "xpath://@class")),
    Rule("*", value=("price",), render=True),
)
READER = PageReader(Extract(pdf=True, links=True), RULES)
ROUTES = Routes(RULES)
KINDS = st.sampled_from([None, "offer", "page", "source"])
CHOSEN = st.sampled_from([-1, *range(len(RULES))])
CHARSETS = st.sampled_from([None, "utf-8", "iso-8859-1", "utf-16", "shift_jis", "no-such"])
MARKED = st.sampled_from(["", "text/html", "application/xhtml+xml", "application/xml", "image/png"])
NOTED = st.sampled_from(["", "application/json", "application/pdf", "text/plain", "text/html"])


def lawful(content: Content, kind: str | None, rule: int) -> None:
    """The law of all reading: a lawful reading or an ExtractError; the same one each time."""
    found: list[Reading | str] = []
    for _ in range(2):
        again = Content(content.url, content.body, content.content_type, content.charset)
        try:
            found.append(READER.read(again, ROUTES.route(kind, rule)))
        except ExtractError as error:
            found.append(str(error))
    assert found[0] == found[1], "law: pure"
    if isinstance(found[0], str):
        named(ExtractError(found[0]), content.url)
    else:
        check_reading(found[0])


@given(st.builds(Content, st.just(SHOP), spoilt(PAGES), MARKED, CHARSETS), KINDS, CHOSEN)
@settings(deadline=None, max_examples=500)
def test_a_spoilt_page(content: Content, kind: str | None, rule: int) -> None:
    lawful(content, kind, rule)


@given(st.builds(Content, st.sampled_from([LIST, "http://[", ""]), spoilt(LISTS), MARKED, CHARSETS))
@settings(deadline=None, max_examples=300)
def test_a_spoilt_sitemap_or_feed(content: Content) -> None:
    lawful(content, "source", -1)


@given(st.builds(Content, st.just(SHOP), spoilt(DATA), NOTED, CHARSETS), KINDS, CHOSEN)
@settings(deadline=None, max_examples=300)
def test_a_spoilt_json_or_pdf(content: Content, kind: str | None, rule: int) -> None:
    lawful(content, kind, rule)


SPELLING = Spelling(price, currency, availability, condition)


@given(spoilt(seeds("merchant*")))
@example(b"link\tprice\tbrand\nhttps://shop.example/1\t5 EUR\tAc\0me\n")
@FAST
def test_a_spoilt_merchant_feed(body: bytes) -> None:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "feed"
        path.write_bytes(body)
        feed = MerchantFeed(Opened(path, "feed"), SPELLING, origin="shop", at=10**15)
        try:
            tally, told = feed.check(), list(feed.told())
        except InputError as error:
            named(error, "feed")
            return
    assert tally.good == len(told)
    for one in told:
        for text in (one.url, one.value.text, *one.value.fields.values()):
            assert text.encode(), "law: nothing to say is absent, not empty"
            assert "\0" not in text, "law: what is told can be stored"


# -------------------------------------------------------------------------------------- fetching


@given(spoilt(seeds("*robots.txt")), spoilt([b"cart/x?q=1&p=%2f*$", b"\xc3\xa9/../a//b"]))
@FAST
def test_a_spoilt_robots_file(body: bytes, path: bytes) -> None:
    robots = Robots()
    robots.learn(Answer("", Status.OK, 0.0, code=200, body=body), 0.0)
    url, _ = canonical("https://a.org/" + path.decode("utf-8", "replace"))
    refusal = robots.refusal(url, 1.0)
    assert refusal is None or refusal[0] is Status.DISALLOWED
    assert 0.0 <= robots.delay() <= 86_400.0
    assert robots.text.encode() is not None, "law: what is remembered can be stored"


def test_no_robots_file_is_slow() -> None:
    """A check stays within milliseconds, whatever the rules and the path are."""
    rules = b"".join(b"Disallow: /%b*b$\nAllow: /%d*a*a\n" % (b"*a" * 9, n) for n in range(9000))
    robots = Robots()
    with within(100):
        robots.learn(Answer("", Status.OK, 0.0, code=200, body=b"User-agent: *\n" + rules), 0.0)
        for length in range(100, 2000, 100):
            robots.refusal("https://a.org/" + "a" * length, 1.0)


HEADERS = {
    "place": [b"https://shop.example/p?a=1#f", b"//b.org:8080/y", b"../x/%2e%2e/y?q=%zz"],
    "wait": [b"120", b"Thu, 01 Jan 2099 00:00:00 GMT", b"Sunday, 06-Nov-94 08:49:37 GMT"],
    "type": [b'text/html; charset="ISO-8859-1"; boundary=x', b"application/json;charset=utf-8"],
    "cookie": [b"sid=abc; Path=/; Domain=shop.example; Max-Age=36; Secure", b'a="b\\073"; ;; =c'],
}
RAW = ("utf-8", "surrogateescape")


@given(spoilt(HEADERS["place"]), spoilt(HEADERS["wait"]), spoilt(HEADERS["type"]))
@example(b"p://user:password@", b"", b"")
@FAST
def test_spoilt_headers(place: bytes, wait: bytes, kind: bytes) -> None:
    found = location("https://a.org/x/y?z", place.decode(*RAW))
    assert found is None or found[0].startswith(("http://", "https://"))
    assert found is None or not set(found[0]) & set("\r\n\0 "), "law: nothing ends the header"
    answer = Answer("", Status.OK, 1e9, code=429, retry_after=wait.decode(*RAW))
    assert 0.0 <= retry_after(answer) <= 86_400.0
    text = kind.decode(*RAW)
    known = declared(Content("", b"x", text, charset(text)))
    assert known is None or "x".encode(known)


@given(st.lists(spoilt(HEADERS["cookie"]), max_size=5))
@settings(deadline=None, max_examples=50)
def test_spoilt_cookies(told: list[bytes]) -> None:
    async def sent() -> str:
        cookies = Cookies({"own": "1"}, keep=True)
        cookies.learn([each.decode(*RAW) for each in told], URL(SHOP))
        return cookies.header(URL(SHOP))

    header = asyncio.run(sent())
    assert header.startswith("own="), "law: what the settings give is sent"
    assert not set(header) & set("\r\n\0"), "law: no cookie ends the header"


@given(spoilt(seeds("cookies.txt")))
@FAST
def test_a_spoilt_cookie_file(body: bytes) -> None:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "cookies.txt"
        path.write_bytes(body)
        try:
            filed = cookies_txt(str(path))
        except InputError:
            return
    assert isinstance(Cookies({}, filed).header(URL(SHOP)), str)


PLAIN = b"<p>hello world</p>" * 500
PACKED = {
    "gzip": gzip.compress(PLAIN, mtime=0),
    "deflate": zlib.compress(PLAIN),
    "br": brotli.compress(PLAIN),
    "zstd": zstandard.compress(PLAIN),
}


@pytest.mark.parametrize("encoding", PACKED)
@given(data=st.data(), limit=st.sampled_from([100, 9000, 50_000]))
@settings(deadline=None, max_examples=50)
def test_a_spoilt_packed_body(encoding: str, data: st.DataObject, limit: int) -> None:
    unpack = decoder(encoding, limit)
    assert unpack is not None
    try:
        unpack.feed(data.draw(spoilt([PACKED[encoding]])))
        assert len(unpack.finish()) <= limit
    except (TooLarge, Undecodable):
        assert len(unpack.body) <= limit + (1 << 22), "law: the limit and one piece at most"


# ------------------------------------------------------------------------------------------ logs

SOURCES = [
    ("prices", "prices.csv"), ("prices", "prices.jl"), ("digests", "days.csv"),
    ("scrapy", "prices.json"), ("heissepreise", "heissepreise.json"),
]  # fmt: skip


@pytest.mark.parametrize(("format", "name"), SOURCES)
@given(data=st.data(), skip=st.booleans())
@settings(deadline=None, max_examples=15)
def test_a_spoilt_source_of_a_log(format: str, name: str, data: st.DataObject, skip: bool) -> None:
    with tempfile.TemporaryDirectory() as folder:
        source, out = Path(folder, name), Path(folder, "log")
        source.write_bytes(data.draw(spoilt(seeds(name))))
        options = ConvertOptions(timezone="UTC", skip_bad=skip)
        try:
            told = convert_log([source], out, format, options)
        except SalticusError as error:
            named(error, name)
            assert not out.exists(), "law: all or nothing"
        else:
            assert told["rows"]["pages"] > 0 or told["skipped"] > 0
            assert [each for each in examine(out) if each.level == "violation"] == []


@given(st.data(), st.sampled_from(["heissepreise", "changedetection"]))
@settings(deadline=None, max_examples=30)
def test_a_spoilt_source_of_several_parts(data: st.DataObject, format: str) -> None:
    with tempfile.TemporaryDirectory() as folder:
        packed, watched = Path(folder, "source.json.gz"), Path(folder, "source")
        packed.write_bytes(data.draw(spoilt([gzip.compress(seeds("heisse*")[0], mtime=0)])))
        (watched / "w1").mkdir(parents=True)
        (watched / "url-watches.json").write_bytes(data.draw(spoilt(seeds("url-watches.json"))))
        (watched / "w1" / "history.txt").write_bytes(data.draw(spoilt(seeds("history.txt"))))
        source = packed if format == "heissepreise" else watched
        with contextlib.suppress(SalticusError):
            convert_log([source], Path(folder, "log"), format, ConvertOptions(skip_bad=True))


WATCHES: dict[str, dict[str, object]] = {
    "far": {"last_checked": 9e12},
    "endless": {"last_checked": "inf"},
    "rare": {"time_between_check": {"weeks": 10**12}},
    "named": {"url": "https://a.example/", "title": "n" * 300},
}


@pytest.mark.parametrize("name", WATCHES)
def test_a_watch_without_measure(name: str, tmp_path: Path) -> None:
    watch = {"url": "https://a.example/", **WATCHES[name]}
    key = "w" * 300 if name == "named" else "w1"
    (tmp_path / "s" / "w1").mkdir(parents=True)
    (tmp_path / "s" / "w1" / "history.txt").write_text(f"1767225600,{'x' * 300}\n")
    (tmp_path / "s" / "url-watches.json").write_text(json.dumps({"watching": {key: watch}}))
    with contextlib.suppress(SalticusError):
        told = convert_log([tmp_path / "s"], tmp_path / "log", "changedetection", ConvertOptions())
        assert told["rows"]["pages"] == 1


ROWS = {
    "a column called n": (b"url,time,price,n\nhttps://a.example/1,2026-01-01T00:00:00Z,5,7\n", 0),
    "before all years": (b"url,time,price\nhttps://a.example/1,0000-01-01T00:00:00Z,5\n", 1),
    "after all years": (b"url,time,price\nhttps://a.example/1,9999-12-31T23:59:59-23:59,5\n", 1),
}


@pytest.mark.parametrize("name", ROWS)
def test_odd_rows_are_converted_or_counted(name: str, tmp_path: Path) -> None:
    body, skipped = ROWS[name]
    (tmp_path / "p.csv").write_bytes(body)
    options = ConvertOptions(skip_bad=True)
    told = convert_log([tmp_path / "p.csv"], tmp_path / "log", "prices", options)
    assert (told["rows"]["pages"], told["skipped"]) == (1 - skipped, skipped)


@pytest.mark.parametrize("format", ["heissepreise", "scrapy"])
def test_a_source_nested_without_end(format: str, tmp_path: Path) -> None:
    (tmp_path / "p.json").write_bytes(b"[" * 100_000)
    with pytest.raises(InputError, match=r"p\.json"):
        convert_log([tmp_path / "p.json"], tmp_path / "log", format, ConvertOptions())


def test_a_damaged_truth_is_named(tmp_path: Path) -> None:
    SOUND.select("page_id").write_parquet(tmp_path / "pages.parquet")
    SOUND.write_parquet(tmp_path / "values.parquet", compression="uncompressed")
    whole = (tmp_path / "values.parquet").read_bytes()
    (tmp_path / "values.parquet").write_bytes(whole.replace(b"\1\0\0\0a", b"\1\0\0\0\xff"))
    with pytest.raises(InputError, match=r"damaged"):
        read_truth(Log(tmp_path))


def test_a_page_with_control_characters_is_read_without_what_is_ignored() -> None:
    content = Content(SHOP, b"<main><p>Good\x01 day <b>ad</b>\xef\xbf\xbf to you</p></main>")
    reader = PageReader(Extract(), [Rule("*", ignore=("xpath://b",))])
    found = reader.read(content, Routes(reader.rules).route("page", 0)).value
    assert found is not None
    assert found.text == "Good day to you"


START = datetime(2026, 1, 1, tzinfo=UTC)
SOUND = pl.DataFrame({"page_id": ["a", "b"], "at": [START, START], "value": ["1", "2"]})
ABOUT = {"name": "n", "resolution": "1h", "span": ["2026-01-01", "2026-01-02T00:00:00Z"]}


@given(spoilt([json.dumps({**ABOUT, "rows": {"values": 2}, "values_are": "text"}).encode()]))
@settings(deadline=None, max_examples=40)
def test_a_spoilt_account_of_a_log(body: bytes) -> None:
    with tempfile.TemporaryDirectory() as folder:
        SOUND.select("page_id").write_parquet(Path(folder, "pages.parquet"))
        SOUND.write_parquet(Path(folder, "values.parquet"))
        Path(folder, "log.json").write_bytes(body)
        found = examine(Path(folder))
    assert {each.file for each in found} <= {"log.json", "values.parquet"}


@given(st.data())
@settings(deadline=None, max_examples=8)
def test_spoilt_tables_of_a_log(data: st.DataObject) -> None:
    with tempfile.TemporaryDirectory() as folder:
        for table, frame in (("pages", SOUND.select("page_id")), ("values", SOUND)):
            path = Path(folder, f"{table}.parquet")
            frame.write_parquet(path)
            path.write_bytes(data.draw(spoilt([path.read_bytes()])))
        found = check(Path(folder))
        assert {each.file for each in found} <= {"log.json", "pages.parquet", "values.parquet"}
        if not any("cannot be read" in each.problem for each in found):
            for read in (info, read_pages, read_values, lambda place: read_truth(Log(place))):
                with contextlib.suppress(SalticusError):
                    read(Path(folder))


# ------------------------------------------------------------------- in the loop, and in workers


@pytest.mark.parametrize("name", ODD)
def test_what_runs_in_the_loop_costs_little_whatever_the_page(name: str) -> None:
    content = Content(SHOP, ODD[name], "text/html")
    with within(25):
        Offer().extract(content)
        canonical_link(content)


DEADLINE_S = 1.0
SLACK_S = 60.0  # a busy machine may keep both processes waiting; what hangs does so for ever
WELL = Content(SHOP, b"<main><p>Good day to you</p></main>", "text/html")
PARTS = {name.lower(): f"{fuzzing.__file__}:{name}" for name in ("Swell", "Told")}


def with_workers(main: Callable[[Extraction], Awaitable[None]], *rules: Rule) -> None:
    async def whole() -> None:
        config = Extract(deadline=Span(seconds=DEADLINE_S), pdf=True)
        extraction = Extraction(config, rules=rules, extractors=PARTS)
        try:
            assert await value(extraction, WELL, "page") is not None
            await main(extraction)
            assert await value(extraction, WELL, "page") == "Good day to you", "law: one page only"
        finally:
            await extraction.close()

    asyncio.run(whole())


async def value(extraction: Extraction, content: Content, kind: str | None) -> str | None:
    """The text of a page's value; the law of time is checked on the way."""
    start = time.monotonic()
    try:
        found = (await extraction.read(content, Target(1, SHOP, "shop.example", kind))).value
    finally:
        assert time.monotonic() - start < DEADLINE_S + GRACE_S + SLACK_S, "law: within the deadline"
    return None if found is None else found.text


def test_what_is_huge_ends_within_the_deadline_and_costs_no_other_page() -> None:
    async def main(extraction: Extraction) -> None:
        before = taken()
        for kind, body in HUGE.values():
            try:
                await value(extraction, Content(SHOP, body), kind)
            except ExtractError as error:
                named(error, SHOP)
        assert taken() - before < 100_000_000, "law: the crawler's memory does not grow"

    with_workers(main)


@pytest.mark.parametrize("said", HANGING)
def test_a_hanging_expression_is_cut_off(said: str) -> None:
    hangs = SHOP + "&hangs"
    ignored = Rule(hangs, ignore=(said,)) if said.startswith("re:") else None
    rule = ignored or Rule(hangs, select={"field": said})

    async def main(extraction: Extraction) -> None:
        content = Content(hangs, HANGING[said], "application/json" if "json" in said else "")
        with pytest.raises(ExtractError, match=r"longer than 1 s") as caught:
            await extraction.read(content, Target(1, hangs, "shop.example", "page", rule=0))
        named(caught.value, hangs)

    with_workers(main, rule)


def test_pages_of_files_are_not_counted_as_memory(tmp_path: Path) -> None:
    """They come and go with the load of the machine; what is allocated stays."""
    path, size = tmp_path / "file", 50_000_000
    path.write_bytes(bytes(size))
    before = taken()
    with path.open("rb") as file, mmap.mmap(file.fileno(), 0, prot=mmap.PROT_READ) as mapped:
        assert mapped.find(b"x") == -1  # every page is here now
        assert taken() - before < size / 5
    before, page = taken(), b"x" * mmap.PAGESIZE
    with mmap.mmap(-1, size, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS) as held:
        while held.write(page) and held.tell() + len(page) <= size:
            pass  # a list or bytes may lie where others have lain, and take nothing new
        assert taken() - before > 0.8 * size


def test_memory_is_limited_and_is_that_of_the_worker() -> None:
    async def main(extraction: Extraction) -> None:
        for _ in range(2):  # the first time a part is loaded and a worker replaced
            before = taken()
            with pytest.raises(ExtractError, match=r"more than 2 GB"):
                await value(extraction, WELL, "swell")
        assert taken() - before < 50_000_000, "law: the crawler's memory does not grow"
        limit, used = map(int, (await value(extraction, WELL, "told") or "").split())
        assert used < 500_000_000, "law: what a page took is given back"
        assert MEMORY <= limit < MEMORY + 4 * 10**9, "law: every worker has a limit"

    with_workers(main)
