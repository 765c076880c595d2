"""Other people's data become logs: what was seen is kept, and what is wrong is named."""

from __future__ import annotations

import gzip
import json
from datetime import UTC, datetime, timedelta
from inspect import signature
from pathlib import Path
from typing import Any

import polars as pl
import pytest
import typer
from typer.testing import CliRunner

from salticus.cli.exchange import log_convert
from salticus.errors import InputError, PluginError
from salticus.exchange.check import examine
from salticus.exchange.convert import BUILTIN
from salticus.exchange.convert.base import COMPLAINTS, ConvertOptions, Problem
from salticus.exchange.convert.build import convert_log
from salticus.exchange.convert.table import read_times

DAY = datetime(2026, 1, 1, tzinfo=UTC)
HEADING = "url,time,price,currency,title\n"


class Made:
    """A converted log, to be looked at."""

    def __init__(self, folder: Path, told: dict[str, Any]) -> None:
        self.folder = folder
        self.told = told
        self.about = json.loads((folder / "log.json").read_text())

    def table(self, name: str) -> pl.DataFrame:
        return pl.read_parquet(self.folder / f"{name}.parquet")

    def visits(self) -> list[tuple[Any, ...]]:
        """Hours since the first of January, page, changed, value."""
        hours = (pl.col("at") - DAY).dt.total_hours()
        return self.table("visits").select(hours, "page_id", "changed", "value").rows()


def convert(source: Path | list[Path], format: str, **options: Any) -> Made:
    sources = source if isinstance(source, list) else [source]
    out = sources[0].parent / "out" / "log"
    told = convert_log(sources, out, format, ConvertOptions(**options))
    assert examine(out) == []
    return Made(out, told)


def written(tmp_path: Path, name: str, text: str) -> Path:
    path = tmp_path / name
    path.write_text(text, "utf-8")
    return path


# ------------------------------------------------------------------------------------------ prices


def test_prices_seen_become_visits(tmp_path: Path) -> None:
    rows = [
        "http://b.example/2,2026-01-01T01:00:00Z,5,EUR,Cup",
        "http://a.example/1,2026-01-01T02:00:00Z,19.90,eur,Kettle",
        "HTTP://A.example:80/x/../1#top,2026-01-01T03:00:00Z,19.9,EUR,",
        "http://a.example/1,2026-01-01T04:00:00Z,21.00,EUR,Big kettle",
        "http://b.example/2,2026-01-01T00:00:00Z,6,,Cup",
    ]
    made = convert(written(tmp_path, "p.csv", HEADING + "\n".join(rows)), "prices")
    assert made.visits() == [
        (0, 1, None, "6"),
        (1, 1, True, "5 EUR"),
        (2, 2, None, "19.9 EUR"),
        (3, 2, False, None),
        (4, 2, True, "21 EUR"),
    ]
    assert made.table("visits")["status"].unique().to_list() == ["ok"]
    assert made.table("pages").rows(named=True) == [
        {"page_id": 1, "url": "http://b.example/2", "kind": "offer", "title": "Cup",
         "host": "b.example", "currency": "EUR"},
        {"page_id": 2, "url": "http://a.example/1", "kind": "offer", "title": "Big kettle",
         "host": "a.example", "currency": "EUR"},
    ]  # fmt: skip
    assert made.told["rows"] == made.about["rows"] == {"pages": 2, "visits": 5}
    assert not (made.folder / "values.parquet").exists()
    assert made.about["source"] == "prices: p.csv"
    assert "between them nothing is known" in made.about["caveats"]


def test_a_csv_file_json_lines_and_an_array_say_the_same(tmp_path: Path) -> None:
    items = [
        {"url": "http://a.example/1", "time": "2026-01-01T00:00:00Z", "price": 1.5, "rank": 1},
        {"url": "http://a.example/1", "time": "2026-01-01T01:00:00Z", "price": "1.50", "rank": 2},
        {"url": "http://a.example/2", "time": 1767225600, "price": "2"},
    ]
    sources = {
        "c.csv": "url;time;price;rank\n"
        + "".join(f"{i['url']};{i['time']};{i['price']};{i.get('rank', '')}\n" for i in items),
        "l.jsonl": "".join(f"{json.dumps(item)}\n\n" for item in items),
        "a.json": json.dumps(items, indent=1),
    }
    tables = []
    for name, text in sources.items():
        folder = tmp_path / name[0]
        folder.mkdir()
        made = convert(written(folder, name, text), "prices")
        tables.append((made.table("pages").rows(named=True), made.visits()))
    assert tables[0] == tables[1] == tables[2]
    assert tables[0][0][0]["rank"] == "2"
    assert [row[2:] for row in tables[0][1]] == [(None, "1.5"), (None, "2"), (False, None)]


