"""A trial visit of one page, not stored: what robots.txt says, what comes back, what is read."""

from __future__ import annotations

import re
from collections.abc import AsyncIterator, Iterator
from contextlib import suppress
from functools import partial
from textwrap import shorten
from typing import Literal

import msgspec
from msgspec.structs import replace

from salticus.clock import passing
from salticus.config import Config
from salticus.crawl.assembly import fetching
from salticus.crawl.opening import alone, clock_of
from salticus.errors import (
    ExtractError,
    PluginError,
    SalticusError,
    StoreLocked,
    UnknownPage,
)
from salticus.extract.base import Content
from salticus.fetch.robots import Robots
from salticus.store.base import Store
from salticus.types import Fetched, HostState, Reading, Status, Target, Value
from salticus.urls import canonical


class Finding(msgspec.Struct, frozen=True):
    """One line of the doctor's report; `advice` says what to do, if anything."""

    level: Literal["ok", "warn", "fail"]
    about: str
    said: str
    advice: str = ""


good = partial(Finding, "ok")
doubtful = partial(Finding, "warn")  # it works, but perhaps not as wished
bad = partial(Finding, "fail")

_LOOKED_AT = 2_000_000  # bytes
_FEW = 30  # words; a page with fewer is a shell
_SHELL = "The page is an empty shell that needs JavaScript: [[pages]] with render = true."
_UNSEEN = ["script", "style", "noscript", "template", "svg"]
_STYLES = {
    "JSON-LD": re.compile(rb"application/ld\+json", re.IGNORECASE),
    "microdata": re.compile(rb"\bitemprop\s*=", re.IGNORECASE),
    "OpenGraph": re.compile(rb"\b(?:property|name)\s*=\s*[\"']?(?:og|product):", re.IGNORECASE),
}
_SHOP = re.compile(
    rb"schema\.org/(?:Product|Offer)|\"@type\"\s*:\s*\"(?:Product|Offer)|product:price"
    rb"|class=[\"'][^\"'>]{0,80}price|add[-_ ]to[-_ ](?:cart|basket)",
    re.IGNORECASE,
)


def styles(body: bytes) -> list[str]:
    """The styles of mark-up that a page uses, of those that can state a price.

    >>> styles(b'<b itemprop="price">9</b>')
    ['microdata']
    """
    return [name for name, trace in _STYLES.items() if trace.search(body[:_LOOKED_AT])]


def sells(body: bytes) -> bool:
    """Whether a page looks like one that sells something."""
    return _SHOP.search(body[:_LOOKED_AT]) is not None


def shell(body: bytes) -> bool:
    """Whether a page shows next to nothing until its scripts have run.

    >>> shell(b"<div id=app></div><script src=app.js></script>")
    True
    """
    from selectolax.lexbor import LexborHTMLParser

    tree = LexborHTMLParser(body[:_LOOKED_AT])
    if tree.css_first("script") is None or tree.body is None:
        return False
    tree.strip_tags(_UNSEEN)
    return len((tree.body.text(separator=" ") if tree.body else "").split()) < _FEW


def why_no_price(body: bytes) -> str:
    """What to do about a page without a price."""
    if shell(body):
        return _SHELL
    said = "The page has no JSON-LD, microdata or OpenGraph. Say where the price stands"
    if found := styles(body):
        said = f"The page has {' and '.join(found)}, but no price in it. Say where it stands"
    return f'{said}: [[pages]] with select = {{ "price" = "css:..." }}.'


def doubt(body: bytes, kind: str | None, value: Value | None) -> tuple[str, str] | None:
    """What is missing from what was read of a page of that kind, and advice; None if nothing is."""
    if kind == "source":
        return None
    if value is None:
        if kind == "offer":
            return "no price was found", why_no_price(body)
        other = "It may be an image, a file or an error page. Look at it in a browser."
        return "no value was found", _SHELL if shell(body) else other
    if value.kind != "offer" and kind is None and sells(body):
        return "it looks like an offer, but no price was found", why_no_price(body)
    return None


PATIENCE_S = 60.0  # for the page's turn at its host

