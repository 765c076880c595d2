"""Why a page is visited when it is: what is known of it, what a visit buys, and what decides."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import msgspec
import numpy as np

from salticus.allocate.base import Priced
from salticus.crawl.opening import Crawl
from salticus.crawl.retiring import retired_sources
from salticus.crawl.standing import HORIZON, Standing
from salticus.predict.base import Evident, Explained, Paced, Predictor, Traited
from salticus.store.nouns import PageState
from salticus.types import ANSWERED, DAY, STATUS, Pages, Purpose, instant
from salticus.views import reasons
from salticus.views.fresh import copies_of, shown, times
from salticus.views.promises import found_page, promised
from salticus.views.times import known

AHEAD = (1, 2, 7, 14)  # days
_HOUR = np.timedelta64(1, "h")
_DAYS = ("Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday", "Sunday")


async def why(crawl: Crawl, url: str) -> reasons.Why:
    """The explanation of a page's visits; raises UnknownPage."""
    (told,) = await why_all(crawl, [url])
    return told


async def why_all(crawl: Crawl, urls: Sequence[str]) -> list[reasons.Why]:
    """An explanation for each page; raises UnknownPage."""
    pages = [await crawl.store.page(url) for url in urls]
    standing = await crawl.foreseeing()
    found = {page.page: await found_page(standing, page.page) for page in pages}
    retired = await retired_sources(crawl.store)
    study = Study(crawl, standing)
    study.look(pages)
    promises = promised(standing, study.ids)
    return [
        msgspec.structs.replace(
            study.explain(page),
            promise=promises.get(page.page),
            found=found[page.page],
            retired=retired.get(page.url),
        )
        for page in pages
    ]


def _with_curves(predictor: Predictor, pages: Pages) -> Pages:
    return replace(pages, survival=predictor.survival(pages, pages.tick.start))