def test_the_same_source_makes_the_same_bytes(tmp_path: Path) -> None:
    rows = (
        f"http://shop.example/{n * 7 % 997},{n * 60},{n % 13},EUR,Offer {n}\n"
        for n in range(50_000)
    )
    source = written(tmp_path, "p.csv", HEADING + "".join(rows))
    for name in ("one", "two"):
        convert_log([source], tmp_path / name, "prices", ConvertOptions(complete=True, name="x"))
    for path in sorted((tmp_path / "one").iterdir()):
        assert path.read_bytes() == (tmp_path / "two" / path.name).read_bytes(), path.name


def test_values_are_written_only_when_stated_to_be_complete(tmp_path: Path) -> None:
    rows = "".join(f"http://a.example/,2026-01-0{d},{p},,\n" for d, p in [(1, 5), (2, 5), (3, 6)])
    source = written(tmp_path, "p.csv", HEADING + rows)
    made = convert(source, "prices", complete=True, timezone="UTC", name="mine")
    values = made.table("values")
    assert values.select("at", "value").rows() == [(DAY, "5"), (DAY + timedelta(days=2), "6")]
    assert made.table("visits").height == 3
    assert (made.about["name"], made.about["resolution"]) == ("mine", "1d")
    assert "--complete" in made.about["caveats"]


def test_columns_can_be_named(tmp_path: Path) -> None:
    text = "shop page;gesehen;Preis EUR;availability\n" + "http://a.example/;1767225600;1.299,00 €;"
    source = written(tmp_path, "p.csv", text + "https://schema.org/InStock\n")
    with pytest.raises(
        InputError, match=r"which column is the url\? It has `shop page`.*--url-col"
    ):
        convert(source, "prices")
    names = {"url_column": "shop page", "time_column": "gesehen", "value_column": "Preis EUR"}
    with pytest.raises(InputError, match="column `Preis` is missing; it has `shop page`"):
        convert(source, "prices", **names | {"value_column": "Preis"})
    assert convert(source, "prices", **names).visits() == [(0, 1, None, "1299 InStock")]


def test_columns_that_the_log_needs_itself_are_renamed(tmp_path: Path) -> None:
    text = 'link,at,price,url,kind,tags\nhttp://a.example/,0,1,sku-1,shoe,"red, big"\n'
    made = convert(written(tmp_path, "p.csv", text), "prices", url_column="link")
    (page,) = made.table("pages").rows(named=True)
    assert (page["url"], page["original_url"]) == ("http://a.example/", "sku-1")
    assert (page["kind"], page["original_kind"]) == ("offer", "shoe")
    assert page["tags"] == ["red", "big"]


