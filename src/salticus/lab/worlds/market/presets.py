"""The numbers of the market: one dataclass, one comment a number, two calibrated sets."""

from __future__ import annotations

from dataclasses import dataclass, replace
from datetime import UTC, datetime


@dataclass(frozen=True, slots=True)
class Preset:
    """What a market is made with. Shares and probabilities lie in 0..1, rates are per day."""

    name: str
    start: datetime  # the first hour of the log, at 00:00 UTC

    # who sells what
    click_share: float = 0.2  # of offers, drawn in proportion to clicks; the others uniformly
    offers_per_merchant: float = 40.0  # mean; sizes are heavy-tailed
    size_spread: float = 1.0  # standard deviation of the logarithm of merchants' sizes
    offers_per_brand: float = 60.0  # mean
    focus: float = 0.6  # share of a merchant's offers in the category it is known for
    births: float = 0.0006  # share of offers that are born each day
    deaths: float = 0.0004  # probability a day that an offer goes

    # how often it changes
    rate: float = 0.077  # mean triggers of change an offer and day
    merchant_spread: float = 1.35  # standard deviations of the logarithm of the rate, by source
    brand_spread: float = 0.4
    series_spread: float = 0.75
    offer_spread: float = 0.65
    floor: float = 0.08  # share of the mean rate that all lively offers have alike
    used_factor: float = 0.6  # rate of used and refurbished things beside new ones
    dormant: float = 0.06  # share of offers that never change
    dormant_slope: float = 2.5  # how much rarer dormant offers are where prices change often
    top_rate: float = 6.0  # triggers a day that no offer exceeds
    regime_days: float = 12.0  # mean days until an offer's rate is drawn anew
    regime_spread: float = 0.95  # standard deviation of the logarithm of that factor

    # when it changes
    daily_batch: float = 0.3  # share of offers whose merchant updates once in 24 h
    other_batch: float = 0.08  # share of offers whose merchant updates once in 48 h
    midnight: float = 0.2  # share of the other offers' changes that wait for local midnight
    weekend: float = 0.7  # rate on Saturday and Sunday beside a weekday
    holiday: float = 1.6  # rate on sales days beside other days
    burst: float = 0.25  # probability that a change starts a burst
    burst_length: float = 6.0  # mean further changes in a burst, one to three hours apart
    flash: float = 0.06  # share of triggers that start a flash sale, which ends as it began
    outage: float = 0.03  # share of triggers that are the offer going out of stock, and back
    promotion_days: float = 45.0  # mean days between a merchant's promotions
    promotion: float = 0.2  # share of a merchant's lively offers in a promotion
    price_spread: float = 0.08  # standard deviation of the logarithm of an offer's prices

    # who looks at it
    impressions: float = 0.034  # median a day and offer, uniform stratum
    impression_spread: float = 2.4  # standard deviation of the logarithm
    clicking: float = 0.0199  # median of clicks an impression, uniform stratum
    clicking_spread: float = 1.2  # standard deviation of the logarithm
    top_clicks: float = 150.0  # clicks a day that no offer exceeds
    renown: float = 0.5  # share of an offer's popularity that brand, series and category tell
    trend_spread: float = 0.4  # standard deviation of the logarithm of weekly ups and downs

    # what the production crawler saw
    batch_share: float = 0.92  # of offers that the batch scheduler visits at all
    batch_hours: float = 22.0  # median hours between its visits of an offer
    batch_spread: float = 0.5  # standard deviation of the logarithm of those hours
    insta: float = 1.0  # share of requests that InstaCrawl crawled
    failure: float = 0.03  # probability that a visit fails by chance
    rejecting: float = 0.01  # share of offers on hosts that reject nearly always
    rejection: float = 0.99  # probability that a visit to such a host fails


HAN2019 = Preset("han2019", datetime(2018, 5, 1, tzinfo=UTC))

HAN2020 = replace(
    HAN2019,
    name="han2020",
    start=datetime(2018, 12, 12, tzinfo=UTC),
    rate=0.051,
    top_clicks=6.0,
    failure=0.14,
    rejecting=0.1,
)

PRESETS = {preset.name: preset for preset in (HAN2019, HAN2020)}
