"""Commands of the lab: try things out, measure Salticus, study logs, lay it beside the papers."""

from __future__ import annotations

from dataclasses import replace
from os import cpu_count
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, TypeVar

import typer

from salticus.cli import options, output
from salticus.cli.options import REQUIRED, Texts, arg, day, flag, from_options, opt, span
from salticus.cli.simulating import study_live as study_live
from salticus.cli.simulating import study_one_price as study_one_price
from salticus.cli.studies import study_han2019 as study_han2019
from salticus.cli.studies import study_han2020 as study_han2020
from salticus.config import Budget
from salticus.errors import ConfigError

_SIZES: list[int] | None = opt(None, "Pages; may be repeated. [default: 10^4 to 10^6]", min=1)


def mall(
    folder: Path = arg(REQUIRED, "A new folder."),
    shops: int = opt(20, "Hosts, one port each.", min=1),
    offers: int = typer.Option(2000, min=1),
    days: float = opt(30.0, "World days that prices change."),
    seed: int = opt(0, "Fixes the mall."),
    speed: float = opt(3600.0, "World seconds a wall second."),
    delay: float = opt(0.05, "Seconds between requests to a shop."),
    page_size: int | None = opt(None, "Pad offers to so many bytes."),
    fault: Texts = opt(None, "E.g. 429:0.02:retry=2."),
    log: Path | None = opt(None, "Serve the values of this log."),
    markup: Texts = opt(None, "jsonld, microdata, rdfa, opengraph or script; shops take turns."),
    zoo: int = opt(0, "So many shops serve every fault known.", min=0),
    shoppers: bool = opt(
        False,
        "With --log or --publishers: people click at the crawler's desk.",
        "--shoppers",
    ),
    publishers: int = opt(0, "Hosts with new articles all the time.", min=0),
    articles: float = opt(12.0, "That the median publisher writes a day."),
    dead_feeds: int = opt(0, "So many publishers have a dead feed.", min=0),
    flood: int = opt(0, "Fresh links an hour on the last publisher's main page.", min=0),
    wait: bool = opt(True, "Time passes only while a crawl with the mall's settings runs."),
    json: bool = options.JSON,
) -> None:
    """Open a mall on loopback to crawl, with settings and addresses for it, until stopped."""
    from salticus.crawl.running import run_fast
    from salticus.lab.worlds.mall.faults import parse_fault
    from salticus.lab.worlds.mall.folder import Plot, mall_until_stopped, paths
    from salticus.lab.worlds.mall.press import PressSettings

    faults = [parse_fault(text) for text in fault or ()]
    press = from_options(PressSettings, locals(), dead=dead_feeds)
    plot = from_options(Plot, locals(), markup=markup or ("jsonld",))

    def opened(pages: int) -> None:
        files = {name: str(path) for name, path in paths(folder).items()}
        sources = f"  salticus add --kind source --file {files['sources']} --no-visit"
        said = (
            f"{pages:,} pages in {shops} shops are open; in another terminal:\n"
            f"  salticus add --file {files['urls']} -c {files['settings']}\n"
            + (f"{sources} -c {files['settings']}\n" if publishers else "")
            + f"  salticus run -c {files['settings']}\n"
            "stop the mall with Ctrl-C"
        )
        facts = {"pages": pages, "shops": shops, "publishers": publishers, **files}
        output.answer(facts, json, said)

    run_fast(mall_until_stopped(folder, plot, opened))


def bench_fetch(
    pages: int = opt(16_000, "Pages that each fetches.", min=1),
    rounds: int = opt(3, "Each is run so often; medians count.", min=1),
    size: int = opt(68_000, "Bytes of a page."),
    mixed: bool = opt(False, "A third of the pages in microdata, links wanted too.", "--mixed"),
    json: bool = options.JSON,
) -> None:
    """Pages a second: a bare aiohttp loop, Salticus, and a bare Scrapy spider, side by side."""
    _bench("fetch", "fetching", json, pages=pages, rounds=rounds, size=size, mixed=mixed)


