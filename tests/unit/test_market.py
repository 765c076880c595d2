"""The synthetic market: sound, repeatable, and with the habits it is meant to have."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import polars as pl
import pytest
from typer.testing import CliRunner

from salticus.cli import app
from salticus.errors import ConfigError
from salticus.exchange.check import examine
from salticus.exchange.folder import Log
from salticus.lab.worlds.market import PRESETS, MarketSize, make_market

OFFERS, DAYS = 1500, 40


@pytest.fixture(scope="module")
def market(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("market") / "log"
    make_market(folder, MarketSize(OFFERS, DAYS), seed=3)
    return folder


def table(folder: Path, name: str) -> pl.DataFrame:
    return Log(folder).scan(name).collect()


def test_one_seed_gives_the_same_bytes_and_another_other_ones(tmp_path: Path) -> None:
    for name, seed in (("a", 1), ("b", 1), ("c", 2)):
        make_market(tmp_path / name, MarketSize(120, 8), seed=seed)
    files = sorted(path.name for path in (tmp_path / "a").iterdir())
    read = {name: [(tmp_path / name / file).read_bytes() for file in files] for name in "abc"}
    assert read["a"] == read["b"]
    assert all(a != c for a, c in zip(read["a"], read["c"], strict=True))


@pytest.mark.parametrize("preset", PRESETS)
@pytest.mark.parametrize(("offers", "days"), [(1, 1), (7, 3), (90, 10)])
def test_every_market_is_a_sound_log(tmp_path: Path, preset: str, offers: int, days: int) -> None:
    make_market(tmp_path / "m", MarketSize(offers, days), seed=offers, preset=preset)
    assert [str(v) for v in examine(tmp_path / "m") if v.level == "violation"] == []


def test_change_points_change_something(market: Path) -> None:
    values = table(market, "values")
    again = values.filter(
        (pl.col("page_id") == pl.col("page_id").shift(1))
        & pl.col("value").eq_missing(pl.col("value").shift(1))
    )
    assert not len(again)
    assert (values["at"].dt.epoch("s") % 3600 == 0).all()


def test_visits_see_the_truth_of_their_time(market: Path) -> None:
    """Law: an answered visit with a value saw the value of that hour; `changed` follows from it."""
    values = table(market, "values").with_columns(true="value").drop("value")
    visits = table(market, "visits").sort("at")
    met = visits.join_asof(values.sort("at"), on="at", by="page_id", check_sortedness=False)
    shown = met.filter(pl.col("value").is_not_null())
    assert len(shown) > OFFERS
    assert (shown["value"] == shown["true"]).all()
    answered = met.filter(pl.col("status") == "ok").sort("page_id", "at")
    before = pl.col("true").shift(1).over("page_id")
    known = answered.with_columns(before=before).filter(pl.col("before").is_not_null())
    assert (known["changed"] == (known["true"] != known["before"])).all()
    failed = met.filter(~pl.col("status").is_in(["ok", "gone"]))
    assert len(failed)
    assert failed["value"].null_count() == failed["changed"].null_count() == len(failed)


def test_changes_peak_at_midnight_of_the_merchant(market: Path) -> None:
    """Zones lie hours apart: what peaks at hour 0 of each cannot peak at one hour of UTC."""
    points = table(market, "values").join(table(market, "pages"), on="page_id")
    points = points.filter(pl.col("page_id").is_first_distinct().not_())
    peaks: dict[str, tuple[int, int]] = {}
    for (zone,), here in points.group_by("timezone"):
        at = here["at"]
        clocks = (at.dt.convert_time_zone(str(zone)), at)
        if len(here) >= 200:
            local, utc = (int(clock.dt.hour().mode().min()) for clock in clocks)  # type: ignore[arg-type]
            peaks[str(zone)] = (local, utc)
    at_midnight = [local for local, _ in peaks.values()].count(0)
    assert len(peaks) >= 4
    assert at_midnight >= 0.7 * len(peaks), peaks  # one big merchant may update at another hour
    assert len({utc for _, utc in peaks.values()}) >= 4


def test_flash_sales_are_taken_back(market: Path) -> None:
    values = table(market, "values").with_columns(
        before=pl.col("value").shift(2).over("page_id"),
        gap=pl.col("at") - pl.col("at").shift(1).over("page_id"),
    )
    back = values.filter(pl.col("value") == pl.col("before"))
    assert len(back) > 0.02 * len(values)
    assert set(back["gap"].dt.total_hours().to_list()) & {6, 12, 24, 48, 72}


def test_some_offers_are_born_and_some_go(market: Path) -> None:
    values = table(market, "values")
    births = values.group_by("page_id").agg(pl.col("at").min())
    assert 0 < births.filter(pl.col("at") > pl.col("at").min()).height < 0.1 * OFFERS
    gone = values.filter(pl.col("value").is_null())
    assert 0 < len(gone) < 0.1 * OFFERS
    assert len(births) == OFFERS


def test_the_click_stratum_is_read_more(market: Path) -> None:
    pages, demand = table(market, "pages"), table(market, "demand")
    clicks = demand.join(pages, on="page_id").group_by("stratum").agg(pl.col("clicks").sum())
    found = dict(clicks.iter_rows())
    assert found["click"] > 10 * found["uniform"]
    assert (demand["clicks"] <= demand["impressions"]).all()
    assert demand["impressions"].min() > 0


def test_metadata_tell_the_rate(market: Path) -> None:
    """Merchants differ in how often their offers change by more than chance would have it."""
    changes = table(market, "values").group_by("page_id").len("changes").sort("page_id")
    merchants = table(market, "pages").sort("page_id")["merchant"]
    rng = np.random.default_rng(0)
    logs = np.log(changes["changes"].to_numpy())
    chance = [between(merchants, rng.permutation(logs)) for _ in range(20)]
    assert between(merchants, logs) > 3 * max(chance)


def between(merchants: pl.Series, scores: np.typing.NDArray[np.float64]) -> float:
    """Variance of the merchants' mean scores, each offer counting once."""
    frame = pl.DataFrame({"merchant": merchants, "score": scores})
    return float(np.var(frame.select(pl.col("score").mean().over("merchant")).to_numpy()))


def test_requests_follow_clicks(market: Path) -> None:
    requests, demand = table(market, "requests"), table(market, "demand")
    days = requests.with_columns(at=pl.col("at").dt.truncate("1d")).group_by("page_id", "at").len()
    both = days.join(demand, on=["page_id", "at"], how="left")
    assert both["clicks"].null_count() == 0
    assert (both["len"] <= both["clicks"]).all()


def test_the_command_makes_a_log(tmp_path: Path) -> None:
    words = ["log", "make", "market", "--offers", "50", "--days", "5", "--out", str(tmp_path / "m")]
    done = CliRunner().invoke(app, [*words, "--json"])
    assert done.exit_code == 0, done.output
    assert json.loads(done.stdout)["rows"]["pages"] == 50
    about = json.loads((tmp_path / "m" / "log.json").read_text())
    assert (about["preset"], about["seed"], about["resolution"]) == ("han2020", 0, "1h")


def test_unknown_presets_and_empty_markets_are_refused(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="known: han2019, han2020"):
        make_market(tmp_path / "m", MarketSize(10, 10), preset="nosuch")
    with pytest.raises(ConfigError, match="at least one offer"):
        make_market(tmp_path / "m", MarketSize(0, 10))
    assert not (tmp_path / "m").exists()
