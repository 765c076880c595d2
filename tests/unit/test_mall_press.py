"""The publishers of a mall: what is told as their truth is what they show, and what readers do."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime, timedelta

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from salticus.errors import InputError
from salticus.lab.worlds.mall.audit import AnsweredVisits, fresh_at
from salticus.lab.worlds.mall.folder import Plot
from salticus.lab.worlds.mall.newsroom import Newsroom, flood_number, flood_path
from salticus.lab.worlds.mall.press import PAST, Press, PressSettings, make_press, rhythm
from salticus.lab.worlds.mall.render import Shelves
from salticus.lab.worlds.mall.stock import generate
from salticus.types import instant
from salticus.types.dates import DAY_US, epoch_us

START = datetime(2026, 1, 1, tzinfo=UTC)
DAYS = 6
SHOPS = generate(shops=2, offers=10, days=DAYS)
SETTINGS = PressSettings(publishers=5, articles=20.0, shown=8, dead=3)


def press_of(settings: PressSettings, days: float = DAYS, seed: int = 0) -> Press:
    return make_press(SHOPS, settings, start=START, days=days, seed=seed)


PRESS = press_of(SETTINGS)


def newsrooms(press: Press) -> list[Newsroom]:
    rows: dict[int, list[int]] = {own.shop: [] for own in press.publishers}
    for row, page in enumerate(press.stock.pages[press.first :], press.first):
        rows[page.shop].append(row)
    shelves = (Shelves(press.stock, "news.example", rows[own.shop]) for own in press.publishers)
    return [Newsroom(*both) for both in zip(press.publishers, shelves, strict=True)]


def shown(press: Press, world: int) -> list[list[int]]:
    """What stands on each source."""
    return [
        room.standing(path, world) for room in newsrooms(press) for path in room.publisher.sources
    ]


# ----------------------------------------------------------------------------------- one seed


def test_the_same_seed_makes_the_same_press() -> None:
    same, other = press_of(SETTINGS), press_of(SETTINGS, seed=1)
    assert same.publishers == PRESS.publishers
    assert same.stock.pages == PRESS.stock.pages
    assert same.stock.values == PRESS.stock.values
    assert (same.stock.times == PRESS.stock.times).all()
    assert (same.readers.at == PRESS.readers.at).all()
    assert other.publishers != PRESS.publishers


def test_the_shops_of_a_mall_are_the_same_with_and_without_publishers() -> None:
    plain = Plot(shops=2, offers=10, days=DAYS)
    press = replace(plain, press=SETTINGS).truth()
    assert plain.truth().stock.pages == plain.stock().pages
    assert len(plain.truth().readers) == 0
    for stock in (plain.stock(), press.shops):
        assert stock.pages == press.stock.pages[: press.first]
        assert stock.values == press.stock.values[: len(stock.values)]
        assert (stock.times == press.stock.times[: len(stock.times)]).all()
        assert (stock.offsets == press.stock.offsets[: press.first + 1]).all()


def test_a_publisher_is_the_same_however_many_there_are() -> None:
    fewer = press_of(replace(SETTINGS, publishers=4))
    assert fewer.publishers == PRESS.publishers[:4]
    articles = fewer.stock.pages[fewer.first :]
    assert articles == PRESS.stock.pages[PRESS.first :][: len(articles)]


@pytest.mark.parametrize(
    ("settings", "word"),
    [
        (PressSettings(publishers=1, dead=2), "2 dead feeds"),
        (PressSettings(publishers=1, flood=10**7), "at most 1,000,000"),
        (PressSettings(flood=10), "needs a publisher"),
        (PressSettings(publishers=1000, articles=1e4), "ask for fewer publishers"),
        (PressSettings(publishers=1, articles=0), "above 0"),
        (PressSettings(publishers=1, articles=float("nan")), "above 0"),
        (PressSettings(publishers=1, categories=99), "categories"),
    ],
)
def test_a_press_that_cannot_be_is_refused(settings: PressSettings, word: str) -> None:
    with pytest.raises(InputError, match=word):
        press_of(settings)


# ------------------------------------------------------------------------------------ on sources


@given(st.integers(-3 * DAY_US, (DAYS + 1) * DAY_US))
def test_the_links_told_as_the_truth_are_those_that_are_shown(after: int) -> None:
    world, links = epoch_us(START) + after, PRESS.links()
    begun = links.appeared.view(np.int64) <= world
    over = ~np.isnat(links.vanished) & (links.vanished.view(np.int64) <= world)
    stand = begun & ~over
    found = [
        sorted(links.row[stand & (links.source == k)].tolist()) for k in range(len(PRESS.sources))
    ]
    assert found == [sorted(rows) for rows in shown(PRESS, world)]


def test_every_article_is_on_its_main_page_category_and_sitemaps_when_born() -> None:
    for room in newsrooms(PRESS):
        for row, born in zip(room.rows.tolist(), room.born.view(np.int64).tolist(), strict=True):
            category = f"/{PRESS.stock.pages[row].category}/"
            for path in ("/", category, "/sitemap.xml", "/news-sitemap.xml"):
                assert room.standing(path, born)[0] == row
                assert row not in room.standing(path, born - 1)
            last = epoch_us(START) + DAYS * DAY_US
            assert row in room.standing("/sitemap.xml", last), "there it stays"


def test_what_is_newer_pushes_articles_out() -> None:
    last = epoch_us(START) + DAYS * DAY_US
    for room in newsrooms(PRESS):
        lengths = {path: len(room.standing(path, last)) for path in room.publisher.sources}
        assert lengths["/"] == min(SETTINGS.shown, len(room.rows))
        assert lengths["/sitemap.xml"] == len(room.rows)
        assert max(lengths[f"/{name}/"] for name in room.publisher.categories) <= SETTINGS.shown


def test_dead_feeds_have_nothing_new() -> None:
    end = epoch_us(START) + DAYS * DAY_US
    assert [own.dead for own in PRESS.publishers] == ["404", "410", "stale", "", ""]
    for room in newsrooms(PRESS):
        path = next(path for path, form in room.publisher.sources.items() if form == "feed")
        rows = room.standing(path, end)
        match room.publisher.dead:
            case "":
                assert rows == room.standing("/", end)
                assert room.answer(path, end).status == 200
            case "stale":
                assert rows == room.standing("/", epoch_us(START)) != []
                assert room.answer(path, end) == room.answer(path, epoch_us(START))
            case status:
                assert rows == []
                assert room.answer(path, end).status == int(status)


# ---------------------------------------------------------------------------------------- floods


@given(st.integers(0, 10**10))
def test_a_link_of_a_flood_leads_back_to_its_number(number: int) -> None:
    assert flood_number(flood_path(number)) == number


def test_a_flood_is_as_large_as_said_and_stays_bounded() -> None:
    room = newsrooms(press_of(replace(SETTINGS, flood=3000)))[-1]
    first, hour = epoch_us(START), DAY_US // 24
    assert room.answer("/", first).body.count(b"/live/") == 0
    bodies = [room.answer("/", first + hours * hour).body for hours in (1, 2)]
    assert [body.count(b"/live/") for body in bodies] == [3000, 3000]
    seen = [{word for word in body.split(b'"') if word.startswith(b"/live/")} for body in bodies]
    assert not seen[0] & seen[1], "an hour later all are new"
    path = seen[1].pop().decode()
    assert room.answer(path, first + 2 * hour).status == 200
    assert room.answer(path, first).status == 404, "it is not there yet"
    huge = newsrooms(press_of(replace(SETTINGS, flood=1_000_000)))[-1]
    assert len(huge.answer("/", first + 24 * hour).body) < 2_000_000


# ---------------------------------------------------------------------------------------- in time


def test_articles_come_at_their_rates_and_hours() -> None:
    weeks = 8
    press = press_of(PressSettings(publishers=6, articles=40.0), days=7 * weeks - PAST // DAY_US)
    born = press.born.view(np.int64)
    shop = np.array([page.shop for page in press.stock.pages[press.first :]])
    for own in press.publishers:
        hour = (born[shop == own.shop] // (DAY_US // 24) + 72) % 168
        expected = own.rate / 24 * weeks * rhythm(own.peak)
        assert abs(len(hour) - expected.sum()) < 4.5 * np.sqrt(expected.sum())
        counts = np.bincount(hour, minlength=168)
        chi = ((counts - expected) ** 2 / expected).sum()
        few = (1 / expected).sum()  # where little is expected, χ² scatters more
        assert abs(chi - 168) < 4.5 * np.sqrt(2 * 168 + few)


def test_the_decay_of_clicks_is_recovered() -> None:
    """The mean age at a click is the mean life; articles of one publisher differ in their clicks
    (gamma with shape 2), so that the mean of n articles has the variance (P + P²/2)/n."""
    press = press_of(PressSettings(publishers=6, articles=60.0), days=30)
    row, at = press.readers.row, press.readers.at.view(np.int64)
    born = press.stock.times[press.stock.offsets[row]].view(np.int64)
    shop = np.array([page.shop for page in press.stock.pages])
    for own in press.publishers:
        mine, articles = shop[row] == own.shop, np.count_nonzero(shop == own.shop)
        clicks, life = np.count_nonzero(mine), own.half_life / np.log(2) / 24
        ages = (at - born)[mine] / DAY_US
        assert abs(ages.mean() - life) < 4.5 * life / np.sqrt(clicks)
        early = np.count_nonzero(ages < own.half_life / 24)
        assert abs(early - clicks / 2) < 4.5 * np.sqrt(clicks / 4)
        error = np.sqrt((own.profit + own.profit**2 / 2) / articles)
        assert abs(clicks / articles - own.profit) < 4.5 * error
    assert (np.diff(at) >= 0).all()
    assert row.min() >= press.first


# ------------------------------------------------------------------------------------ as the truth


def test_delays_count_from_birth_and_are_infinite_for_what_was_never_found() -> None:
    rows = PRESS.rows(START, START + timedelta(days=DAYS))
    born = PRESS.stock.times[PRESS.stock.offsets[rows]]
    assert (born >= instant(START)).all()
    half = rows[::2]
    late = np.timedelta64(3, "h")
    texts = [PRESS.stock.values[PRESS.stock.offsets[row]] for row in half]
    visits = AnsweredVisits(
        np.concatenate([half, half, rows[1:2]]),
        np.concatenate([born[::2] + late, born[::2] + 2 * late, born[1:2]]),
        [*texts, *texts, None],
    )
    delays = PRESS.delays(rows, visits)
    assert np.allclose(delays[::2], 3 / 24)
    assert np.isinf(delays[1::2]).all(), "an answer that it is not there finds nothing"
    clicks = PRESS.readers.between(START, START + timedelta(days=DAYS))
    clicks = clicks.take(np.isin(clicks.row, rows))
    served = fresh_at(PRESS.stock, visits, clicks.row, clicks.at)
    age = clicks.at - PRESS.stock.times[PRESS.stock.offsets[clicks.row]]
    assert (served == (np.isin(clicks.row, half) & (age >= late))).all()
