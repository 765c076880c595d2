"""Commands that show and measure: the demo, the mall, the benches."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from salticus.cli.options import Json
from salticus.cli.output import print_json, print_table, steps

Folder = Annotated[Path, typer.Argument(help="A new folder.")]


def demo(
    folder: Annotated[Path | None, typer.Argument(help="Where to put everything.")] = None,
    compare: Annotated[
        bool, typer.Option("--compare", help="At full size: 20,000 offers of 100 shops.")
    ] = False,
    seed: Annotated[int, typer.Option(help="Fixes the market and every chance.")] = 0,
    seconds: Annotated[
        float | None, typer.Option(help="How long each crawl takes, wall time.")
    ] = None,
    offers: Annotated[int | None, typer.Option(min=1)] = None,
    json: Json = False,
) -> None:
    """Crawl a mall of its own twice, once evenly and once with leap, and compare the copies."""
    import tempfile
    from dataclasses import replace

    from salticus.crawl.running import run_fast
    from salticus.lab.demo.compare import FULL, PAGE, SMALL, run_demo, table_of

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
    header = ("", *(name for name in course.policies))
    print_table("what the crawls achieved", header, table_of(facts, course.policies))
    typer.echo(f"charts: {facts['page']}")


def mall(
    folder: Folder,
    shops: Annotated[int, typer.Option(min=1, help="Hosts, one port each.")] = 20,
    offers: Annotated[int, typer.Option(min=1)] = 2000,
    days: Annotated[float, typer.Option(help="World days that prices change.")] = 30.0,
    seed: Annotated[int, typer.Option(help="Fixes the mall.")] = 0,
    speed: Annotated[float, typer.Option(help="World seconds a wall second.")] = 3600.0,
    delay: Annotated[float, typer.Option(help="Seconds between requests to a shop.")] = 0.05,
    page_size: Annotated[int | None, typer.Option(help="Pad offers to so many bytes.")] = None,
    fault: Annotated[list[str] | None, typer.Option(help="E.g. 429:0.02:retry=2.")] = None,
    log: Annotated[Path | None, typer.Option(help="Serve the values of this log.")] = None,
    markup: Annotated[
        list[str] | None,
        typer.Option(help="jsonld, microdata, rdfa, opengraph or script; shops take turns."),
    ] = None,
    zoo: Annotated[int, typer.Option(min=0, help="So many shops serve every fault known.")] = 0,
    shoppers: Annotated[
        bool, typer.Option("--shoppers", help="With --log: its people click at the crawler's desk.")
    ] = False,
    wait: Annotated[
        bool, typer.Option(help="Time passes only while a crawl with the mall's settings runs.")
    ] = True,
    json: Json = False,
) -> None:
    """Open a mall on loopback to crawl, with settings and addresses for it, until stopped."""
    from salticus.crawl.running import run_fast
    from salticus.lab.worlds.mall.faults import parse_fault
    from salticus.lab.worlds.mall.folder import Plot, mall_until_stopped, paths

    plot = Plot(
        shops=shops,
        offers=offers,
        days=days,
        seed=seed,
        speed=speed,
        delay=delay,
        page_size=page_size,
        faults=[parse_fault(text) for text in fault or ()],
        log=log,
        markup=markup or ("jsonld",),
        zoo=zoo,
        shoppers=shoppers,
        wait=wait,
    )

    def opened(pages: int) -> None:
        files = {name: str(path) for name, path in paths(folder).items()}
        if json:
            print_json({"pages": pages, "shops": plot.shops, **files})
            return
        typer.echo(
            f"{pages:,} pages in {plot.shops} shops are open; in another terminal:\n"
            f"  salticus add --file {files['urls']} -c {files['settings']}\n"
            f"  salticus run -c {files['settings']}\n"
            "stop the mall with Ctrl-C"
        )

    run_fast(mall_until_stopped(folder, plot, opened))


def bench_fetch(
    pages: Annotated[int, typer.Option(min=1, help="Pages that each fetches.")] = 16_000,
    rounds: Annotated[int, typer.Option(min=1, help="Each is run so often; medians count.")] = 3,
    size: Annotated[int, typer.Option(help="Bytes of a page.")] = 68_000,
    mixed: Annotated[
        bool, typer.Option("--mixed", help="A third of the pages in microdata, links wanted too.")
    ] = False,
    json: Json = False,
) -> None:
    """Pages a second: a bare aiohttp loop, Salticus, and a bare Scrapy spider, side by side."""
    from salticus.lab.bench.fetch import bench

    rows = bench(pages=pages, rounds=rounds, size=size, mixed=mixed)
    if json:
        print_json(rows)
    else:
        print_table("fetching", tuple(rows[0]), [tuple(row.values()) for row in rows])


def bench_simulate(
    pages: Annotated[
        list[int] | None,
        typer.Option(min=1, help="Pages; may be repeated. [default: 10^4 to 10^6]"),
    ] = None,
    policy: Annotated[
        list[str] | None, typer.Option(help="A name; may be repeated. [default: all]")
    ] = None,
    days: Annotated[int, typer.Option(min=1, help="Days that each crawls.")] = 3,
    json: Json = False,
) -> None:
    """Page-ticks a second of every policy through the real loop, beside a bare NumPy loop."""
    from salticus.lab.bench.replay import POLICIES, SIZES, bench

    with steps() as told:
        found = bench(sizes=pages or SIZES, policies=policy or POLICIES, days=days, told=told)
        rows = list(found)
    if json:
        print_json(rows)
    else:
        print_table("simulating", tuple(rows[0]), [tuple(row.values()) for row in rows])


def bench_policies(
    pages: Annotated[
        list[int] | None,
        typer.Option(min=1, help="Pages; may be repeated. [default: 10^5, 10^6 and 10^7]"),
    ] = None,
    policy: Annotated[
        list[str] | None,
        typer.Option(help="A name; may be repeated. [default: leap and lambdacrawl]"),
    ] = None,
    json: Json = False,
) -> None:
    """Seconds and memory of one plan over all pages, beside a bare NumPy pass."""
    from salticus.lab.bench.policies import POLICIES, SIZES, bench

    with steps() as told:
        plans = list(bench(sizes=pages or SIZES, policies=policy or POLICIES, told=told))
    if json:
        print_json({"plans": plans})
    else:
        rows = [tuple(row.values()) for row in plans]
        print_table("one plan over all pages", tuple(plans[0]), rows)


def bench_learn(
    rows: Annotated[int, typer.Option(min=1, help="Rows of each contest.")] = 1_000_000,
    contest: Annotated[
        list[str] | None,
        typer.Option(help="examples, training, dnn, sequence or trees; repeatable. [default: all]"),
    ] = None,
    json: Json = False,
) -> None:
    """Rows a second of making examples, training and scoring; training beside a bare JAX loop."""
    from salticus.lab.bench.learn import CONTESTS, bench

    with steps() as told:
        found = list(bench(rows=rows, contests=contest or CONTESTS, told=told))
    if json:
        print_json(found)
    else:
        print_table("learning", tuple(found[0]), [tuple(row.values()) for row in found])


def bench_tick(
    pages: Annotated[
        list[int] | None,
        typer.Option(min=1, help="Pages; may be repeated. [default: 10^4 to 10^6]"),
    ] = None,
    json: Json = False,
) -> None:
    """Seconds and memory of one tick of a crawl: columns, predictions, policy, visits, snapshot."""
    from salticus.lab.bench.tick import SIZES, bench

    with steps() as told:
        rows = list(bench(sizes=pages or SIZES, told=told))
    if json:
        print_json(rows)
    else:
        print_table("one tick of a crawl", tuple(rows[0]), [tuple(row.values()) for row in rows])