def bench_simulate(
    pages: list[int] | None = _SIZES,
    policy: Texts = opt(None, "A name; may be repeated. [default: all]"),
    days: int = opt(3, "Days that each crawls.", min=1),
    json: bool = options.JSON,
) -> None:
    """Page-ticks a second of every policy through the real loop, beside a bare NumPy loop."""
    _bench("simulate", "simulating", json, sizes=pages, policies=policy, days=days)


def bench_policies(
    pages: list[int] | None = opt(None, "Pages; repeatable. [default: 10^5, 10^6, 10^7]", min=1),
    policy: Texts = opt(None, "A name; may be repeated. [default: leap and lambdacrawl]"),
    json: bool = options.JSON,
) -> None:
    """Seconds and memory of one plan over all pages, beside a bare NumPy pass."""
    _bench("policies", "one plan over all pages", json, sizes=pages, policies=policy)


def bench_learn(
    rows: int = opt(1_000_000, "Rows of each contest.", min=1),
    contest: Texts = opt(None, "examples, training, dnn, sequence or trees. [default: all]"),
    json: bool = options.JSON,
) -> None:
    """Rows a second of making examples, training and scoring; training beside a bare JAX loop."""
    _bench("learn", "learning", json, rows=rows, contests=contest)


def bench_links(
    links: int = opt(160, "Links of a page.", min=1),
    rounds: int = opt(100, "Each is run so often; the best counts.", min=1),
    json: bool = options.JSON,
) -> None:
    """Links a second that are read from a page, beside parsing the page and no more."""
    _bench("links", "reading links", json, links=links, rounds=rounds)


def bench_tick(pages: list[int] | None = _SIZES, json: bool = options.JSON) -> None:
    """Seconds and memory of one tick of a crawl: columns, predictions, policy, visits, snapshot."""
    _bench("tick", "one tick of a crawl", json, sizes=pages)


def bench_models(
    pages: int = opt(1_000_000, "Pages, each visited once a day.", min=1),
    contest: Texts = opt(None, "features, linear, trees, dnn or process. [default: all]"),
    json: bool = options.JSON,
) -> None:
    """Seconds and bytes a page of models in a crawl: features, three scores, the whole process."""
    _bench("models", "models in a crawl", json, pages=pages, contests=contest)


def _bench(name: str, title: str, json: bool, **chosen: Any) -> None:
    """Run a bench with what was chosen, the rest as it usually is, and print its rows."""
    from salticus.lab.bench import run_bench

    with output.steps() as told:
        rows = run_bench(name, told, **chosen)
    answer = {"plans": rows} if name == "policies" else rows
    table = tuple(rows[0]), [tuple(row.values()) for row in rows]
    output.answer(answer, json, lambda _: output.table(title, *table))


def make_market(
    out: Path = opt(REQUIRED, "A new folder for the log."),
    offers: int = typer.Option(10_000, min=1),
    days: int = typer.Option(120, min=1),
    seed: int = opt(0, "Random seed, for the same market."),
    preset: str = opt("han2020", "han2019 or han2020."),
    json: bool = options.JSON,
) -> None:
    """Make a synthetic market of offers: the truth, its readers, and what a crawler saw of it."""
    from salticus.lab.worlds.market import MarketSize, make_market

    with output.bar(offers) as told:
        rows = make_market(out, MarketSize(offers, days), seed=seed, preset=preset, told=told)
    answer = {"out": str(out), "rows": rows}
    output.answer(answer, json, lambda _: output.facts(f"wrote {out}", rows))


def make_publishers(
    out: Path = opt(REQUIRED, "A new folder for the log."),
    sources: int = typer.Option(3000, min=1),
    days: int = opt(21, "Days on which links appear.", min=1),
    links: float = opt(4.0, "New links a day on the median source."),
    profit: float = opt(5.0, "Clicks on a page of the median source."),
    rhythm: bool = opt(False, "Links come by day, vanish, and stand on two sources.", "--rhythm"),
    step: str = opt("10min", "How finely times are known."),
    seed: int = opt(0, "Fixes the publishers."),
    json: bool = options.JSON,
) -> None:
    """Make synthetic publishers: sources, new links on them, and clicks on the new pages."""
    from salticus.lab.worlds.publishers import PublisherSettings, make_publishers

    length = span("step", step)
    settings = from_options(PublisherSettings, locals(), step=length, steady=not rhythm)
    rows = make_publishers(out, settings, seed)
    answer = {"out": str(out), "rows": rows}
    output.answer(answer, json, lambda _: output.facts(f"wrote {out}", rows))