_REMEDY = {
    Status.GONE: "See whether the URL is right; `salticus forget URL` if the page is gone.",
    Status.DISALLOWED: "The site does not want it visited, and so it is not.",
    Status.UNSAFE: "If this is a machine of your own, allow it: fetch.allow_private.",
    Status.BUSY: "The site asks for patience. Try again later, and give it a longer delay.",
    Status.TIMEOUT: "Try again; if it is always so slow, raise fetch.timeout.",
    Status.TOO_LARGE: "If you want it all the same, raise fetch.max_size.",
    Status.REDIRECTS: "Open it in a browser, and add the URL at which you end.",
    Status.NETWORK: "See whether this machine reaches the site, and whether it needs a proxy.",
    Status.CERTIFICATE: "Open the site in a browser: its certificate is not valid for its name.",
    Status.BLOCKED: "It does not let us in. If you have an account, give cookies in [[hosts]].",
    Status.SOFT_404: "The page says that it does not exist. See whether the URL is right.",
}


async def trial(config: Config, url: str) -> AsyncIterator[Finding]:
    """Visit a page once, politely, and tell what came of it."""
    if not config.fetch.contact:
        yield doubtful("trial", f"{url} was not tried: fetch.contact is empty")
        return
    try:
        async with alone(config) as store:
            async for finding in _tried(config, url, store):
                yield finding
    except StoreLocked:
        yield doubtful(
            "trial",
            f"{url} was not tried: a crawl is running, and two would not be polite",
            f"See what it found with `salticus show {url}`, or stop it first.",
        )
    except SalticusError as error:
        yield bad("trial", str(error))


async def _tried(config: Config, url: str, store: Store | None) -> AsyncIterator[Finding]:
    clock = clock_of(config)
    target, hosts = await _known(config, url, store)
    async with fetching(config, clock) as fetcher:
        fetcher.restore(hosts)
        async with passing(clock):
            fetched = await fetcher.fetch(target, clock.wall() + PATIENCE_S)
        state = fetcher.host(target.host)
    if state.robots_code is not None:
        robots = Robots(state.robots_code, state.robots or "", state.robots_until)
        yield _robots(robots, target, fetched, clock.wall())
        if not robots.known(clock.wall()):
            return
    if fetched is None:
        asked = "It asked for a pause; try again later."
        yield doubtful("fetch", f"the turn of {url} did not come in {PATIENCE_S:.0f} s", asked)
        return
    if fetched.status is Status.DISALLOWED:
        return
    yield _fetch(target, fetched)
    if fetched.status is Status.OK:
        for finding in await _read(config, target, fetched):
            yield finding


async def _known(config: Config, url: str, store: Store | None) -> tuple[Target, list[HostState]]:
    """The page as a target without validators, so that it is sent whole, and the hosts known."""
    target = Target(0, *canonical(url))
    hosts: list[HostState] = []
    if store is not None:
        with suppress(UnknownPage):
            page = await store.page(target.url)
            target = replace(target, kind=page.kind, tags=tuple(page.tags))
        hosts = await store.hosts()
    target = config.ruled(target)
    rule = config.rule(target.rule)
    return (replace(target, kind=rule.kind) if rule and rule.kind else target), hosts


def _robots(robots: Robots, target: Target, fetched: Fetched | None, now: float) -> Finding:
    """What robots.txt means for visits to the page, at wall time `now`."""
    if not robots.known(now):
        return _unread(target, fetched)
    about, url = "robots.txt", target.url
    line = deciding(robots.text, url)
    if fetched is not None and fetched.status is Status.DISALLOWED:
        said = f"{url} may not be visited: {fetched.fault}"
        return bad(about, f"{said} ({line})" if line else said, _REMEDY[Status.DISALLOWED])
    said = f"{url} may be visited ({line or 'no rule speaks of it'})"
    if robots.due(now):
        why = "it could not be read this time; what it said before holds for up to a week"
        return doubtful(about, f"{why}: {said}")
    return good(about, said if robots.text else "the host has no rules; all may be visited")


def _unread(target: Target, fetched: Fetched | None) -> Finding:
    """That robots.txt is not known, and so nothing is visited."""
    told, status = "robots.txt could not be reached", Status.NETWORK
    if fetched is not None and fetched.status is not Status.DISALLOWED:  # it was asked for now
        told, status = fetched.fault or told, fetched.status
    remedy = _REMEDY.get(status, "")
    meaning = f"until it can be read, no page of {target.host} is visited"
    again = f"{remedy} Salticus asks for it again by itself.".lstrip()
    return bad("robots.txt", f"{told}; {meaning}", again)


