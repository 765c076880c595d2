"""The true hazards of a market: what its value's changes are drawn with.

The judge of models on a market: no model that knows no more can rank pages better. All that is
drawn with the scene is known (who sells what and how often it changes, the calendar, merchants'
batches and campaigns); what is drawn as offers live (regimes of the rate, triggers, bursts, flash
sales, outages, who joins a campaign) is averaged over.

Approximations, all small for horizons up to a day: one regime holds from the triggers that still
echo to the end of the horizon; echoes of batches are taken as independent of one another; a
campaign's beginning and end within one horizon count as two; a campaign that runs when its offer is
born ends for it too; new prices that equal the old ones after rounding, changes that cancel out
within an hour, and deaths within the horizon are left out.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta

import numpy as np

from salticus.errors import InputError
from salticus.exchange.folder import Log
from salticus.lab.worlds.market.changes import GAPS, OUTAGE_HOURS, PRICING, SALES
from salticus.lab.worlds.market.geography import COUNTRIES
from salticus.lab.worlds.market.presets import PRESETS, Preset
from salticus.lab.worlds.market.scene import COUNTRY_FACTOR, LEAF_FACTOR, Scene, log_rates, scene_of
from salticus.types import Columns, Floats, Ints

REACH = 336  # hours after which a trigger is forgotten; one outage in a hundred lasts longer
_HOUR = timedelta(hours=1)
_NODES = 9  # of a Gauss-Hermite rule: exact to polynomials of degree 17
_CHUNK = 65_536  # rows


@dataclass(frozen=True, slots=True)
class Hazards:
    """A market's scene; `known` is what metadata tell of the logarithm of each offer's rate,
    `usual` the mean of exp(logarithm) over all offers, and `scale` what raking made of it."""

    scene: Scene
    known: Floats
    usual: float
    scale: Floats

    @property
    def start(self) -> int:
        """The log's first hour, in hours since 1970."""
        return (self.scene.preset.start - datetime(1970, 1, 1, tzinfo=UTC)) // _HOUR

    def within(
        self, offer: Ints, hour: Ints, hours: int = 6, *, own: bool, campaigns: bool = True
    ) -> Floats:
        """Probability that the value of each offer changes in the `hours` from `hour` on.

        `hour` counts from 1970. With `own` the offer's own rate is known; without, only what its
        merchant, brand, series, category, country and condition tell: the ceiling of metadata.
        Without `campaigns` they are not foreseen, only expected as often as they are.
        """
        found = np.zeros(len(offer))
        for first in range(0, len(offer), _CHUNK):
            part = slice(first, first + _CHUNK)
            asked = _Asked(offer[part], hour[part] - self.start, hours)
            found[part] = self._part(asked, own=own, campaigns=campaigns)
        return found

    def _part(self, asked: _Asked, *, own: bool, campaigns: bool) -> Floats:
        shops, merchant = self.scene.catalogue.merchants, self.scene.catalogue.merchant[asked.offer]
        batch = shops.period[merchant] > 0
        # for a rate of 1: triggers expected in the horizon (echoes of earlier ones count in
        # proportion), triggers in each earlier batch, and the echoes expected of one a batch
        now, lately, weight = np.zeros((3, len(batch)))
        now[~batch] = _steady(self.scene, asked.take(~batch))
        now[batch], lately[batch], weight[batch] = _batches(self.scene, asked.take(batch))
        begun = _campaigns(self.scene, asked, told=campaigns)
        found = np.zeros(len(asked.offer))
        for share, rate in self._rates(asked.offer, own=own):
            joins = self.scene.preset.promotion * rate / (rate + self.scene.preset.rate)
            calm = (1 - joins) ** begun
            for chance, factor in _lognormal(self.scene.preset.regime_spread, centred=True):
                echo = weight * -np.expm1(-factor * rate * lately)
                found += share * chance * (1 - calm * np.exp(-factor * rate * now - echo))
        return found

    def _rates(self, offer: Ints, *, own: bool) -> Iterator[tuple[Floats | float, Floats]]:
        """What the offers' rates may be, triggers a day, and how probable each is."""
        if own:
            yield 1.0, self.scene.rate[offer]
            return
        preset, cut = self.scene.preset, self.scene.catalogue
        leaf = LEAF_FACTOR[cut.leaf[offer]]
        awake = 1 - preset.dormant * leaf**-preset.dormant_slope
        plain = np.exp(self.known[offer]) / self.usual
        for chance, factor in _lognormal(preset.offer_spread, centred=False):
            raw = (1 - preset.floor) * factor * plain + preset.floor
            yield chance * awake, np.minimum(raw * self.scale[offer], preset.top_rate)


@dataclass(frozen=True, slots=True)
class _Asked(Columns):
    """Offers and hours of the log from which on one looks ahead."""

    offer: Ints
    hour: Ints
    hours: int