# ------------------------------------------------------------------------------------------- times


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("2026-01-01T00:00:00Z", "2026-01-01T00:00:00"),
        ("2026-01-01 01:30:00.25+01:00", "2026-01-01T00:30:00.250000"),
        ("2026-01-01T00:00:00,123456789 -0530", "2026-01-01T05:30:00.123456"),
        ("2026-01-01T05:00+05", "2026-01-01T00:00:00"),
        ("2026-01-01 UTC", "2026-01-01T00:00:00"),
        ("1767225600", "2026-01-01T00:00:00"),
        ("1767225600.5", "2026-01-01T00:00:00.500000"),
        ("1767225600123", "2026-01-01T00:00:00.123000"),
        ("1767225600123456", "2026-01-01T00:00:00.123456"),
        ("0", "1970-01-01T00:00:00"),
        # without a zone: Berlin is an hour ahead in winter, two in summer
        ("2026-01-01T01:00:00", "2026-01-01T00:00:00"),
        ("2026-07-01 02:00", "2026-07-01T00:00:00"),
        ("2026-07-01", "2026-06-30T22:00:00"),
        ("20260701", "2026-06-30T22:00:00"),
        ("2026-10-25T02:30:00", "2026-10-25T00:30:00"),  # twice on the clock: the earlier one
        ("2026-03-29T02:30:00", Problem.SKIPPED_TIME),
        ("2026-13-01T00:00:00Z", Problem.BAD_TIME),
        ("20261301", Problem.BAD_TIME),
        ("yesterday", Problem.BAD_TIME),
        ("-5", Problem.BAD_TIME),
        ("01/02/2026", Problem.BAD_TIME),
        (None, Problem.NO_TIME),
    ],
)  # fmt: skip
def test_times_are_read_as_people_write_them(text: str | None, expected: str | Problem) -> None:
    rows = pl.LazyFrame({"time": [text]}, schema={"time": pl.String})
    at, problem = read_times(rows, "Europe/Berlin").select("at", "time_problem").collect().row(0)
    if isinstance(expected, Problem):
        assert (at, problem) == (None, expected)
    else:
        assert problem is None
        assert at == datetime.fromisoformat(expected).replace(tzinfo=UTC)


def test_a_time_without_zone_is_an_error_with_file_and_line(tmp_path: Path) -> None:
    rows = "http://a.example/,2026-01-01T00:00:00Z,1,,\nhttp://a.example/,2026-01-02 09:00,1,,\n"
    source = written(tmp_path, "p.csv", HEADING + rows)
    with pytest.raises(InputError) as caught:
        convert(source, "prices")
    assert f"{source}, line 3: column `time` has no time zone ('2026-01-02 09:00')" in str(
        caught.value
    )
    assert "--timezone" in str(caught.value)
    assert [row[0] for row in convert(source, "prices", timezone="Asia/Tokyo").visits()] == [0, 24]


def test_an_unknown_time_zone_is_refused() -> None:
    with pytest.raises(InputError, match="'Mars/Olympus' is no time zone"):
        ConvertOptions(timezone="Mars/Olympus")


@pytest.mark.parametrize(
    ("times", "resolution"),
    [
        (["2026-01-01T00:00Z", "2026-01-05T00:00Z"], "1d"),
        (["2026-01-01T00:00Z", "2026-01-05T16:00Z"], "8h"),
        (["2026-01-01T00:00Z", "2026-01-05T17:00Z"], "1h"),
        (["2026-01-01T00:10Z", "2026-01-05T17:00Z"], "10min"),
        (["2026-01-01T00:11Z", "2026-01-05T17:00Z"], "1min"),
        (["2026-01-01T00:11:12.5Z", "2026-01-05T17:00Z"], "1s"),
    ],
)
def test_the_resolution_is_found_from_the_times(
    tmp_path: Path, times: list[str], resolution: str
) -> None:
    rows = "".join(f"http://a.example/,{time},1,,\n" for time in times)
    made = convert(written(tmp_path, "p.csv", HEADING + rows), "prices")
    assert made.about["resolution"] == made.told["resolution"] == resolution
    assert made.told["resolution_from"] == "the times"


def test_days_are_days_where_the_clocks_are(tmp_path: Path) -> None:
    rows = "".join(f"http://a.example/,2026-0{m}-01,1,,\n" for m in (1, 7))
    made = convert(written(tmp_path, "p.csv", HEADING + rows), "prices", timezone="Europe/Berlin")
    assert made.about["resolution"] == "1d"


def test_a_given_resolution_counts(tmp_path: Path) -> None:
    source = written(tmp_path, "p.csv", HEADING + "http://a.example/,0,1,,\n")
    made = convert(source, "prices", resolution=timedelta(hours=6))
    assert (made.about["resolution"], made.told["resolution_from"]) == ("6h", "given")


# ---------------------------------------------------------------------------------------- bad rows

