"""Alerts in words: what is wrong with a host as a whole, and what can be done."""

from __future__ import annotations

from datetime import datetime

import msgspec

from salticus.crawl.opening import Crawl
from salticus.store.nouns import AlertState
from salticus.views.times import known, moment, when

MEANING = {
    "blocked": "it does not let us in",
    "broken": "pages of it answer, but cannot be read",
    "certificate": "its certificate does not prove its name",
    "layout": "most of its pages had a value and have none now",
    "missing": "most of its pages answer that they do not exist",
    "unreachable": "it does not answer",
    "flood": "its sources name more pages than the caps let in",
    "retired": "this source is dead; only exploration looks at it",
    "discover": "its sources were looked for long ago",
    "drift": "pages change more or less often than predicted",
}
ADVICE = {
    "blocked": "Ask less of it: a longer delay in [[hosts]], or hours at which it is quiet. If you "
    "have an account there, give its cookies or headers in [[hosts]]. If its owner does not want "
    "crawlers, `salticus pages --host HOST --pause` leaves it alone.",
    "broken": "The last values are kept. `salticus pages --host HOST --state failing` lists the "
    "pages, `salticus show URL` says what is wrong with one. If a [[pages]] rule or an extractor "
    "of yours reads them, try it with `salticus doctor URL`.",
    "certificate": "Nothing is read from it until its certificate is valid again. Look at the site "
    "in a browser; if it has a new name, add that, and `salticus forget` the old one.",
    "layout": "The values that are kept are the last good ones; nothing was stored as a change. "
    "Look at one page with `salticus doctor URL`. If the site looks different now, say where the "
    "value stands with select in [[pages]]; if it needs scripts, with render = true.",
    "missing": "The last values are kept. If the site has moved its pages, add the new ones, best "
    "by its sitemap: `salticus add --sitemap URL`. Pages that stay away are visited less and less.",
    "drift": "Predictions and plans are off until the predictor has caught up; it learns with "
    "every visit. If this lasts, train its model anew (`salticus train`); see how fresh the copy "
    "is meanwhile with `salticus freshness`.",
    "flood": "What is in the store stays; what exceeds a cap does not count. `salticus alerts "
    "--json` names the setting in [caps]. If you want the pages, raise it: they are added when the "
    "source is read next. If not, `salticus forget` those you do not want.",
    "retired": "It comes back by itself when it answers again or shows a new link. If it has a new "
    "address, `salticus discover` with the name of the site finds it; then `salticus forget HOST`.",
    "discover": "Sites get new sections and new feeds. `salticus discover HOST` looks for them; "
    "`salticus discover --known` does so for all sites of which you have sources.",
    "unreachable": "It may be down for a while: it is tried again by itself. See whether you reach "
    "it from this machine, and whether it needs a proxy in [[hosts]].",
}


class AlertView(msgspec.Struct, frozen=True):
    """What is wrong with a host, or was; `advice` says what can be done while it lasts."""

    host: str
    kind: str
    since: datetime
    until: datetime | None
    fault: str
    meaning: str
    advice: str


async def alerts_of(crawl: Crawl, *, past: bool = False) -> list[AlertView]:
    """Alerts that last, or with `past` all of them, oldest first."""
    return [told(alert) for alert in await crawl.store.alerts(past=past)]


def told(alert: AlertState) -> AlertView:
    """An alert with what it means."""
    advice = ADVICE.get(alert.kind, "") if alert.until is None else ""
    return AlertView(
        host=alert.host,
        kind=alert.kind,
        since=moment(alert.since),
        until=known(alert.until),
        fault=alert.fault,
        meaning=MEANING.get(alert.kind, alert.kind),
        advice=advice.replace("HOST", alert.host),
    )


def headline(alert: AlertView) -> str:
    """An alert for people, in one line.

    >>> headline(told(AlertState("a.example", "blocked", 0, None, "the server answered 403")))
    'a.example: blocked since 1970-01-01 00:00:00Z: it does not let us in'
    """
    where = "all hosts" if alert.host == "*" else alert.host
    meaning = alert.fault if alert.meaning == alert.kind else alert.meaning
    if alert.until is None:
        return f"{where}: {alert.kind} since {when(alert.since)}: {meaning}"
    span = f"from {when(alert.since)} to {when(alert.until)}"
    return f"{where}: {alert.kind} {span} (over): {meaning}"