T = TypeVar("T")


def analyze(
    folder: Path = arg(REQUIRED, "A log: a folder of Parquet files."),
    out: Path | None = opt(None, "Write the report with charts here."),
    json: bool = options.JSON,
) -> None:
    """Study when, how often and where the pages of a log change, and what people click."""
    from salticus.exchange.folder import Log
    from salticus.lab.analyze.study import facts_of, sheet_of, study

    log = Log(folder)
    with output.steps() as told:
        told("opening the log")
        found = study(log, told)
        if out is not None:
            told("drawing")
            sheet_of(found).write(out)
    if json:
        output.json(found)
        return
    output.facts(str(found.log["name"]), facts_of(found))
    for note in found.notes:
        typer.echo(f"  note: {note}")
    if out is not None:
        typer.echo(f"  report: {out}")


def calibrate(
    preset: str | None = opt(None, "han2019, han2020 or both; of a log, the one it was made by."),
    offers: int = opt(30_000, "Offers of the market.", min=1000),
    days: int = opt(120, "Days of the market.", min=62),
    seed: int = opt(1, "Random seed, for the same market and run."),
    log: Path | None = opt(None, "Measure this log instead."),
    out: Path | None = opt(None, "Write the table as Markdown."),
    json: bool = options.JSON,
) -> None:
    """Measure the synthetic market, or a log, against the published statistics."""
    from salticus.lab.studies.calibration import run
    from salticus.lab.studies.calibration.table import HEADER, markdown, summary

    presets = _presets(preset)
    if log is None:
        table = run.calibrate(presets, offers=offers, days=days, seed=seed, tell=_tell)
    else:
        table = run.calibrate_log(log, presets if preset else None, seed=seed, tell=_tell)
    if out is not None:
        from salticus.exchange.place import in_place  # its folder takes a while

        with in_place(out) as part:
            part.write_text(markdown(table), "utf-8")
    if json:
        output.json({**summary(table), "rows": table})
        return
    for name in dict.fromkeys(row.preset for row in table):
        output.table(name, HEADER, [row.cells() for row in table if row.preset == name])
    typer.echo(f"{summary(table)['ok']} of {len(table)} hold")


def _presets(name: str | None) -> tuple[str, ...]:
    from salticus.lab.studies.calibration.published import PRESETS

    if name in (None, "both"):
        return PRESETS
    if name not in PRESETS:
        raise ConfigError(f"no preset is called {name!r}; known: {', '.join(PRESETS)}, both")
    return (name,)


def _tell(text: str) -> None:
    typer.echo(text, err=True)


def study_traces(
    log: list[Path] = opt(REQUIRED, "A log of true changes; may be repeated."),
    start: Texts = opt(None, "First day of the history; one for all logs, or one each."),
    pages: list[int] | None = opt(None, "Sample of so many; one for all logs, or one each.", min=1),
    budget: Texts = opt(None, "Visits; may be repeated. [default: 1, 5, 10, 20, 50 %]"),
    policy: Texts = opt(None, "May be repeated. [default: all of them]"),
    predictor: str = opt("rhythm", "A name, or file.py:Class."),
    runs: int = opt(10, "Each with its own draw of the demand.", min=1),
    jobs: int | None = opt(None, "Processes. [default: one a core]", min=1),
    seed: int = options.SEED,
    json: Path | None = options.JSON_FILE,
    plot: Path | None = options.CHARTS,
) -> None:
    """Let every policy crawl logs of real changes by one protocol; compare leap to LambdaCrawl."""
    from salticus.charts.freshness import write_traces
    from salticus.lab.studies.traces import BUDGETS, PROTOCOL, Field, Trace, everyone, study

    starts = [day("start", text) for text in _each("start", start, len(log))]
    samples = _each("pages", pages, len(log))
    field = Field(
        policies=policy or everyone(),
        budgets=[flag("budget", Budget.parse, text) for text in budget or BUDGETS],
        rules=replace(PROTOCOL, predictor=predictor, runs=runs, seed=seed),
    )
    logs = [Trace(*one) for one in zip(log, starts, samples, strict=True)]
    with output.steps() as told:
        report = study(logs, field, jobs=jobs or cpu_count() or 1, told=told)
    if plot is not None:
        write_traces(report, plot)
    if output.write_json(report, json):
        _print_traces(report)


