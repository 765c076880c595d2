"""Every fault of the zoo in one crawl: it finishes, names each, and healthy shops do not notice."""

from __future__ import annotations

import subprocess
import time
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from pathlib import Path

import numpy as np
import pytest

from salticus.config import load
from salticus.lab.worlds.mall.audit import AnsweredVisits, audit, freshness_over
from salticus.lab.worlds.mall.faults import Fault
from salticus.lab.worlds.mall.folder import Plot, cages
from salticus.lab.worlds.mall.stock import Stock, offsets_of

from .conftest import PATIENCE_S, Street

# what a page with this beast must end as, and a word that its fault must hold
NAMED: dict[str, tuple[set[str], str]] = {
    "drip": ({"timeout"}, "time"),
    "hang": ({"timeout"}, "time"),
    "hang-status": ({"timeout"}, "time"),
    "hang-headers": ({"timeout"}, "time"),
    "hang-body": ({"timeout"}, "time"),
    "flood": ({"network", "broken", "too_large"}, "header"),
    "injection": ({"network", "broken"}, "HTTP"),
    "garbage": ({"network", "broken"}, "HTTP"),
    "chunks": ({"network", "broken", "too_large"}, ""),
    "reset": ({"network", "broken"}, "bro"),
    "truncated": ({"broken"}, "bro"),
    "huge": ({"too_large"}, "larger"),
    "bomb": ({"too_large"}, "larger"),
    "brotli-bomb": ({"too_large"}, "larger"),
    "wall": ({"blocked"}, ""),
    "captcha": ({"blocked"}, "captcha"),
    "soft-404": ({"soft_404"}, ""),
    "binary": ({"ok", "broken"}, ""),
    "broken-json": ({"ok"}, "value"),
    "half": ({"ok", "broken"}, ""),
    "redirect:loop": ({"redirects"}, "circle"),
    "redirect:private": ({"disallowed"}, "robots.txt"),
    "redirect:inside": ({"unsafe"}, "10.0.0.1"),
    "redirect:metadata": ({"unsafe"}, "169.254.169.254"),
    "redirect:home": ({"ok", "soft_404"}, ""),
    "moved:home": ({"ok", "soft_404"}, ""),
    "401": ({"blocked"}, "401"),
    "403": ({"blocked"}, "403"),
    "404": ({"gone"}, "404"),
    "410": ({"gone"}, "410"),
    "500": ({"http"}, "500"),
}
# what looks bad and can be read all the same
READ = {
    "latin", "invalid", "twins", "enormous-json", "deep-json", "deep", "skewed", "sessions", "slow",
}  # fmt: skip


def name_of(fault: Fault) -> str:
    return f"{fault.kind}:{fault.to}" if fault.kind in ("redirect", "moved") else fault.kind


def peak_while(process: subprocess.Popen[str], done: Callable[[], bool] = lambda: False) -> float:
    """The most memory (MB) that a process and its children had, until it ends; it is told to once
    all is `done`, or when that would have been long ago."""
    deadline, most = time.monotonic() + PATIENCE_S, 0.0
    while process.poll() is None:
        most = max(most, sum(map(_memory, _family(process.pid))))
        if done() or time.monotonic() > deadline:
            process.terminate()
            process.wait(PATIENCE_S)
        time.sleep(0.2)
    return most


def _family(pid: int) -> list[int]:
    try:
        children = Path(f"/proc/{pid}/task/{pid}/children").read_text().split()
    except OSError:
        return []
    return [pid, *(member for child in children for member in _family(int(child)))]


def _memory(pid: int) -> float:
    """Megabytes, those shared with others counted in part."""
    try:
        lines = Path(f"/proc/{pid}/smaps_rollup").read_text().splitlines()
    except OSError:
        return 0.0
    return sum(int(line.split()[1]) for line in lines if line.startswith("Pss:")) / 1000


def visit_zoo(street: Street, plot: Plot, seconds: float | None = None) -> float:
    """Crawl a mall with a zoo for some seconds, or until all of it was seen; the peak memory in
    MB."""
    options = {"shops": plot.shops, "offers": plot.offers, "days": plot.days, "seed": plot.seed}
    mall = street.start(
        "mall",
        street.folder,
        f"--zoo={plot.zoo}",
        f"--speed={plot.speed}",
        f"--delay={plot.delay}",
        *(f"--{key}={value}" for key, value in options.items()),
    )
    street.opened(mall)
    street.set("timeout", '"4s"')
    street.add("--file", street.folder / "urls.txt", "--kind", "offer")
    if plot.zoo:
        street.add("--no-visit", "--kind", "source", *sources(street, plot).values())
    if seconds is None:
        peak = peak_while(crawl := street.crawl(), lambda: all_seen(street, plot))
    else:
        peak = peak_while(crawl := street.crawl("--for", f"{seconds}s"))
    out, err = crawl.communicate()
    assert crawl.returncode == 0, out + err
    assert "Traceback" not in err, err
    return peak


def sources(street: Street, plot: Plot) -> dict[str, str]:
    """The URLs of one sitemap or calendar of each sort, by the beast that lives there."""
    urls = (street.folder / "urls.txt").read_text().split()
    stock = plot.stock()
    host = {page.shop: urls[row].rpartition("/o/")[0] for row, page in enumerate(stock.pages)}
    shops = {beast.kind: host[int(beast.hosts)] for beast in cages(stock, plot.zoo)[::-1]}
    sitemaps = ("huge-sitemap", "sitemap-cycle", "xml-bomb")
    found = {kind: f"{shops[kind]}/sitemap.xml" for kind in sitemaps}
    return found | {"calendar": f"{shops['calendar']}/calendar/1"}


