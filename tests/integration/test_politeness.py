"""Politeness by the mall's own access log, and the budget by the store's own count."""

from __future__ import annotations

import numpy as np
import pytest

from salticus.lab.demo import busiest_day
from salticus.lab.worlds.mall.audit import audit

from .conftest import Street, finished, wait_for

DELAY = 0.05
FAULTS = ("429:0.004:retry=1", "503:0.002", "404:0.01", "redirect:0.02", "reset:0.005", "500:0.01")


def visit_private(street: Street) -> list[str]:
    """Add a page that robots.txt disallows to every shop."""
    urls = (street.folder / "urls.txt").read_text().split()
    shops = sorted({url.split("/o/")[0] for url in urls})
    private = [f"{shop}/private/{k}" for shop in shops for k in range(3)]
    street.add(*private)
    return private


def behave(street: Street, *, shops: int, requests: int) -> None:
    """Crawl until the mall has seen so many requests, then audit them."""
    street.open(*FAULTS, shops=shops, offers=50 * shops, days=400, speed=8640.0, delay=DELAY)
    private = visit_private(street)
    street.set("budget", '"300%"')
    crawler = street.crawl()
    wait_for(lambda: street.requests() >= requests or crawler.poll() is not None, "requests")
    crawler.terminate()
    code, out, err = finished(crawler)
    assert code == 0, err
    report = audit(street.entries(), delay=DELAY)
    print(report, out)
    assert report.requests >= requests
    assert report.clean, str(report)
    check_refusals(street, private)
    check_budget(street, shops)


def check_refusals(street: Street, private: list[str]) -> None:
    """Disallowed pages were visited in name only, and say why."""
    rows = street.sql("SELECT status, fault FROM pages WHERE url LIKE '%/private/%' AND visits > 0")
    assert rows
    assert {status for status, _ in rows} <= {"disallowed", "busy"}
    assert all("robots.txt" in str(fault) for status, fault in rows if status == "disallowed")


def check_budget(street: Street, shops: int) -> None:
    at = np.array([row[0] for row in street.sql("SELECT at FROM observations")], dtype="M8[us]")
    assert busiest_day(at) <= 3 * (50 + 3) * shops


def test_two_thousand_requests(street: Street) -> None:
    behave(street, shops=20, requests=2_000)


@pytest.mark.soak
def test_twenty_thousand_requests_on_fifty_hosts(street: Street) -> None:
    behave(street, shops=50, requests=20_000)