def _each(name: str, given: list[T] | None, logs: int) -> list[T | None]:
    """What was given to a flag for each of the logs: nothing, one for all, or one each."""
    if not given:
        return [None] * logs
    if len(given) not in (1, logs):
        raise typer.BadParameter(f"--{name}: give one for all logs, or {logs}, one each")
    return [*given] * (logs if len(given) == 1 else 1)


def _print_traces(report: dict[str, Any]) -> None:
    from salticus.charts.freshness import comparison_table, traces_table

    for trace in report["traces"]:
        rows = [row for row in report["rows"] if row["trace"] == trace["name"]]
        output.table(f"{trace['name']}, {trace['pages']:,} pages", *traces_table(rows))
    if report["comparisons"]:
        output.table("against LambdaCrawl", *comparison_table(report["comparisons"]))


def study_predict(
    log: Path = arg(REQUIRED, "A log."),
    table: str = opt(
        "changes",
        "changes (Han 2019, Tables 2 and 3), tasks (Han 2020, Table 4), daily (rules and "
        "models on a daily log) or cold (by how much is known of a page).",
    ),
    model: Texts = opt(None, "May be repeated. [default: all of them]"),
    examples: int = opt(5_000_000, "At most so many to learn from, and to be judged by.", min=1000),
    start: str | None = opt(None, "daily: first day of training."),
    test: str | None = opt(None, "daily: first day of the test."),
    end: str | None = opt(None, "daily: the day after the last."),
    without: Texts = opt(None, "daily: a merchant to leave out of training."),
    work: Path | None = opt(None, "Keep the examples here, to go on from or use again."),
    quick: bool = opt(False, "Tiny models, to see that all works."),
    seed: int = options.SEED,
    json: Path | None = options.JSON_FILE,
    plot: Path | None = options.CHARTS,
) -> None:
    """Train every model of a published table on a log; show its figures and ours."""
    from salticus.charts.models import prediction_tables, write_prediction
    from salticus.exchange.folder import Log
    from salticus.lab.studies.prediction.arena import ArenaSettings
    from salticus.lab.studies.prediction.run import TABLES, Days, run

    if table not in TABLES:
        raise ConfigError(f"no table is called {table!r}; known: {', '.join(TABLES)}")
    days = Days(day("start", start), day("test", test), day("end", end), tuple(without or ()))
    if work is not None:
        work.mkdir(parents=True, exist_ok=True)
    with TemporaryDirectory(prefix="salticus-study-") as spare, output.steps() as told:
        plan = ArenaSettings(work or Path(spare), examples, seed, tuple(model or ()), quick)
        report = run(table, Log(log), plan, told, days)
    if plot is not None:
        write_prediction(report, plot)
    if output.write_json(report, json):
        for title, rows in prediction_tables(report):
            output.table(title, *rows)


def study_lefortier2013(
    scale: str = opt("small", "tiny (seconds), small (minutes) or full (hours)."),
    log: Path | None = opt(None, "Replay the links of this log instead of synthetic ones."),
    jobs: int | None = opt(None, "Processes. [default: one a core]", min=1),
    seed: int = options.SEED,
    json: Path | None = options.JSON_FILE,
    plot: Path | None = options.CHARTS,
) -> None:
    """Let every policy find new pages at three crawl rates, as the paper on ECHO did."""
    from salticus.charts.lefortier import facts_of, policy_tables, write_lefortier
    from salticus.lab.studies.lefortier import study

    with output.steps() as told:
        report = study(scale, log=log, jobs=jobs or cpu_count() or 1, seed=seed, told=told)
    if plot is not None:
        write_lefortier(report, plot)
    if output.write_json(report, json):
        for title, table in policy_tables(report):
            output.table(title, *table)
        output.facts("beside the table", facts_of(report))