class Study:
    """Looks at some pages of a crawl, first as they are, then into their future."""

    def __init__(self, crawl: Crawl, standing: Standing) -> None:
        self.crawl = crawl
        self.standing = standing

    def look(self, pages: Sequence[PageState]) -> None:
        """Gather what is needed to explain these pages."""
        standing = self.standing
        self.ids, first = np.unique([page.page for page in pages], return_index=True)
        answered = times([pages[k].last_answer for k in first.tolist()])
        copies, now = copies_of(standing, self.ids, answered), instant(standing.now)
        self.outdated = {days: copies.outdated(now + days * DAY) for days in (0, *AHEAD)}
        standing.study()
        parts, tick = standing.parts, standing.coming
        self.predictor, self.policy = parts.predictor, parts.policy
        self.coming = _with_curves(self.predictor, standing.pages(tick))
        self.everyone = _with_curves(self.predictor, standing.everyone(tick))
        granted = parts.ledger.grant(self.coming, tick)
        granted = granted.less(parts.insta.share, tick.number)[0]
        self.grant = granted.visits
        chance = parts.explore.chance(self.coming, granted)
        self.explore = dict(zip(self.coming.ids.tolist(), chance.tolist(), strict=True))
        self.forecast = standing.next_visits(self.ids)

    def explain(self, page: PageState) -> reasons.Why:
        case = self._case(page)
        return reasons.Why(
            url=page.url,
            state=page.state,
            rule=None if case.rule is None else case.rule.named,
            demand=self._demand(case),
            copy=self._copy(page),
            estimate=self._estimate(page),
            price=self._price(case),
            explore_chance=self.explore.get(page.page, 0.0),
            next_visit=case.visit,
            coming_tick=self.standing.coming.number,
            horizon_days=HORIZON.days,
            binds=reasons.binding(self.standing, case),
            brought_by=reasons.cause(case),
            bounds=reasons.bounds(self.standing, case),
        )

    def _case(self, page: PageState) -> reasons.Case:
        rests = page.page not in self.explore
        pages = self.everyone if rests else self.coming
        row = pages.take(pages.rows(np.array([page.page])))
        visit = shown(self.forecast.visits.get(page.page))
        rule = self.standing.config.rule(int(row.rule[0]))
        return reasons.Case(page, rule, row, rests, self._reached(row), visit, self._full(row))

    def _full(self, row: Pages) -> bool:
        """Whether the page's host has no room left in the coming tick."""
        if self.forecast.coming is None:
            return False
        pages, host = self.everyone, row.host[0]
        load = np.count_nonzero(pages.host[pages.rows(self.forecast.coming.page)] == host)
        return bool(load + 1 > row.capacity[host])

    def _demand(self, case: reasons.Case) -> reasons.PageDemand:
        importance = None if case.rule is None else case.rule.importance
        now = instant(self.standing.now)
        counted = self.standing.census.demand.counted(self.everyone.ids, now)
        clicks, shown = counted[:, self.everyone.rows(np.array([case.page.page]))[0]]
        origin = "by hand" if case.page.demand is not None else "uniform"
        if counted.any():
            origin = "clicks" if counted[0].any() else "impressions"
        counts, told = self.standing.census.clicks_told(case.page.page, self.standing.now)
        model, weight = told or (None, None)
        return reasons.PageDemand(
            a_day=float(case.pages.demand[0]),
            origin=origin,
            clicks=float(clicks),
            impressions=float(shown),
            importance=1.0 if importance is None else importance,
            counts=counts,
            model=model,
            weight=weight,
        )

    def _copy(self, page: PageState) -> reasons.CopyAge:
        row = int(np.searchsorted(self.ids, page.page))
        return reasons.CopyAge(
            last_visit=known(page.last_visit),
            last_answer=known(page.last_answer),
            changed_by_now=float(self.outdated[0][row]),
            changed_in_days={str(days): float(self.outdated[days][row]) for days in AHEAD},
        )

    def _estimate(self, page: PageState) -> reasons.RateEstimate:
        assert self.everyone.survival is not None
        curves = self.everyone.survival.take(self.everyone.rows(np.array([page.page])))
        visits = self.crawl.store.scan("visits", page.page)
        answers = [visit["at"] for visit in visits if STATUS[visit["status"]] in ANSWERED]
        days = (answers[-1] - answers[0]) / 86_400e6 if answers else 0.0
        return reasons.RateEstimate(
            predictor=type(self.predictor).__name__.lower(),
            changes_a_day=float(curves.rates()[0]),
            seen=reasons.PageRecord(page.visits, page.changes, days),
            parts=self._parts(page.page),
            hours=self._hours(page.page),
            features=self._features(page.page),
            traits=self.predictor.traits_told() if isinstance(self.predictor, Traited) else None,
        )

    def _parts(self, page: int) -> reasons.RateParts | None:
        if not isinstance(self.predictor, Evident):
            return None
        found = self.predictor.evidence(np.array([page]))
        a, b, a0, b0 = (float(c[0]) for c in (found.a, found.b, found.prior_a, found.prior_b))
        prior = min(1.0, b0 / b)
        return reasons.RateParts(a0 / b0, prior, 1.0 - prior, a - a0, b - b0)

    def _hours(self, page: int) -> reasons.WeekHours | None:
        if not isinstance(self.predictor, Paced):
            return None
        pace = self.predictor.paces(np.array([page]))[0]
        monday = np.datetime64("1970-01-05", "us")
        hour = int((instant(self.standing.now) - monday) // _HOUR) % len(pace)
        best = int(np.argmax(pace))
        return reasons.WeekHours(
            now=float(pace[hour]),
            next_day=float(np.roll(pace, -hour)[:24].mean()),
            busiest=f"{_DAYS[best // 24]} {best % 24:02}:00 UTC",
            busiest_pace=float(pace[best]),
        )

    def _features(self, page: int) -> list[tuple[str, float]] | None:
        """What each feature adds to the score of a trained model, if there is one."""
        if not isinstance(self.predictor, Explained):
            return None
        return [(name, float(part)) for name, part in self.predictor.contributions(page)]

    def _reached(self, row: Pages) -> bool | None:
        if not isinstance(self.policy, Priced) or np.isnan(self.policy.price_):
            return None
        return bool(self.policy.reached(*self.policy.worth(row))[0])

    def _price(self, case: reasons.Case) -> reasons.PriceView | None:
        if not isinstance(self.policy, Priced) or np.isnan(self.policy.price_):
            return None
        worth = max(0.0, float(self.policy.worth(case.pages)[0][0]))
        cost = float(case.pages.cost[0])
        needed = self._needed(self.policy, cost)
        return reasons.PriceView(
            visit_price=self.policy.price_,
            needed=needed,
            worth=worth,
            cost=cost,
            reached=case.reached,
            demand_factor=max(1.0, needed / worth) if worth > 0 else np.inf,
        )

    def _needed(self, policy: Priced, cost: float) -> float:
        """What a visit in the coming tick must be worth: the price, or if the tick's budget ends
        before it, what the last visit that it pays for is worth."""
        if self.forecast.coming is None:
            return policy.price_
        rows = self.coming.rows(self.forecast.coming.page)
        if float(self.coming.cost[rows].sum()) + cost <= self.grant:
            return policy.price_
        chosen = rows[self.forecast.coming.purpose == Purpose.POLICY]
        least = float(policy.worth(self.coming)[0][chosen].min(initial=np.inf))
        return max(policy.price_, least)