GOOD = "http://a.example/,2026-01-01T00:00:00Z,1,EUR,Kettle"
BAD = {
    ",2026-01-01T00:00:00Z,1,,": "column `url` is empty",
    "example.org/1,2026-01-01T00:00:00Z,1,,": "column `url` is not a URL ('example.org/1')",
    "ftp://a.example/,2026-01-01T00:00:00Z,1,,": "column `url` is not a URL",
    "http://a.example/,,1,,": "column `time` is empty",
    "http://a.example/,soon,1,,": "column `time` is not a time ('soon')",
    "http://a.example/,2026-01-01,1,,": "column `time` has no time zone ('2026-01-01')",
    "http://a.example/,2026-01-02T00:00:00Z,,,": "column `price` is empty",
    "http://a.example/,2026-01-02T00:00:00Z,call us,,": "column `price` is not one price ('call us",
    "http://a.example/,2026-01-02T00:00:00Z,-1,,": "column `price` is not one price",
    "http://a.example/,2026-01-02T00:00:00Z,5 to 7,,": "column `price` is not one price",
    "http://a.example/,2026-01-01T00:00:00Z,2,EUR,": "column `price` differs from another row of",
}


@pytest.mark.parametrize(("row", "complaint"), BAD.items())
def test_a_bad_row_is_named(tmp_path: Path, row: str, complaint: str) -> None:
    source = written(tmp_path, "p.csv", f"{HEADING}{GOOD}\n{row}\n")
    with pytest.raises(InputError) as caught:
        convert(source, "prices")
    head, line, remedy = str(caught.value).split("\n")
    assert head == "1 bad row, nothing was written:"
    assert line.strip().startswith(f"{source}, line 3: {complaint}")
    assert "; " in line
    assert "--skip-bad" in remedy
    assert sorted(path.name for path in tmp_path.rglob("*")) == ["p.csv"]


def test_all_bad_rows_are_counted_and_ten_are_shown(tmp_path: Path) -> None:
    rows = [GOOD, *BAD] + [",,,,"] * 1000
    source = written(tmp_path, "p.csv", HEADING + "\n".join(rows))
    with pytest.raises(InputError) as caught:
        convert(source, "prices")
    lines = str(caught.value).split("\n")
    assert lines[0] == "1,011 bad rows, nothing was written:"
    assert [line.partition(", line ")[2].partition(":")[0] for line in lines[1:11]] == [
        str(n) for n in range(3, 13)
    ]
    assert lines[11].strip() == "… and 1,001 more"
    made = convert(source, "prices", skip_bad=True)
    assert made.told["skipped"] == 1011
    assert made.visits() == [(0, 1, None, "1 EUR")]
    assert made.table("pages")["url"].to_list() == ["http://a.example/"]


def test_rows_that_say_the_same_twice_are_one_visit(tmp_path: Path) -> None:
    made = convert(written(tmp_path, "p.csv", f"{HEADING}{GOOD}\n{GOOD}\n"), "prices")
    assert (made.told["repeated"], len(made.visits())) == (1, 1)


def test_every_problem_has_its_words() -> None:
    assert set(COMPLAINTS) == set(Problem)


@pytest.mark.parametrize(
    ("name", "text", "complaint"),
    [
        ("p.csv", "", "p.csv: not a CSV file"),
        ("p.csv", HEADING, "p.csv: no rows"),
        ("p.jsonl", "", "p.jsonl: which column is the url"),
        ("p.jsonl", "nonsense\n", "p.jsonl: which column is the url"),
        ("p.json", "{}", "p.json: not a JSON array"),
        ("p.json", "[", "p.json: not a JSON array"),
        ("p.txt", "x", "p.txt: neither CSV nor JSON"),
        ("p.csv", f"{HEADING}{GOOD}\n{GOOD},x\n", "1 lines have more fields than the heading, the "
                                                   "first are 3"),
    ],
)  # fmt: skip
def test_files_that_are_none_are_named(
    tmp_path: Path, name: str, text: str, complaint: str
) -> None:
    with pytest.raises(InputError) as caught:
        convert(written(tmp_path, name, text), "prices")
    assert complaint in str(caught.value)


def test_bytes_that_are_no_text_are_refused(tmp_path: Path) -> None:
    source = tmp_path / "p.csv"
    source.write_bytes(HEADING.encode() + b"http://a.example/,0,1,EUR,caf\xe9\n")
    with pytest.raises(InputError, match=r"p\.csv: cannot be read: invalid utf-8"):
        convert(source, "prices")


