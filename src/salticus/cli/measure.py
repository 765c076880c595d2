"""Commands to try things out: the demo, the mall, synthetic logs, the benches."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

from salticus.cli.options import Json, Texts, arg, from_options, opt
from salticus.cli.output import bar, print_answer, print_facts, print_json, print_table, steps

_Sizes = Annotated[list[int] | None, opt("Pages; may be repeated. [default: 10^4 to 10^6]", min=1)]


def demo(
    folder: Annotated[Path | None, arg("Where to put everything.")] = None,
    compare: Annotated[bool, opt("At full size: 20,000 offers of 100 shops.", "--compare")] = False,
    seed: Annotated[int, opt("Fixes the market and every chance.")] = 0,
    seconds: Annotated[float | None, opt("How long each crawl takes, wall time.")] = None,
    offers: Annotated[int | None, typer.Option(min=1)] = None,
    json: Json = False,
) -> None:
    """Crawl a mall of its own twice, once evenly and once with leap, and compare the copies."""
    import tempfile
    from dataclasses import replace

    from salticus.crawl.running import run_fast
    from salticus.lab.demo import FULL, PAGE, SMALL, run_demo, table_of

    where = folder or Path(tempfile.mkdtemp(prefix="salticus-demo-"))
    course = replace(FULL if compare else SMALL, seed=seed)
    course = replace(course, seconds=seconds or course.seconds, offers=offers or course.offers)
    if not json:
        typer.echo(f"{course}; see {where}")
    with steps() as told:
        facts = run_fast(run_demo(where, course, told))
    facts["page"] = str(where / PAGE)
    if json:
        print_json(facts)
        return
    rows = table_of(facts, course.policies)
    print_table("what the crawls achieved", ("", *course.policies), rows)
    typer.echo(f"charts: {facts['page']}")


def mall(
    folder: Annotated[Path, arg("A new folder.")],
    shops: Annotated[int, opt("Hosts, one port each.", min=1)] = 20,
    offers: Annotated[int, typer.Option(min=1)] = 2000,
    days: Annotated[float, opt("World days that prices change.")] = 30.0,
    seed: Annotated[int, opt("Fixes the mall.")] = 0,
    speed: Annotated[float, opt("World seconds a wall second.")] = 3600.0,
    delay: Annotated[float, opt("Seconds between requests to a shop.")] = 0.05,
    page_size: Annotated[int | None, opt("Pad offers to so many bytes.")] = None,
    fault: Annotated[Texts, opt("E.g. 429:0.02:retry=2.")] = None,
    log: Annotated[Path | None, opt("Serve the values of this log.")] = None,
    markup: Annotated[
        Texts, opt("jsonld, microdata, rdfa, opengraph or script; shops take turns.")
    ] = None,
    zoo: Annotated[int, opt("So many shops serve every fault known.", min=0)] = 0,
    shoppers: Annotated[
        bool, opt("With --log: its people click at the crawler's desk.", "--shoppers")
    ] = False,
    wait: Annotated[
        bool, opt("Time passes only while a crawl with the mall's settings runs.")
    ] = True,
    json: Json = False,
) -> None:
    """Open a mall on loopback to crawl, with settings and addresses for it, until stopped."""
    from salticus.crawl.running import run_fast
    from salticus.lab.worlds.mall.faults import parse_fault
    from salticus.lab.worlds.mall.folder import Plot, mall_until_stopped, paths

    faults = [parse_fault(text) for text in fault or ()]
    plot = from_options(Plot, locals(), markup=markup or ("jsonld",))

    def opened(pages: int) -> None:
        files = {name: str(path) for name, path in paths(folder).items()}
        said = (
            f"{pages:,} pages in {shops} shops are open; in another terminal:\n"
            f"  salticus add --file {files['urls']} -c {files['settings']}\n"
            f"  salticus run -c {files['settings']}\n"
            "stop the mall with Ctrl-C"
        )
        print_answer({"pages": pages, "shops": shops, **files}, json, said)

    run_fast(mall_until_stopped(folder, plot, opened))


def bench_fetch(
    pages: Annotated[int, opt("Pages that each fetches.", min=1)] = 16_000,
    rounds: Annotated[int, opt("Each is run so often; medians count.", min=1)] = 3,
    size: Annotated[int, opt("Bytes of a page.")] = 68_000,
    mixed: Annotated[
        bool, opt("A third of the pages in microdata, links wanted too.", "--mixed")
    ] = False,
    json: Json = False,
) -> None:
    """Pages a second: a bare aiohttp loop, Salticus, and a bare Scrapy spider, side by side."""
    _bench("fetch", "fetching", json, pages=pages, rounds=rounds, size=size, mixed=mixed)


def bench_simulate(
    pages: _Sizes = None,
    policy: Annotated[Texts, opt("A name; may be repeated. [default: all]")] = None,
    days: Annotated[int, opt("Days that each crawls.", min=1)] = 3,
    json: Json = False,
) -> None:
    """Page-ticks a second of every policy through the real loop, beside a bare NumPy loop."""
    _bench("simulate", "simulating", json, sizes=pages, policies=policy, days=days)


def bench_policies(
    pages: Annotated[
        list[int] | None, opt("Pages; may be repeated. [default: 10^5, 10^6 and 10^7]", min=1)
    ] = None,
    policy: Annotated[
        Texts, opt("A name; may be repeated. [default: leap and lambdacrawl]")
    ] = None,
    json: Json = False,
) -> None:
    """Seconds and memory of one plan over all pages, beside a bare NumPy pass."""
    _bench("policies", "one plan over all pages", json, sizes=pages, policies=policy)


def bench_learn(
    rows: Annotated[int, opt("Rows of each contest.", min=1)] = 1_000_000,
    contest: Annotated[
        Texts, opt("examples, training, dnn, sequence or trees; repeatable. [default: all]")
    ] = None,
    json: Json = False,
) -> None:
    """Rows a second of making examples, training and scoring; training beside a bare JAX loop."""
    _bench("learn", "learning", json, rows=rows, contests=contest)


def bench_tick(pages: _Sizes = None, json: Json = False) -> None:
    """Seconds and memory of one tick of a crawl: columns, predictions, policy, visits, snapshot."""
    _bench("tick", "one tick of a crawl", json, sizes=pages)


def _bench(name: str, title: str, json: bool, **chosen: Any) -> None:
    """Run a bench with what was chosen, the rest as it usually is, and print its rows."""
    from salticus.lab.bench import run_bench

    with steps() as told:
        rows = run_bench(name, told, **chosen)
    answer = {"plans": rows} if name == "policies" else rows
    table = tuple(rows[0]), [tuple(row.values()) for row in rows]
    print_answer(answer, json, lambda _: print_table(title, *table))


def make_market(
    out: Annotated[Path, opt("A new folder for the log.")],
    offers: Annotated[int, typer.Option(min=1)] = 10_000,
    days: Annotated[int, typer.Option(min=1)] = 120,
    seed: Annotated[int, opt("Fixes the market.")] = 0,
    preset: Annotated[str, opt("han2019 or han2020.")] = "han2020",
    json: Json = False,
) -> None:
    """Make a synthetic market of offers: the truth, its readers, and what a crawler saw of it."""
    from salticus.lab.worlds.market import MarketSize, make_market

    with bar(offers) as told:
        rows = make_market(out, MarketSize(offers, days), seed=seed, preset=preset, told=told)
    answer = {"out": str(out), "rows": rows}
    print_answer(answer, json, lambda _: print_facts(f"wrote {out}", rows))
