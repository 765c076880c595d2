"""Checks of settings, store, budget and hosts, with advice; nothing is changed by them."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Iterator
from importlib.util import find_spec
from pathlib import Path

import numpy as np

from salticus.config import Config, load
from salticus.crawl.opening import Crawl, clock_of, open_crawl, stored
from salticus.crawl.parts import make_parts
from salticus.errors import ConfigError, PluginError, SalticusError, StoreMissing
from salticus.store import open_store
from salticus.store.nouns import Health, Query
from salticus.views.alerts import alerts_of, headline
from salticus.views.burden import burden
from salticus.views.finding import Finding, bad, doubtful, good
from salticus.views.listing import pages
from salticus.views.trial import trial

_ROLES = ("policy", "predictor", "spacing", "gate", "proposer")
_LOW, _FULL = 1_000_000_000, 50_000_000  # bytes left on the disk


async def examine(path: Path, url: str | None = None) -> AsyncIterator[Finding]:
    """All checks of the settings at `path`, then a trial of `url`, or of a page of the store."""
    config, found = await settings_of(path)
    for finding in found:
        yield finding
    if config is None:
        return
    holds = False
    async for finding in _store(config):
        holds = holds or finding.about == "pages"
        yield finding
    sample = url or (await _sample(config) if holds else None)
    if sample is None:
        yield doubtful("trial", "there is no page to try", "Name one: `salticus doctor URL`.")
        return
    async for finding in trial(config, sample):
        yield finding


# ---------------------------------------------------------------------------------------- settings


async def settings_of(path: Path) -> tuple[Config | None, list[Finding]]:
    """The settings, if they can be understood, and what can be said of them alone."""
    try:
        config = load(path)
    except ConfigError as error:
        remedy = "`salticus config default` shows all settings."
        return None, [bad("settings", str(error), remedy)]
    parts = await _parts(config)
    return config, [good("settings", f"{path} is understood"), *_settings(config), *parts]


def _settings(config: Config) -> Iterator[Finding]:
    yield _contact(config.fetch.contact)
    for section, problem in _problems(config):
        yield bad(section, problem)
    if any(rule.render for rule in config.pages):
        yield _browser(config.fetch.browser)
    if config.extract.pdf and find_spec("pypdf") is None:
        extra = "Install Salticus with the extra `pdf`."
        yield bad("pdf", "extract.pdf is set, but pypdf is not installed", extra)


def _contact(contact: str) -> Finding:
    if not contact:
        return bad(
            "contact",
            "fetch.contact is empty, and `salticus run` will not start without it",
            "Give an e-mail or web address at which site owners can reach you.",
        )
    if "@" not in contact and "://" not in contact:
        return doubtful(
            "contact",
            f"{contact!r} is neither an e-mail nor a web address",
            "Site owners who have a complaint would rather write to you than block you.",
        )
    return good("contact", f"site owners are told that they can turn to {contact}")


async def _parts(config: Config) -> list[Finding]:
    """What keeps `run` from making what plans and learns. It is made as `run` makes it, on an empty
    store, since the crawl's own may not be there yet."""
    try:
        make_parts(config, clock_of(config), await open_store("memory:"))
    except PluginError as error:
        return [bad(_role(str(error)), str(error))]
    except Exception as error:  # a user's own part may do anything
        return [bad("parts", f"{type(error).__name__}: {error}")]
    return []


def _role(said: str) -> str:
    """The part that an error speaks of.

    >>> _role("no predictor is called 'nosuch'")
    'predictor'
    """
    return next((word for word in said.split() if word in _ROLES), "parts")


def _problems(config: Config) -> Iterator[tuple[str, str]]:
    """What is wrong with rules, identities and hooks: (section, problem)."""
    from salticus.extract.rules import check_rules
    from salticus.fetch.identity import Identities

    checks: dict[str, Callable[[], object]] = {
        "[[pages]]": lambda: check_rules(config.pages),
        "[[hosts]]": lambda: Identities(config),
        "[on_change]": lambda: _hook(config),
    }
    for section, check in checks.items():
        try:
            check()
        except SalticusError as error:
            yield section, str(error)


def _hook(config: Config) -> None:
    """Refuse what cannot be run on changes; nothing is run."""
    from salticus.crawl.hooks import action_of

    if config.on_change is not None:
        action_of(config.on_change, Path(config.folder))


def _browser(named: str | None) -> Finding:
    from salticus.fetch.browser import find

    try:
        return good("browser", f"pages with scripts are rendered by {find(named)}")
    except ConfigError as error:
        return bad("browser", str(error))


# ------------------------------------------------------------------------------------------- store


async def _store(config: Config) -> AsyncIterator[Finding]:
    try:
        async with stored(config, create=False) as store:
            health = await store.health()
            yield _health(config.store, health)
            if health.wrong is None:
                if health.free is not None:
                    yield _disk(health.free)
                yield _holder(await store.holder())
                async for finding in _held(Crawl(config, store, clock_of(config))):
                    yield finding
    except StoreMissing:
        yield doubtful("store", f"{config.store} is not there yet", "`salticus add URL` makes it.")
    except SalticusError as error:
        yield bad("store", str(error), "A copy made by `salticus backup` can take its place.")


def _health(name: str, health: Health) -> Finding:
    if health.wrong is None:
        return good("store", f"{name} is sound ({health.bytes / 1e6:,.1f} MB)")
    copy = "Keep a copy of the file as it is, and go back to your last backup."
    return bad("store", f"{name} is damaged: {' '.join(health.wrong.split())}", copy)


def _disk(free: int) -> Finding:
    said = f"{free / 1e9:,.1f} GB are free where the store lies"
    if free >= _LOW:
        return good("disk", said)
    more = "Make room, or set `retention` so that old visits are deleted."
    return (bad if free < _FULL else doubtful)("disk", said, more)


def _holder(holder: str | None) -> Finding:
    if holder is None:
        return good("running", "no crawl is running")
    return good("running", f"a crawl is running (process {holder})")


async def _held(crawl: Crawl) -> AsyncIterator[Finding]:
    config, store = crawl.config, crawl.store
    for finding in await burden(crawl):
        yield finding
    ids = (await store.table()).ids if config.pages else None
    for rule in config.pages:
        if ids is not None and not np.any(await store.fitting(ids, [rule]) >= 0):
            yield doubtful("[[pages]]", f"the store has no {rule.named}")
    open_ = await alerts_of(crawl)
    for alert in open_:
        yield doubtful("alert", headline(alert), alert.advice)
    if not open_:
        yield good("alerts", "no host has an alert")


async def _sample(config: Config) -> str | None:
    """A page to try: the last that was visited and is no source, else any."""
    async with open_crawl(config) as crawl:
        query = Query(sort="last_visit", descending=True, limit=100)
        found = [page for page in await pages(crawl, query) if page.kind != "source"]
    well = [page for page in found if page.state in ("well", "new")]
    return next((page.url for page in well or found), None)