def test_sources_and_places_that_cannot_be_used_are_named(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="no such file or folder"):
        convert(tmp_path / "absent.csv", "prices")
    (tmp_path / "empty").mkdir()
    with pytest.raises(InputError, match=r"no \.csv, \.jsonl or \.json"):
        convert(tmp_path / "empty", "prices")
    with pytest.raises(PluginError, match="no converter is called 'nosuch'; known: changedet"):
        convert(tmp_path, "nosuch")
    source = written(tmp_path, "p.csv", f"{HEADING}{GOOD}\n")
    convert(source, "prices")
    with pytest.raises(InputError, match="already there and not empty"):
        convert(source, "prices")


# ------------------------------------------------------------------------------------------ scrapy


def test_several_feeds_are_several_crawls(tmp_path: Path) -> None:
    feeds = tmp_path / "feeds"
    feeds.mkdir()
    item = {"url": "http://a.example/1", "price": ["19.90"], "name": "Kettle"}
    first = [item | {"scraped_at": "2026-01-01T00:00:00+00:00"}]
    (feeds / "1.json").write_text("[\n" + ",\n".join(map(json.dumps, first)) + "\n]")
    second = [item | {"price": "21,00 €", "scraped_at": 1767312000000}]
    (feeds / "2.jl").write_text("".join(map(json.dumps, second)))
    (feeds / "3.csv").write_text(
        "url,price,timestamp\nhttp://a.example/1,21,2026-01-03T00:00:00Z\n"
    )
    (feeds / "notes.txt").write_text("not a feed")
    made = convert(feeds, "scrapy")
    assert made.visits() == [(0, 1, None, "19.9"), (24, 1, True, "21"), (48, 1, False, None)]
    assert made.table("pages")["title"].to_list() == ["Kettle"]
    assert made.about["source"] == "scrapy: 1.json, 2.jl, 3.csv"


def test_items_without_a_time_need_one(tmp_path: Path) -> None:
    items = [{"url": "http://a.example/1", "price": 1, "time": "2026-01-01T05:00:00Z"},
             {"url": "http://a.example/2", "price": 2, "time": None}]  # fmt: skip
    source = written(tmp_path, "f.json", json.dumps(items))
    with pytest.raises(InputError, match=r"f\.json, item 2: column `time` is empty; .*--at"):
        convert(source, "scrapy")
    with pytest.raises(InputError, match="--at: 'noon' is not a time"):
        convert(source, "scrapy", at="noon")
    made = convert(source, "scrapy", at="2026-01-01T01:00", timezone="Europe/Berlin")
    assert made.visits() == [(0, 2, None, "2"), (5, 1, None, "1")]


def test_a_feed_without_any_times_takes_the_one_given(tmp_path: Path) -> None:
    source = written(tmp_path, "f.jl", '{"url": "http://a.example/", "value": "1 of 2"}\n')
    with pytest.raises(InputError, match=r"which column is the time\? It has `url`, `value`"):
        convert(source, "scrapy")
    with pytest.raises(InputError, match="--at gives one time, but there are 2 files"):
        convert([source, source], "scrapy", at="2026-01-01T00:00:00Z")
    made = convert(source, "scrapy", at="2026-01-01T00:00:00Z")
    assert made.visits() == [(0, 1, None, "1 of 2")]
    assert made.table("pages")["kind"].to_list() == [None]


def test_lines_that_are_no_objects_are_named(tmp_path: Path) -> None:
    good = '{"url": "http://a.example/", "price": 1, "time": 0}'
    source = written(tmp_path, "f.jl", f"{good}\n\n[1]\n{good[:-1]}\n" + '{"url": "\\ud800"}\n')
    with pytest.raises(InputError) as caught:
        convert(source, "scrapy")
    lines = str(caught.value).split("\n")
    assert "line 3: is not a JSON object" in lines[1]
    assert "line 4: is not a JSON object" in lines[2]
    assert lines[0].startswith("3 bad rows")


# ---------------------------------------------------------------------- digests, changedetection.io


