"""The example project for Scrapy, run as its users do, judged by the access log of a mall."""

from __future__ import annotations

import shutil
import subprocess
import sys
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import urlsplit

import pytest

from salticus.lab.worlds.mall.audit import AccessEntry
from salticus.observe import digest
from salticus.store.sqlite.database import holder_of

from .conftest import Street, finished, wait_for

EXAMPLE = Path(__file__).parents[2] / "examples" / "scrapy-shop"
OFFERS = 70
BUDGET = 40  # in the example's salticus.toml
FAULTS = {"410": "gone", "broken-json": "broken"}  # Scrapy retries neither
LOGGED = ("--logfile", "scrapy.log")
PLANNED = "purpose != 'manual'"

Seen = dict[str, tuple[object, ...]]


@dataclass
class Project:
    """A copy of the example, beside a mall."""

    place: Street
    mall: Street

    def start(self, *words: str) -> subprocess.Popen[str]:
        url = urlsplit((self.mall.folder / "urls.txt").read_text().split()[0])
        home = f"home={url.scheme}://{url.netloc}/"
        process = subprocess.Popen(
            [sys.executable, "-m", "scrapy", "crawl", "offers", "-a", home, *LOGGED, *words],
            cwd=self.place.folder,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        self.mall.processes.append(process)
        return process

    def crawl(self, *words: str) -> None:
        """One whole run."""
        self.end(self.start(*words))

    def end(self, running: subprocess.Popen[str]) -> None:
        code, _, err = finished(running)
        told = (self.place.folder / "scrapy.log").read_text()
        assert code == 0, told + err
        errors = [line for line in told.splitlines() if " ERROR: " in line]
        assert all("Spider error processing <GET" in line for line in errors), told

    def asked(self) -> list[AccessEntry]:
        """All requests for offers so far."""
        entries = self.mall.entries() if self.mall.requests() else []
        return [entry for entry in entries if entry.path.startswith("/o/")]

    def seen(self, which: str) -> Seen:
        """Path → visit, status, changed and digest of a page, each of which was visited once."""
        query = "SELECT url, visit, o.status, changed, o.digest FROM observations o JOIN pages p"
        rows = self.place.sql(f"{query} ON o.page = p.id WHERE {which}")
        found = {urlsplit(str(url)).path: tuple(rest) for url, *rest in rows}
        assert len(found) == len(rows), "a page was visited twice"
        return found


@pytest.fixture
def project(street: Street) -> Project:
    folder = street.folder.with_name("project")
    shutil.copytree(EXAMPLE, folder)
    faults = [f"--fault={kind}:0.1" for kind in FAULTS]
    options = [
        "--shops=1",
        f"--offers={OFFERS}",
        "--days=90",
        "--speed=86400",
        "--no-wait",
        *faults,
    ]
    street.opened(street.start("mall", street.folder, *options))
    return Project(Street(folder), street)


def truth(entry: AccessEntry) -> tuple[str, str | None]:
    """Status and digest that the visit behind a request must have."""
    if entry.fault is not None:
        return FAULTS[entry.fault], None
    return ("gone", None) if entry.value is None else ("ok", digest(entry.value))


def once(entries: Iterable[AccessEntry]) -> dict[str, AccessEntry]:
    """The requests of a run by their path."""
    counts = Counter(entry.path for entry in entries)
    assert max(counts.values()) == 1, "a page was requested twice in a run"
    return {entry.path: entry for entry in entries}


def test_runs_of_the_example_keep_to_the_plan_and_survive_a_kill(project: Project) -> None:
    project.crawl("-s", "DOWNLOAD_DELAY=0")
    first = once(project.asked())
    known = project.seen("1")
    assert known.keys() == {path for path, entry in first.items() if truth(entry)[0] == "ok"}
    assert len(known) > BUDGET
    assert all(known[path][1:] == ("ok", None, truth(first[path])[1]) for path in known)

    killed = project.start("-s", "DOWNLOAD_DELAY=0.1")
    wait_for(lambda: bool(project.seen(PLANNED)), "the first planned visits")
    assert holder_of(project.place.database) is not None
    killed.kill()
    killed.communicate()
    second = once(project.asked()[len(first) :])
    before = project.seen(PLANNED)
    assert len(before) < BUDGET

    project.crawl("-s", "DOWNLOAD_DELAY=0")
    third = once(project.asked()[len(first) + len(second) :])
    planned = project.seen(PLANNED)
    assert len(planned) == BUDGET
    assert before.items() <= planned.items()  # nothing is lost,
    assert not before.keys() & third.keys()  # and nothing that is stored is done again
    assert (second.keys() | third.keys()) & known.keys() == planned.keys()
    for path, (_, status, changed, value) in planned.items():
        assert (status, value) == truth((second | third)[path])
        assert changed == (None if value is None else value != known[path][3])
    assert any(changed for _, _, changed, _ in planned.values())
    assert {status for _, status, _, _ in planned.values()} > {"ok"}  # some failed


def test_a_continuous_run_plans_tick_after_tick(project: Project) -> None:
    per_second, ticks = 30, 6
    settings = f'budget = {per_second * 86_400}\ntick = "500ms"\n'
    (project.place.folder / "always.toml").write_text(settings)
    options = ["SALTICUS_CONTINUOUS=1", "SALTICUS_CONFIG=always.toml", "DOWNLOAD_DELAY=0"]
    running = project.start(*(word for option in options for word in ("-s", option)))
    enough = OFFERS + per_second * ticks // 2
    wait_for(lambda: project.mall.requests() > enough, "ticks")
    running.terminate()
    project.end(running)
    query = f"SELECT count(*), max(at) - min(at) FROM observations WHERE {PLANNED}"
    ((visits, span),) = project.place.sql(query)
    assert visits > per_second  # type: ignore[operator]
    assert visits <= per_second * (span / 1e6 + 1.5)  # type: ignore[operator]
    ((stored,),) = project.place.sql("SELECT count(*) FROM observations")
    failed = {e.path for e in project.asked()} - project.seen("purpose = 'manual'").keys()
    assert stored == sum(entry.path not in failed for entry in project.asked())