def _fetch(target: Target, fetched: Fetched) -> Finding:
    if fetched.status is not Status.OK:
        said = f"{fetched.status.label}: {fetched.fault}"
        return bad("fetch", said, _REMEDY.get(fetched.status, ""))
    kind = fetched.content_type or "of an unnamed type"
    size = f"{len(fetched.body) / 1000:,.1f} KB"
    said = f"{fetched.code} in {fetched.elapsed_s:.2f} s, {size}, {kind}"
    if fetched.url == target.url:
        return good("fetch", said)
    way = "moved for good" if fetched.moved else "redirected"
    return good("fetch", f"{said}; {way} to {fetched.url}")


async def _read(config: Config, target: Target, fetched: Fetched) -> list[Finding]:
    from salticus.extract.pool import Extraction

    content = Content(fetched.url, fetched.body, fetched.content_type, fetched.charset)
    extraction = Extraction(config.extract, rules=config.pages)
    try:
        reading = await extraction.read(content, target)
    except (ExtractError, PluginError) as error:
        return [bad("value", str(error), "If it is too slow, raise extract.deadline.")]
    finally:
        await extraction.close()
    return [*_value(target.kind, fetched.body, reading), *_more(target, reading)]


def _value(kind: str | None, body: bytes, reading: Reading) -> Iterator[Finding]:
    value = reading.value
    if reading.status is not Status.OK:
        said = f"{reading.status.label}: {reading.fault}"
        yield bad("value", said, _REMEDY.get(reading.status, ""))
        return
    missing = doubt(body, kind, value)
    if value is not None:
        fields = ", ".join(f"{k} {shorten(v, 60)}" for k, v in value.fields.items() if v)
        said = f"{value.kind}: {shorten(value.text, 160, placeholder=' …')}"
        yield good("value", f"{said} ({fields})" if fields else said)
    if missing is not None:
        yield (bad if value is None else doubtful)("value", *missing)
    if reading.fault:
        yield doubtful("value", reading.fault)


def _more(target: Target, reading: Reading) -> Iterator[Finding]:
    if reading.canonical and reading.canonical != target.url:
        yield good("canonical", f"the page calls itself {reading.canonical}")
    if reading.entries:
        rest = "all that it knows" if reading.complete else "there may be others"
        yield good("links", f"it names {len(reading.entries):,} pages ({rest})")
    elif target.kind == "source":
        yield bad("links", "it names no page", "Is it really a sitemap, a feed or a list of links?")


def deciding(robots: str, url: str) -> str | None:
    """The line of robots.txt that decides about a URL; None if none speaks of it.

    >>> deciding("User-agent: *\\nDisallow: /cart\\nAllow: /cart/help", "http://a.example/cart/1")
    'Disallow: /cart'
    """
    path = "/" + url.partition("://")[2].partition("/")[2]
    found = [rule for rule in _rules(robots) if rule[1] and _fits(path, rule[1])]
    best = max(found, key=lambda rule: (len(rule[1]), rule[0] == "allow"), default=None)
    return best and f"{best[0].capitalize()}: {best[1]}"


def _rules(robots: str) -> list[tuple[str, str]]:
    """The rules of our group, or if there is none of everybody's: (allow or disallow, pattern)."""
    from salticus.fetch import AGENT
    from salticus.fetch.robots import for_us

    groups: dict[str, list[tuple[str, str]]] = {}
    agents: list[str] = []
    heading = False
    for line in for_us(robots).splitlines():
        name, _, value = (part.strip() for part in line.partition("#")[0].partition(":"))
        if name.lower() == "user-agent":
            agents = [*agents, value.lower()] if heading else [value.lower()]
            heading = True
        elif name.lower() in ("allow", "disallow"):
            heading = False
            for agent in agents:
                groups.setdefault(agent, []).append((name.lower(), value))
    return groups.get(AGENT.lower(), groups.get("*", []))


def _fits(path: str, pattern: str) -> bool:
    """Whether a path fits a pattern of robots.txt (``*``, ``$``), in one pass.

    >>> _fits("/a/b.pdf", "/*.pdf$"), _fits("/a/b.pdf?x", "/*.pdf$"), _fits("/ab", "/a")
    (True, False, True)
    """
    first, *others = pattern.removesuffix("$").split("*")
    if not path.startswith(first):
        return False
    at = len(first)
    for part in others:
        found = path.find(part, at)
        if found < 0:
            return False
        at = found + len(part)
    if not pattern.endswith("$"):
        return True
    return at == len(path) or (bool(others) and path[at:].endswith(others[-1]))