def test_digests_tell_changes_but_not_values(tmp_path: Path) -> None:
    text = "url\ttimestamp\tmd5\n" + "".join(
        f"http://a.example/\t{1767225600 + 3600 * n}\t{digest}\n" for n, digest in enumerate("aab")
    )
    made = convert(written(tmp_path, "d.tsv", text), "digests")
    assert made.visits() == [(0, 1, None, "a"), (1, 1, False, None), (2, 1, True, "b")]
    assert made.about["values_are"] == "digests"


NOON = 1767268800
MD5 = ["d41d8cd98f00b204e9800998ecf8427e", "0cc175b9c0f1b6a831c399e269772661"]


def watch_folder(tmp_path: Path, *, alone: bool) -> Path:
    """Two watches, in the layout of earlier versions, or each in a file of its own."""
    folder = tmp_path / "datastore"
    watches = {
        "w1": {"url": "http://a.example/1", "title": "One", "tags": ["t1"], "last_error": False,
               "last_checked": NOON + 99, "time_between_check": {"days": 1, "hours": None}},
        "w2": {"url": "http://b.example/2", "title": None, "tags": [], "last_error": "timeout",
               "last_checked": NOON + 99, "time_between_check_use_default": True,
               "time_between_check": {"weeks": 9}},
    }  # fmt: skip
    tag = {"title": "News"}
    settings: dict[str, Any] = {"settings": {"requests": {"time_between_check": {"hours": 3}}}}
    for name, watch in watches.items():
        (folder / name).mkdir(parents=True)
        if alone:
            (folder / name / "watch.json").write_text(json.dumps(watch))
    if alone:
        (folder / "t1").mkdir()
        (folder / "t1" / "tag.json").write_text(json.dumps(tag))
        (folder / "changedetection.json").write_text(json.dumps(settings))
    else:
        settings["settings"]["application"] = {"tags": {"t1": tag}}
        whole = json.dumps(settings | {"watching": watches})
        (folder / "url-watches.json").write_text(whole)
    history = f"{NOON},{MD5[0]}.txt\n{NOON + 50},/elsewhere/w1/{MD5[1]}.txt.br\n"
    (folder / "w1" / "history.txt").write_text(history)
    (folder / "w2" / "history.txt").write_text(f"{NOON + 7},5d3c-old.stripped.txt\n\n")
    (folder / "w2" / "5d3c-old.stripped.txt").write_text("text")
    return folder


@pytest.mark.parametrize("alone", [False, True])
def test_histories_of_changedetection(tmp_path: Path, alone: bool) -> None:
    made = convert(watch_folder(tmp_path, alone=alone), "changedetection")
    noon = datetime.fromtimestamp(NOON, UTC)
    seconds = (pl.col("at") - noon).dt.total_seconds()
    *visits, last = made.table("visits").select(seconds, "page_id", "changed", "value").rows()
    assert last == (99, 1, False, None)  # the last check; the other watch's failed
    assert visits[1][:3] == (7, 2, None)
    assert visits[::2] == [(0, 1, None, MD5[0]), (50, 1, True, MD5[1])]
    pages = made.table("pages").select("url", "title", "tags").rows()
    assert pages == [("http://a.example/1", "One", ["News"]), ("http://b.example/2", None, None)]
    assert (made.about["resolution"], made.told["resolution_from"]) == ("1d", "the source")
    assert (made.about["values_are"], made.about["source"]) == (
        "digests",
        "changedetection: datastore",
    )


def test_broken_histories_of_changedetection_are_named(tmp_path: Path) -> None:
    folder = watch_folder(tmp_path, alone=False)
    path = folder / "w1" / "history.txt"
    path.write_text(f"{NOON},{MD5[0]}.txt\nsoon,{MD5[1]}.txt\n{NOON + 9}\n")
    with pytest.raises(InputError) as caught:
        convert(folder, "changedetection")
    assert f"{path}, line 2: column `epoch` is not a time ('soon," in str(caught.value)
    assert f"{path}, line 3: column `snapshot` is empty" in str(caught.value)
    (folder / "url-watches.json").write_text('{"watching": {"w1": {"url": 5}}}')
    with pytest.raises(InputError, match=r"url-watches\.json: not as changedetection\.io writes"):
        convert(folder, "changedetection")
    (folder / "url-watches.json").unlink()
    with pytest.raises(InputError, match=r"neither changedetection\.json nor url-watches\.json"):
        convert(folder, "changedetection")