def check_sources(street: Street, plot: Plot) -> None:
    """Hostile sitemaps and calendars were read as far as they can be, and no further."""
    ends = {"xml-bomb": ("broken", "definitions"), "huge-sitemap": ("too_large", "larger")}
    for kind, url in sources(street, plot).items():
        query = f"SELECT id, status, coalesce(fault, '') FROM pages WHERE url = '{url}'"
        ((number, status, fault),) = street.sql(query)
        expected, word = ends.get(kind, ("ok", ""))
        assert (status, word in str(fault)) == (expected, True), (kind, status, fault)
        ((found,),) = street.sql(f"SELECT count(*) FROM links WHERE source = {number}")
        assert isinstance(found, int)
        assert (found > 0) is (status == "ok"), (kind, found)
        assert found <= 100, (kind, found)


def all_seen(street: Street, plot: Plot) -> bool:
    """Whether the crawl has been everywhere in the zoo, and found all that can be read."""
    marks = ", ".join(f"'{url}'" for url in sources(street, plot).values())
    query = f"SELECT count(*) FROM pages WHERE url IN ({marks}) AND status IS NULL"
    return street.sql(query) == [(0,)] and not misjudged(street, plot)


def misjudged(street: Street, plot: Plot) -> list[tuple[str, list[tuple[str, str]]]]:
    """The beasts that were not visited, or whose observations do not name their faults."""
    urls = (street.folder / "urls.txt").read_text().split()
    stock = plot.stock()
    path_of = {(page.shop, page.path): urls[row] for row, page in enumerate(stock.pages)}
    seen: dict[str, list[tuple[str, str]]] = {}
    for url, status, fault in street.sql(
        "SELECT url, o.status, coalesce(o.fault, '') FROM observations o "
        "JOIN pages ON pages.id = o.page"
    ):
        seen.setdefault(str(url), []).append((str(status), str(fault)))
    beasts = [fault for fault in cages(stock, plot.zoo) if fault.paths]
    assert {name_of(beast) for beast in beasts} >= {*NAMED, *READ}
    wrong = []
    for beast in beasts:
        visits = seen.get(path_of[int(beast.hosts), beast.paths], [])
        if not _as_it_should(name_of(beast), visits):
            wrong.append((name_of(beast), visits[:2]))
    return wrong


def _as_it_should(name: str, visits: list[tuple[str, str]]) -> bool:
    # a host may be left alone for its other pages' sake, or its robots.txt come too late on a busy
    # machine: that says nothing of this page
    silent = "robots.txt could not be reached"
    told = [(how, why) for how, why in visits if how != "busy" and not why.startswith(silent)]
    if name in READ:
        return any(status in ("ok", "not_modified") for status, _ in told)
    statuses, word = NAMED.get(name, ({status for status, _ in told}, ""))
    return bool(told) and all(status in statuses and word in fault for status, fault in told)


def healthy_freshness(street: Street, plot: Plot, start: datetime, end: datetime) -> float:
    """True freshness of the shops that are no zoos, from `start` to `end`."""
    urls = (street.folder / "urls.txt").read_text().split()
    stock = plot.stock()
    rows = [row for row, page in enumerate(stock.pages) if page.shop < plot.shops - plot.zoo]
    place = {urls[row]: number for number, row in enumerate(rows)}
    spans = [range(int(stock.offsets[row]), int(stock.offsets[row + 1])) for row in rows]
    points = [point for span in spans for point in span]
    part = Stock(
        [stock.pages[row] for row in rows],
        offsets_of(np.repeat(np.arange(len(rows)), [len(span) for span in spans]), len(rows)),
        stock.times[points],
        [stock.values[point] for point in points],
    )
    found = street.sql('SELECT url, v.at, v.value FROM "values" v JOIN pages ON pages.id = v.page')
    held = [(place[str(url)], at, str(value)) for url, at, value in found if url in place]
    visits = AnsweredVisits(
        np.array([row for row, _, _ in held], dtype=np.int64),
        np.array([at for _, at, _ in held], dtype=np.int64).view("M8[us]"),
        [value for _, _, value in held],
    )
    return freshness_over(part, visits, (start, end))


def test_a_crawl_of_a_small_zoo(street: Street) -> None:
    plot = Plot(shops=12, offers=156, days=30, zoo=8, speed=8640.0, delay=0.02)
    peak = visit_zoo(street, plot)
    assert peak < 500
    assert misjudged(street, plot) == []
    check_sources(street, plot)


@pytest.mark.soak
def test_a_hundred_shops_with_and_without_their_faults(tmp_path: Path) -> None:
    seconds, fresh = 100.0, {}
    for zoo in (0, 40):
        street = Street(tmp_path / f"zoo-{zoo}")
        plot = Plot(shops=100, offers=2000, days=30, seed=4, zoo=zoo, speed=4320.0, delay=0.02)
        try:
            peak = visit_zoo(street, plot, seconds)
            start = load(street.settings).clock.world_origin
            assert start is not None
            whole = timedelta(seconds=seconds * plot.speed)
            healthy = Plot(shops=100, offers=2000, days=30, seed=4, zoo=40)
            span = (start.astimezone(UTC) + whole / 2, start.astimezone(UTC) + whole)
            fresh[zoo] = healthy_freshness(street, healthy, *span)
            print(f"zoo {zoo}: peak {peak:.0f} MB, healthy freshness {fresh[zoo]:.4f}")
            assert peak < 500
            if zoo:
                assert misjudged(street, plot) == []
                check_sources(street, plot)
            assert not audit(street.entries(), delay=plot.delay).breaches
        finally:
            street.close()
    assert fresh[40] == pytest.approx(fresh[0], abs=0.01)
