"""Commands that bring other people's data in, and ours out: logs, feeds, clicks."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import typer

from salticus.cli import options, output
from salticus.cli.options import (
    REQUIRED,
    Texts,
    arg,
    ask,
    day,
    from_options,
    opt,
    settings,
    span,
    waited,
)
from salticus.errors import InputError

if TYPE_CHECKING:
    from salticus.crawl.importing import LineTally
    from salticus.crawl.opening import Crawl
    from salticus.views.merchants import MerchantView

ClickFormat = Literal["csv", "jsonl", "access"]
_FOLDER: Path = arg(REQUIRED, "The folder of a log.")
Format = Literal["log", "csv", "jsonl", "warc"]
_UNITS = (("days", 86_400), ("h", 3_600), ("min", 60))


def import_(
    log: Path = _FOLDER,
    without_values: bool = opt(
        False, "Do not compare live visits with the log's values.", "--without-values"
    ),
    config: Path = options.CONFIG,
    json: bool = options.JSON,
) -> None:
    """Warm the store with the pages, visits and clicks of a log."""
    from salticus.crawl.importing import import_log

    new = waited(import_log(settings(config), log, values=not without_values))
    facts = {f"new {what}": count for what, count in new.items()}
    told = {"log": str(log), "new": new}
    output.answer(told, json, lambda _: output.facts(f"imported {log}", facts))


def export(
    out: Path = arg(REQUIRED, "A new folder (log) or a file (the others)."),
    pattern: str | None = options.PATTERN,
    format_: Format = opt(
        "log", "Exchange format, rows of visits, or content as WARC.", "--format"
    ),
    tag: str | None = options.OF_TAG,
    config: Path = options.CONFIG,
    json: bool = options.JSON,
) -> None:
    """Export what was visited and learnt, or the content.

    As a log in Salticus' exchange format, as a table of visits (csv, jsonl), or
    as WARC, the web's archive format, with the content that is kept. PATTERN and
    --tag choose a part of the content; the others are exported whole.
    """
    from salticus.views.export import export
    from salticus.views.listing import query

    chosen = query(pattern, tag=tag)
    rows = ask(config, export, out, format_, chosen)
    told = {"out": str(out), "rows": rows}
    output.answer(told, json, lambda _: output.facts(f"wrote {out}", rows))


def log_check(folder: Path = _FOLDER, json: bool = options.JSON) -> None:
    """Check a log: every violation with file, column, row and what to do; exit code 1 if any."""
    from salticus.exchange.check import check
    from salticus.exchange.folder import Log
    from salticus.exchange.info import rows_of

    found = check(folder)
    violations = [each for each in found if each.level == "violation"]
    warnings = [each for each in found if each.level == "warning"]
    rows = {} if violations else rows_of(Log(folder))
    if json:
        lists = {"violations": violations, "warnings": warnings}
        output.json({"folder": str(folder), "ok": not violations, "rows": rows, **lists})
    else:
        for each in found:
            typer.echo(f"{'warning: ' if each.level == 'warning' else ''}{each}")
        counts = ", ".join(f"{n:,} {table}" for table, n in rows.items())
        bad = f"not sound: violations {len(violations)}, warnings {len(warnings)}"
        typer.echo(bad if violations else f"ok: {counts}")
    if violations:
        raise typer.Exit(1)


def log_info(folder: Path = _FOLDER, json: bool = options.JSON) -> None:
    """Describe a log: rows, pages, change rates, visits, clicks, and what it can be used for."""
    from salticus.exchange.info import info

    def people(facts: dict[str, Any]) -> None:
        name, uses = facts.pop("name"), facts.pop("uses")
        output.facts(name, {name.replace("_", " "): fact for name, fact in facts.items()})
        output.facts("can be used to", uses)

    output.answer(info(folder), json, people)


def log_convert(
    sources: list[Path] = arg(REQUIRED, "Files, or folders of them."),
    out: Path = arg(REQUIRED, "A new folder for the log."),
    format_: str = opt(
        REQUIRED, "prices, scrapy, digests, changedetection or heissepreise.", "--from"
    ),
    url_column: str | None = opt(None, "The column with the URL."),
    time_column: str | None = opt(None, "The column with the time."),
    value_column: str | None = opt(None, "The column with the price, value or digest."),
    timezone: str | None = opt(None, "Of times that state none, e.g. Europe/Berlin."),
    at: str | None = opt(None, "The time of rows without one; for a single file."),
    resolution: str | None = opt(None, "How finely times are known, e.g. 1d; found if not given."),
    name: str | None = opt(None, "Of the log; OUT's if not given."),
    complete: bool = opt(False, "The rows are every change: write values too.", "--complete"),
    skip_bad: bool = opt(False, "Leave bad rows out instead of stopping.", "--skip-bad"),
    json: bool = options.JSON,
) -> None:
    """Convert other people's data to a log: prices, feeds of Scrapy, digests, and more."""
    from salticus.exchange.convert.base import ConvertOptions
    from salticus.exchange.convert.build import convert_log

    how = from_options(ConvertOptions, locals(), resolution=span("resolution", resolution))
    output.answer(convert_log(sources, out, format_, how), json, _print_converted)


def _print_converted(told: dict[str, Any]) -> None:
    origin = told.pop("resolution_from")
    facts = told.pop("rows") | {"resolution": f"{told.pop('resolution')} (from {origin})"}
    output.facts(f"wrote {told.pop('out')}", facts | {k: v for k, v in told.items() if v})