# ------------------------------------------------------------------------------------ heissepreise

ITEMS: list[dict[str, Any]] = [
    {
        "store": "billa", "id": "00-1", "name": "\tPants ", "price": 6.5, "unit": "stk",
        "quantity": 10, "bio": False, "unavailable": True, "url": "pants-1", "category": "71",
        "priceHistory": [
            {"date": "2026-01-09", "price": 6.50},
            {"date": "2026-01-05", "price": 8.99},
            {"date": "2026-01-01", "price": 8.99},
        ],
    },
    {"store": "dmDe", "id": 42, "name": "Soap", "url": "https://dm.example/42",
     "priceHistory": [{"date": "2026-01-02", "price": 1}]},
]  # fmt: skip


def test_the_price_histories_of_heissepreise_are_truth(tmp_path: Path) -> None:
    source = tmp_path / "latest-canonical.json.gz"
    source.write_bytes(gzip.compress(json.dumps(ITEMS).encode()))
    made = convert(source, "heissepreise")
    values = made.table("values").select((pl.col("at") - DAY).dt.total_days(), "page_id", "value")
    assert values.rows() == [
        (0, "billa:00-1", "8.99"),
        (8, "billa:00-1", "6.5"),
        (1, "dmDe:42", "1"),
    ]
    assert not (made.folder / "visits.parquet").exists()
    columns = ("page_id", "url", "merchant", "title", "country", "timezone", "path", "unavailable")
    assert made.table("pages").select(columns).rows() == [
        ("billa:00-1", None, "billa", "Pants", "AT", "Europe/Vienna", "pants-1", "true"),
        ("dmDe:42", "https://dm.example/42", "dmDe", "Soap", "DE", "Europe/Berlin", None, None),
    ]
    assert made.about["resolution"] == "1d"


def test_broken_items_of_heissepreise_are_named(tmp_path: Path) -> None:
    broken = [ITEMS[0], {"store": "x"}, ITEMS[1] | {"priceHistory": [{"date": "2026-13-01"}]}]
    source = written(tmp_path, "c.json", json.dumps(broken))
    with pytest.raises(
        InputError, match=r"2 bad rows[^§]*c\.json, item 2: is not an item[^§]*item 3"
    ):
        convert(source, "heissepreise")
    compressed = written(tmp_path, "d.json", '{"stores": [], "n": 0, "data": []}')
    with pytest.raises(InputError, match=r"d\.json: not the canonical JSON"):
        convert(compressed, "heissepreise")
    with pytest.raises(InputError, match="2 sources given; name one canonical JSON file"):
        convert([source, compressed], "heissepreise")
    made = convert(source, "heissepreise", skip_bad=True)
    assert (made.told["skipped"], made.told["rows"]["pages"]) == (2, 1)


# -------------------------------------------------------------------------------------- the command


@pytest.fixture(name="run")
def _run() -> Any:
    app = typer.Typer()
    app.command()(log_convert)
    return lambda *args: CliRunner().invoke(app, [str(arg) for arg in args], catch_exceptions=False)


def test_the_command_tells_what_it_wrote(tmp_path: Path, run: Any) -> None:
    one = written(tmp_path, "1.csv", f"{HEADING}{GOOD}\n")
    two = written(tmp_path, "2.csv", f"{HEADING}http://b.example/,0,1,,\n,,,,\n")
    told = run(one, two, tmp_path / "log", "--from", "prices", "--skip-bad", "--json")
    assert json.loads(told.stdout)["rows"] == {"pages": 2, "visits": 2}
    told = run(one, tmp_path / "other", "--from", "prices", "--complete", "--resolution", "1h")
    lines = [line.split() for line in told.stdout.splitlines()]
    assert lines[0] == ["wrote", str(tmp_path / "other")]
    assert ["values", "1"] in lines
    assert ["resolution", "1h", "(from", "given)"] in lines


def test_the_command_names_every_format() -> None:
    option = signature(log_convert).parameters["format_"].default
    assert all(name in option.help for name in BUILTIN)