def hazards_of(log: Log) -> Hazards:
    """The hazards of a log that `make_market` wrote; InputError if it is not one."""
    told = log.about.rest
    wrong = f"{log.folder / 'log.json'}: not that of a market, whose hazards are known"
    try:
        preset = replace(PRESETS[told["preset"]], **told["parameters"])
        offers, days, seed = (int(told[name]) for name in ("offers", "days", "seed"))
    except (KeyError, TypeError, ValueError):
        raise InputError(wrong) from None
    scene = scene_of(preset, offers, days, np.random.SeedSequence(seed).spawn(2)[0])
    return hazards(scene, np.random.SeedSequence(seed).spawn(2)[0].spawn(4)[2])


def hazards(scene: Scene, chance: np.random.SeedSequence) -> Hazards:
    """The hazards of a scene; `chance` is what its rates were drawn with."""
    preset, cut = scene.preset, scene.catalogue
    whole = log_rates(cut, preset, np.random.default_rng(chance))
    plain = replace(preset, offer_spread=0.0)
    known = log_rates(cut, plain, np.random.default_rng(chance))
    used = np.log(np.where(cut.condition > 0, preset.used_factor, 1.0))
    usual = float(np.exp(whole + used).mean())
    raw = (1 - preset.floor) * np.exp(whole + used) / usual + preset.floor
    return Hazards(scene, known + used, usual, _scale(scene, raw))