def feed_import(
    file: str = arg(REQUIRED, "A TSV, CSV or XML file; `-` reads from stdin."),
    merchant: str | None = opt(None, "Whose feed it is; the file's name if not given."),
    at: str | None = opt(None, "When it was made, e.g. 2026-11-16T06:00Z; now if not given."),
    tag: Texts = options.LABELS,
    known_only: bool = opt(False, "Leave out pages that are not in the store.", "--known-only"),
    keep_tracking: bool = opt(False, "Leave utm_source and the like in links.", "--keep-tracking"),
    config: Path = options.CONFIG,
    json: bool = options.JSON,
) -> None:
    """Take in a merchant's feed: values without a visit. Nothing if more than half of it is bad."""
    from salticus.crawl.importing import FeedTerms, import_feed

    terms = FeedTerms(merchant, day("at", at), tuple(tag or ()), known_only, keep_tracking)
    done = waited(import_feed(settings(config), file, terms))
    if json:
        output.json(done)
        return
    facts = output.facts_of(done, "complaints", "file")
    output.facts(f"imported {done.file}", {k.replace("_", " "): v for k, v in facts.items()})
    for complaint in done.complaints:
        typer.echo(complaint)


def feed_report(config: Path = options.CONFIG, json: bool = options.JSON) -> None:
    """How accurate merchants' feeds are, and by how much they lag, as visits found them."""
    from salticus.views.merchants import merchants

    found = ask(config, merchants)
    if json:
        output.json(found)
        return
    if not found:
        raise InputError("no merchant's feed was imported yet; see `salticus feed import --help`")
    header = ("merchant", "rows", "pages", "visits", "accuracy", "price", "changes", "lag", "90 %")
    output.table("merchants' feeds", header, map(_merchant, found))
    unchecked = sum(each.unchecked_pages for each in found)
    if unchecked:
        typer.echo(f"{unchecked:,} pages are not yet checkable: no visit came after they were told")


def _merchant(known: MerchantView) -> tuple[Any, ...]:
    counts = (known.merchant, known.rows, known.pages, known.visits)
    shares = (known.accuracy, known.price_accuracy, known.changes)
    return (*counts, *shares, _span(known.lag_median_s), _span(known.lag_p90_s))


def _span(bounds: list[float | None] | None) -> str | None:
    """Bounds of a lag for people.

    >>> _span([-3600.0, 5400.0]), _span([60.0, None]), _span(None)
    ('-60 min to 90 min', '1 min to never', None)
    """
    return None if bounds is None else " to ".join(map(_length, bounds))


def _length(seconds: float | None) -> str:
    if seconds is None:
        return "never"
    unit, size = next(((u, s) for u, s in _UNITS if abs(seconds) >= 2 * s), ("min", 60))
    return f"{seconds / size:.0f} {unit}"


def clicks_import(
    files: list[str] = arg(REQUIRED, "Files to count; `-` reads from stdin.", metavar="FILE..."),
    format: ClickFormat | None = opt(
        None, "csv, jsonl or access; the first line tells.", metavar="FORMAT"
    ),
    click: str | None = opt(
        None,
        "Of an access log: the requests that are clicks, e.g. '/go?url={url}', or a "
        "regular expression with a group (?P<url>...).",
    ),
    base: str | None = opt(
        None, "What to put before addresses that begin with /: https://shop.example"
    ),
    again: bool = opt(False, "Count once more what was counted before.", "--again"),
    config: Path = options.CONFIG,
    json: bool = options.JSON,
) -> None:
    """Count clicks and impressions from files: tables, JSON lines, access logs.

    Lines that are wrong, and pages that are not in the store, are reported.
    """
    from salticus.crawl.importing import ClickReading, count_clicks

    how = ClickReading(format, click, base, again)

    async def counted(crawl: Crawl) -> list[LineTally]:
        tallies = []
        async for tally in count_clicks(crawl, files, how, _progress):
            tallies.append(tally)
            if not json:
                _tell_clicks(tally)
        return tallies

    tallies = ask(config, counted)
    if json:
        output.json({"files": [tally.as_json() for tally in tallies]})
    passed = [tally for tally in tallies if tally.earlier and not tally.lines]
    said = "\n".join(map(_earlier, passed))
    if len(passed) == len(tallies):
        raise InputError(f"{said}; nothing was counted; --again counts it once more")
    if passed and not json:
        typer.echo(output.clean(said))


def _earlier(tally: LineTally) -> str:
    from salticus.views.times import when

    assert tally.earlier is not None
    return f"{tally.file}: counted before, as {tally.earlier.file}, {when(tally.earlier.at)}"


@contextmanager
def _progress(name: str, size: int) -> Iterator[Callable[[int], None]]:
    if size:
        with output.bar(size) as show:
            yield show
        return
    with output.steps() as say:
        yield lambda done: say(f"{name}: {done / 1e6:,.0f} MB")


def _tell_clicks(tally: LineTally) -> None:
    from salticus.crawl.importing import strangers

    if tally.earlier and not tally.lines:
        return
    output.facts(tally.file, tally.as_facts())
    for url, lines in strangers(tally):
        typer.echo(output.clean(f"unknown: {url} ({lines:,})"))
