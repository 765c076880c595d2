"""The true hazards of a market: what they say comes about."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from salticus.errors import InputError
from salticus.exchange.folder import Log
from salticus.lab.worlds.market import MarketSize, make_market
from salticus.lab.worlds.market.blocks import Block, blocks_of
from salticus.lab.worlds.market.changes import events_of
from salticus.lab.worlds.market.presets import HAN2019, Preset
from salticus.lab.worlds.market.scene import scene_of
from salticus.lab.worlds.market.truth import REACH, Hazards, echoes, hazards, hazards_of
from salticus.types import Bools, Floats, Ints

HOURS = 6


def live(preset: Preset, offers: int, days: int, seed: int) -> tuple[Hazards, Block]:
    """A market of one block, and its hazards."""
    drawn, lived = np.random.SeedSequence(seed).spawn(2)
    scene = scene_of(preset, offers, days, drawn)
    (block,) = blocks_of(scene, lived)
    again = np.random.SeedSequence(seed).spawn(2)[0].spawn(4)[2]
    return hazards(scene, again), block


def asked(truth: Hazards, block: Block, count: int) -> tuple[Ints, Ints, Bools]:
    """Offers, hours since 1970, and whether they changed in the horizon."""
    cut, end = truth.scene.catalogue, truth.scene.calendar.hours
    rng = np.random.default_rng(0)
    offer, hour = rng.integers(0, len(truth.scene), count), rng.integers(0, end - HOURS, count)
    lives = (hour > cut.born[offer]) & (hour + HOURS <= cut.dies[offer])
    offer, hour = offer[lives], hour[lives]
    points = block.points
    real = (np.diff(points.row, prepend=-1) == 0) & (points.code >= 0)
    at, start = (points.row * 2 * end + points.hour)[real], offer * 2 * end + hour
    changed = np.searchsorted(at, start + HOURS) > np.searchsorted(at, start)
    return offer, truth.start + hour, changed


def deciles(said: Floats, came: Bools) -> Floats:
    """What came / what was said, by decile of what was said."""
    parts = np.array_split(np.argsort(said, kind="stable"), 10)
    return np.array([came[part].mean() / max(said[part].mean(), 1e-12) for part in parts])


@pytest.mark.parametrize("batch", [False, True])
def test_echoes_are_those_of_simulated_triggers(batch: bool) -> None:
    preset = replace(HAN2019, births=0.0, deaths=0.0, promotion=0.0, dormant=0.0)
    preset = replace(preset, daily_batch=float(batch), other_batch=0.0, rate=0.004, holiday=1.0)
    drawn = np.random.SeedSequence(3).spawn(2)[0]
    scene = scene_of(replace(preset, top_rate=0.004), 8000, 120, drawn)
    events = events_of(scene, np.random.default_rng(1))
    # triggers are so rare that whatever follows within two days is an echo, or nearly always
    after = np.full(len(events), 10_000)
    after[:-1] = np.where(np.diff(events.row) == 0, np.diff(events.hour), 10_000)
    first = np.diff(events.hour, prepend=-10_000) > 1000
    first[np.diff(events.row, prepend=-1) != 0] = False  # births
    first &= events.hour < scene.calendar.hours - 100
    known = echoes(preset, HOURS, batch=batch)
    assert np.count_nonzero(first) > 500
    came = np.mean(after[first] < 1 + HOURS)
    assert came == pytest.approx(known[1], abs=0.035)


def test_echoes_fade_and_are_probabilities() -> None:
    for hours in (1, 6, 24):
        found = echoes(HAN2019, hours, batch=False)
        assert len(found) == REACH
        assert found[0] == 1.0
        assert np.all((found >= 0) & (found <= 1))
        assert found[-1] < 0.02
    assert np.all(echoes(HAN2019, 6, batch=False)[1:] >= echoes(HAN2019, 6, batch=True)[1:])
    assert np.all(echoes(HAN2019, 24, batch=False) >= echoes(HAN2019, 6, batch=False) - 1e-12)


@pytest.mark.parametrize("own", [True, False])
def test_what_is_said_comes_about(own: bool) -> None:
    truth, block = live(HAN2019, 8000, 60, seed=4)
    offer, hour, changed = asked(truth, block, 400_000)
    said = truth.within(offer, hour, HOURS, own=own)
    assert said.mean() == pytest.approx(changed.mean(), rel=0.03)
    ratio = deciles(said, changed)
    np.testing.assert_allclose(ratio[7:], 1.0, atol=0.06)
    few = np.sort(said)[: 7 * len(said) // 10].sum()  # changes of the lower deciles, few in all
    came = changed[np.argsort(said, kind="stable")[: 7 * len(said) // 10]].sum()
    assert came == pytest.approx(few, rel=0.12)


def test_who_knows_more_ranks_better() -> None:
    from salticus.models.training.metrics import auc

    truth, block = live(HAN2019, 4000, 40, seed=5)
    offer, hour, changed = asked(truth, block, 150_000)
    full, campaigns, plain = (
        auc(truth.within(offer, hour, HOURS, own=own, campaigns=told), changed)
        for own, told in ((True, True), (False, True), (False, False))
    )
    assert full > campaigns + 0.01
    assert campaigns >= plain - 1e-3
    assert plain > 0.8


def test_own_rates_average_to_what_metadata_tell() -> None:
    """The quadrature over the offers' own spread and the dormant gives the mean of real rates."""
    drawn = np.random.SeedSequence(1).spawn(2)[0]
    scene = scene_of(HAN2019, 20_000, 30, drawn)
    truth = hazards(scene, np.random.SeedSequence(1).spawn(2)[0].spawn(4)[2])
    expected = np.zeros(len(scene))
    for share, rate in truth._rates(np.arange(len(scene)), own=False):
        expected += share * rate
    assert expected.mean() == pytest.approx(scene.rate.mean(), rel=0.03)
    for part in np.array_split(np.argsort(expected), 5):
        assert expected[part].mean() == pytest.approx(scene.rate[part].mean(), rel=0.05)


def test_a_log_tells_its_hazards(tmp_path: Path) -> None:
    make_market(tmp_path / "log", MarketSize(300, 10), seed=7)
    truth = hazards_of(Log(tmp_path / "log"))
    offer, hour = np.arange(300), np.full(300, truth.start + 100)
    said = truth.within(offer, hour, own=True)
    assert np.all((said >= 0) & (said < 1))
    assert np.all(said[truth.scene.rate == 0] == 0)
    assert len(truth.within(offer[:0], hour[:0], own=False)) == 0


def test_other_logs_have_no_hazards(tmp_path: Path) -> None:
    (tmp_path / "log.json").write_text('{"name": "x"}')
    with pytest.raises(InputError, match="not that of a market"):
        hazards_of(Log(tmp_path))