def _scale(scene: Scene, raw: Floats) -> Floats:
    """Rate / raw rate as it is for most offers of the same category and country.

    Raking gives all of them the same factor; the median leaves those aside that were cut at the
    highest rate.
    """
    cut = scene.catalogue
    pair = cut.leaf * len(COUNTRY_FACTOR) + cut.country
    factor = LEAF_FACTOR[cut.leaf] * COUNTRY_FACTOR[cut.country]
    awake = scene.rate > 0
    ratio = scene.rate[awake] / (raw * factor)[awake]
    usual = np.median(ratio) if len(ratio) else 0.0
    found = np.full(len(LEAF_FACTOR) * len(COUNTRY_FACTOR), usual)
    order = np.lexsort((ratio, pair[awake]))
    pairs, first, many = np.unique(pair[awake][order], return_index=True, return_counts=True)
    found[pairs] = ratio[order][first + many // 2]
    return np.asarray(found[pair] * factor, dtype=np.float64)


def _lognormal(spread: float, *, centred: bool) -> list[tuple[float, float]]:
    """Probabilities and values that stand for exp(N(0, spread²)); `centred`: with mean 1."""
    places, weights = np.polynomial.hermite_e.hermegauss(_NODES)
    shift = -(spread**2) / 2 if centred else 0.0
    values = np.exp(shift + spread * places)
    return [*zip((weights / weights.sum()).tolist(), values.tolist(), strict=True)]


# ------------------------------------------------------------------------------------ when it comes


def _steady(scene: Scene, asked: _Asked) -> Floats:
    """Triggers expected for a rate of 1 of offers that change when people work.

    Triggers are a Poisson process and each echoes in the horizon independently of the others, so
    those that do are Poisson too, and their means add up.
    """
    flow, echo = _flow(scene), echoes(scene.preset, asked.hours, batch=False)
    lag = np.arange(1 - asked.hours, REACH)
    weight = np.concatenate([np.ones(asked.hours - 1), echo])
    zone = scene.catalogue.zone[asked.offer]
    age = np.minimum(asked.hour - scene.catalogue.born[asked.offer], REACH)
    keys = np.stack([zone, asked.hour, age], axis=1)
    distinct, place = np.unique(keys, axis=0, return_inverse=True)
    found = np.zeros(len(distinct))
    for first in range(0, len(distinct), 4096):
        zone, hour, age = distinct[first : first + 4096].T[:, :, None]
        at = np.clip(hour - lag, -1, flow.shape[1] - 1)  # before the log nothing happens
        lives = (lag < age) & (at >= 0)
        found[first : first + 4096] = np.where(lives, flow[zone, at], 0.0) @ weight
    return np.asarray(found[place.reshape(-1)], dtype=np.float64)


def _flow(scene: Scene) -> Floats:
    """Triggers an hour for a rate of 1, by zone and hour of the log; the last column is 0."""
    calendar = scene.calendar
    shares = (1 - scene.preset.midnight) * PRICING
    shares[0] += scene.preset.midnight
    country = np.repeat(np.arange(len(COUNTRIES)), [len(place.zones) for place in COUNTRIES])
    zone, day, hour = np.indices((len(calendar.offset), calendar.days + 2, 24)).reshape(3, -1)
    at = calendar.utc_hour(zone, day, hour)
    inside = (at >= 0) & (at < calendar.hours)
    amount = calendar.lively[country[zone], day] * shares[hour]
    whole = calendar.hours + 1
    flat = np.bincount((zone * whole + at)[inside], amount[inside], len(country) * whole)
    return np.asarray(flat.reshape(len(country), whole), dtype=np.float64)


def _batches(scene: Scene, asked: _Asked) -> tuple[Floats, Floats, Floats]:
    """The same of merchants' batches: expected in the horizon, in each before, and echoes."""
    cut, calendar = scene.catalogue, scene.calendar
    shops, merchant = cut.merchants, cut.merchant[asked.offer]
    echo = echoes(scene.preset, asked.hours, batch=True)
    near = np.arange(-REACH // 24, asked.hours // 24 + 4)
    day = asked.hour[:, None] // 24 + near  # local days are counted from the one before the log
    known = (day >= 0) & (day < calendar.days + 2)
    day = np.clip(day, 0, calendar.days + 1)
    other = (shops.period == 48)[merchant, None]
    many = np.where(other, 2.0 * ((day + shops.phase[merchant, None]) % 2), 1.0)
    amount = many * known * calendar.lively[cut.country[asked.offer][:, None], day]
    at = calendar.utc_hour(shops.zone[merchant, None], day, shops.hour[merchant, None])
    lag = asked.hour[:, None] - at
    lives = at > cut.born[asked.offer][:, None]
    ahead = lives & (lag <= 0) & (lag > -asked.hours)
    weight = np.where(lives & (lag > 0) & (lag < REACH), echo[np.clip(lag, 0, REACH - 1)], 0.0)
    weight *= amount > 0
    total = weight.sum(axis=1)
    lately = (weight * amount).sum(axis=1) / np.maximum(total, 1e-12)
    return (ahead * amount).sum(axis=1), lately, total


def _campaigns(scene: Scene, asked: _Asked, *, told: bool) -> Floats:
    """Campaigns of each offer's merchant that begin or end in the horizon; else how many do so on
    the average, each at a local midnight."""
    shops, drawn = len(scene.catalogue.merchants), scene.promotions
    if told:
        owner = np.repeat(np.arange(shops), np.diff(drawn.first))
        begin = _nights(scene, asked, owner, drawn.start)
        return begin + _nights(scene, asked, owner, drawn.end)
    owner, night = np.indices((shops, scene.calendar.days + 2)).reshape(2, -1)
    return _nights(scene, asked, owner, night) * 2 / scene.preset.promotion_days


def _nights(scene: Scene, asked: _Asked, owner: Ints, day: Ints) -> Floats:
    """How many of the local midnights of `day` at merchants (`owner`, in order) lie in the
    horizon, for the merchant of each offer."""
    at = scene.calendar.utc_hour(scene.catalogue.merchants.zone[owner], day, 0)
    whole = int(at.max(initial=0)) + scene.calendar.hours + asked.hours + 1
    events = np.sort(owner * whole + np.maximum(at, 0))
    low = scene.catalogue.merchant[asked.offer] * whole + asked.hour
    found = np.searchsorted(events, low + asked.hours) - np.searchsorted(events, low)
    return np.asarray(found, dtype=np.float64)


# ------------------------------------------------------------------------- what a trigger leads to


def echoes(preset: Preset, hours: int, *, batch: bool) -> Floats:
    """Probability that a trigger changes the value again within [u, u + hours), u = 1..REACH - 1.

    u counts hours from the trigger; place 0 stands for the trigger itself and is 1. Exact: the
    gaps of a burst are a renewal process that ends with probability 1/length at each of its moves.
    """
    age = np.arange(REACH)
    lasts, shares = np.array([*SALES]), np.array([*SALES.values()])
    ends = ((lasts >= age[:, None]) & (lasts < age[:, None] + hours)) @ shares
    back = np.exp(-(age - 1) / OUTAGE_HOURS) - np.exp(-(age - 1 + hours) / OUTAGE_HOURS)
    found = preset.flash * ends + preset.outage * back
    if not batch:
        found += (1 - preset.flash - preset.outage) * preset.burst * _burst(preset, hours)
    found[0] = 1.0
    return np.asarray(found, dtype=np.float64)


def _burst(preset: Preset, hours: int) -> Floats:
    """The same for a burst: the first of its moves at u or later comes before u + hours."""
    onward = np.full(REACH, 1 - 1 / max(preset.burst_length, 1.0))
    onward[0] = 1.0  # a burst has at least one further move
    leaves = np.zeros(REACH)  # probability that a move is here, and not the last
    leaves[0] = 1.0
    for place in range(1, REACH):
        here = sum(share * leaves[place - gap] for gap, share in GAPS.items() if gap <= place)
        leaves[place] = here * onward[place]
    found = np.zeros(REACH)
    for gap, share in GAPS.items():
        for ahead in range(min(gap, hours)):  # from u + ahead - gap < u to u + ahead
            found[gap - ahead :] += share * leaves[: REACH - gap + ahead]
    return found
