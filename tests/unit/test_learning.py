"""From a log to a model and back: the commands, the same bytes twice, and what is refused."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest
from typer.testing import CliRunner

from salticus.cli import app
from salticus.errors import ConfigError, InputError
from salticus.exchange.folder import Log
from salticus.exchange.write import write_log
from salticus.features.metadata import Vocabulary
from salticus.features.names import EDGES, METADATA, all_names
from salticus.lab.worlds.market import MarketSize, make_market
from salticus.models.file import fingerprint, load_model
from salticus.models.training.apply import Judged, judge, lacks, predict_pages, recipe_of
from salticus.models.training.evaluate import shops_of
from salticus.models.training.examples import make_examples, plain
from salticus.models.training.recipe import (
    SPLITS,
    Recipe,
    TimeSplit,
    fitting_split,
    log_span,
    usual_every,
)
from salticus.models.training.run import ModelSpec, fitted, train_model
from salticus.models.training.shards import Shards
from salticus.types import Examples

DAY = timedelta(days=1)
SPLIT = TimeSplit(25 * DAY, 5 * DAY, 10 * DAY)
RECIPE = Recipe(edges=(24,), split=SPLIT, every=timedelta(hours=6), visits=False, examples=6000)
DOCS = Path(__file__).parents[2] / "docs"


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with a market, and the model of some commands."""
    folder = tmp_path_factory.mktemp("learning")
    make_market(folder / "market", MarketSize(250, 40), seed=1)
    how = (
        "--model trees --preset han2019 --horizon 1d --split 25d/5d/10d --examples 6000 --every 6h"
    )
    where = ("--out", folder / "model", "--json", folder / "train.json")
    said = run("train", folder / "market", *how.split(), *where)
    (folder / "said.txt").write_text(said, "utf-8")
    return folder


@pytest.fixture
def log(place: Path) -> Log:
    return Log(place / "market")


def run(*words: str | Path) -> str:
    done = CliRunner().invoke(app, [str(word) for word in words])
    if done.exception is not None and not isinstance(done.exception, SystemExit):
        raise done.exception
    assert done.exit_code == 0, done.output
    return done.output


@contextmanager
def patched_out(path: Path) -> Iterator[None]:
    """A file that is away for a while."""
    away = path.rename(path.with_suffix(".away"))
    try:
        yield
    finally:
        away.rename(path)


def refused(*words: str | Path) -> str:
    """What a command says that was used wrongly."""
    done = CliRunner().invoke(app, [str(word) for word in words])
    assert done.exit_code == 2
    return " ".join(re.sub(r"[│╭╮╰╯─]", " ", done.output).split())


# ------------------------------------------------------------------------------ train and evaluate


def test_train_saves_a_model_and_tells_how_good_it_is(place: Path) -> None:
    said = (place / "said.txt").read_text("utf-8")
    assert "saved:" in said
    report = json.loads((place / "train.json").read_text("utf-8"))
    manifest = load_model(place / "model").manifest
    assert report["model"] == {name: manifest[name] for name in report["model"]}
    assert (manifest["kind"], manifest["task"], manifest["edges"]) == ("trees", "change", [24])
    assert manifest["data"]["log"] == "market"
    assert manifest["features"]["metadata"] == [*METADATA]
    assert set(manifest["features"]["dense"]) < set(all_names((24,)))
    assert "numpy" in manifest["libraries"]
    whole = report["evaluation"]["figures"][0]
    assert 0.6 < whole["auc"] < 1.0
    assert whole["rows"] <= 6000
    assert {row["by"] for row in report["evaluation"]["figures"]} == {
        "all", "seen", "known", "merchant",
    }  # fmt: skip
    assert not list(place.glob(".*"))  # the examples are gone


def test_evaluate_finds_the_figures_of_the_training(place: Path) -> None:
    page, out = place / "model.html", place / "evaluate.json"
    said = run("evaluate", place / "model", place / "market", "--plot", page, "--json", out)
    assert "by known observations" in said
    found = json.loads(out.read_text("utf-8"))["evaluation"]
    trained = json.loads((place / "train.json").read_text("utf-8"))["evaluation"]
    for ours, theirs in zip(found["figures"], trained["figures"], strict=True):
        assert ours == theirs
    assert found["notes"] == []
    text = page.read_text("utf-8")
    assert text.count("<figure>") == 2
    assert "Do the probabilities mean what they say?" in text


def test_other_days_may_be_judged(place: Path, log: Log) -> None:
    saved = load_model(place / "model")
    start = datetime.fromisoformat(saved.manifest["data"]["spans"]["test"][0])
    later = judge(saved, log, Judged(start + 5 * DAY, 3 * DAY, "partial"))
    assert 0 < later["rows"] < saved.manifest["metrics"]["rows"]
    early = judge(saved, log, Judged(start - 20 * DAY, 3 * DAY))
    assert early["notes"] == ["the model has learnt from some of these days"]
    with pytest.raises(InputError, match=r"the days judged cannot begin at 2001-01-01, but from"):
        judge(saved, log, Judged(datetime(2001, 1, 1, tzinfo=UTC)))


def test_the_pages_of_another_log_are_unseen(place: Path, tmp_path: Path) -> None:
    make_market(tmp_path / "other", MarketSize(60, 40), seed=2)
    saved = load_model(place / "model")
    found = judge(saved, Log(tmp_path / "other"))
    assert found["notes"] == ["not the log of the training: all its pages count as unseen"]
    assert "seen" not in {row["group"] for row in found["figures"]}


# ------------------------------------------------------------------------------------------ predict


def test_predict_tells_of_every_page_that_is_there(place: Path, log: Log) -> None:
    out = place / "chances.csv"
    said = run("predict", place / "model", place / "market", "--out", out)
    assert "likeliest" in said
    rows = pl.read_csv(out)
    assert rows.columns == ["page_id", "p_24h"]
    values = log.scan("values").sort("page_id", "at").collect()
    last = values.group_by("page_id", maintain_order=True).last()
    assert set(rows["page_id"]) == set(last.filter(pl.col("value").is_not_null())["page_id"])
    assert rows["p_24h"].is_between(0, 1, closed="none").all()


def test_what_comes_later_is_not_looked_at(place: Path, log: Log, tmp_path: Path) -> None:
    """A log that was cut off says the same of the times that it has."""
    saved = load_model(place / "model")
    first, _ = log_span(log)
    at = datetime.fromtimestamp(first / 1e6, UTC) + 30 * DAY
    early = {name: log.scan(name) for name in ("values", "visits", "demand")}
    cut = {name: table.filter(pl.col("at") < at) for name, table in early.items()}
    pages = log.scan("pages")
    about = {key: log.about.rest[key] for key in ("resolution", "demand_bucket")}
    span = [f"{datetime.fromtimestamp(first / 1e6, UTC):%Y-%m-%dT%H:%M:%SZ}",
            f"{at:%Y-%m-%dT%H:%M:%SZ}"]  # fmt: skip
    write_log(tmp_path / "cut", {"pages": pages, **cut}, {**about, "span": span})
    whole, when = predict_pages(saved, log, at)
    short, _ = predict_pages(saved, Log(tmp_path / "cut"), at)
    assert when == at
    assert whole.equals(short)
    assert not whole.equals(predict_pages(saved, log)[0])


def test_pages_of_a_merchant_that_ended_are_not_asked_about(
    place: Path, log: Log, tmp_path: Path
) -> None:
    """A log that says so ends each merchant's pages with the merchant's last change."""
    saved, shop = load_model(place / "model"), log.scan("pages").collect()["merchant"][0]
    own = log.scan("pages").filter(pl.col("merchant") == shop).select("page_id").collect()
    ids = own["page_id"].implode()
    late = datetime.fromtimestamp(log_span(log)[0] / 1e6, UTC) + 30 * DAY
    kept = log.scan("values").filter(~pl.col("page_id").is_in(ids) | (pl.col("at") < late))
    tables = {"pages": log.scan("pages"), "values": kept, "demand": log.scan("demand")}
    asked = {}
    for name, more in (("told", {"merchants_end": "each"}), ("silent", {})):
        about = {key: log.about.rest[key] for key in ("resolution", "demand_bucket", "span")}
        write_log(tmp_path / name, tables, about | more)
        rows, _ = predict_pages(saved, Log(tmp_path / name))
        asked[name] = rows["page_id"].is_in(ids).sum()
    assert asked["told"] == 0 < asked["silent"]


def test_what_a_log_cannot_tell_is_noted(place: Path, log: Log) -> None:
    saved = load_model(place / "model")
    assert not lacks(saved, log)
    looks = {**saved.manifest["features"], "dense": ["clicks_day", "page_month"]}
    clicks = replace(saved, manifest={**saved.manifest, "features": looks})
    assert not lacks(clicks, log)
    with patched_out(log.path("demand")):
        assert lacks(clicks, log) == ["the model looks at clicks, of which the log tells none"]


def test_single_pages_and_json(place: Path) -> None:
    words = ("predict", place / "model", place / "market", "--json", "-")
    found = json.loads(run(*words, "--page", "3", "--page", "7"))
    assert [row["page_id"] for row in found["rows"]] == [3, 7]
    with pytest.raises(InputError, match="page nosuch: not in the log"):
        run(*words, "--page", "nosuch")
    with pytest.raises(InputError, match=r"market: tells of .* not of 1999"):
        run(*words, "--at", "1999-01-01")
    assert "ends in .parquet or .csv" in refused(*words, "--out", "x.txt")


# -------------------------------------------------------------------------------------- train again


def test_one_seed_gives_the_same_bytes(log: Log, tmp_path: Path) -> None:
    kept = ModelSpec("trees", preset="han2019", examples=tmp_path / "examples")
    train_model(log, RECIPE, kept, tmp_path / "a")
    train_model(log, RECIPE, replace(kept, examples=None), tmp_path / "b")
    train_model(log, replace(RECIPE, seed=1), kept, tmp_path / "c")
    marks = [fingerprint(tmp_path / name) for name in "abc"]
    assert marks[0] == marks[1]
    assert marks[0] != marks[2]
    assert (tmp_path / "examples" / "manifest.json").is_file()


def test_a_curve_of_several_horizons_never_falls(log: Log, tmp_path: Path) -> None:
    recipe = replace(RECIPE, edges=(6, 24, 72, 168), observe="partial")
    manifest = train_model(log, recipe, ModelSpec("frequency"), tmp_path / "model")
    found = manifest["metrics"]
    assert [row["to"] for row in found["stretches"]] == [6, 24, 72, 168]
    assert re.search("fewer than 5 events 168 h ahead, too few to calibrate by", found["notes"][0])
    whole = [row for row in found["figures"] if row["by"] == "all"]
    assert whole[0]["share"] < whole[1]["share"] < whole[2]["share"]
    rows, _ = predict_pages(load_model(tmp_path / "model"), log)
    assert rows.columns == ["page_id", "p_6h", "p_24h", "p_72h", "p_168h"]
    assert (rows["p_6h"] <= rows["p_24h"]).all()
    assert (rows["p_24h"] <= rows["p_72h"]).all()


@pytest.mark.parametrize(
    ("task", "column"), [("click", "p_day"), ("impression", "p_day"), ("stale", "p_now")]
)
def test_other_tasks(log: Log, tmp_path: Path, task: str, column: str) -> None:
    observe = "partial" if task == "stale" else "full"
    recipe = replace(RECIPE, task=task, observe=observe, edges=(6,))
    manifest = train_model(log, recipe, ModelSpec("frequency"), tmp_path / "model")
    assert manifest["edges"] == [0 if task == "stale" else 24]
    rows, _ = predict_pages(load_model(tmp_path / "model"), log)
    assert rows.columns == ["page_id", column]


# ------------------------------------------------------------------------------------------ refused


def test_what_cannot_be_trained_is_refused_before_any_work(log: Log, tmp_path: Path) -> None:
    for request, said in (
        (ModelSpec("oracle"), "no model is called 'oracle'"),
        (ModelSpec("trees", published=True), "only the model `dnn` has published settings"),
        (ModelSpec("frequency", baseline="x"), "no baseline is called 'x'"),
    ):
        with pytest.raises(ConfigError, match=said):
            train_model(log, RECIPE, request, tmp_path / "model")
    clicks, gamma = replace(RECIPE, task="click"), ModelSpec("frequency", baseline="gamma")
    with pytest.raises(ConfigError, match="gamma tells of changes ahead, not of click"):
        train_model(log, clicks, gamma, tmp_path / "model")
    (tmp_path / "full").mkdir()
    (tmp_path / "full" / "x").touch()
    with pytest.raises(InputError, match="full: already there and not empty"):
        train_model(log, RECIPE, ModelSpec("trees"), tmp_path / "full")
    assert {path.name for path in tmp_path.iterdir()} == {"full"}


def test_a_log_without_events_teaches_nothing(tmp_path: Path) -> None:
    start = datetime(2026, 1, 1, tzinfo=UTC)
    ids = list(range(20))
    values = pl.DataFrame({"page_id": ids, "at": [start] * 20, "value": ["1.00"] * 20})
    about = {"span": ["2026-01-01", "2026-02-09"], "resolution": "1h"}
    write_log(
        tmp_path / "still", {"pages": pl.DataFrame({"page_id": ids}), "values": values}, about
    )
    with pytest.raises(InputError, match=r"only 0 of [\d,]+ train examples have the event"):
        train_model(Log(tmp_path / "still"), RECIPE, ModelSpec("frequency"), tmp_path / "model")
    recipe = replace(RECIPE, task="click")
    with pytest.raises(InputError, match=r"demand\.parquet: no such file"):
        train_model(Log(tmp_path / "still"), recipe, ModelSpec("frequency"), tmp_path / "model")


def test_a_horizon_beyond_the_training_span_is_refused(log: Log, tmp_path: Path) -> None:
    recipe = replace(RECIPE, edges=(24, 336), split=TimeSplit(12 * DAY, 5 * DAY, 10 * DAY))
    with pytest.raises(InputError, match="too short to tell of 336 h ahead"):
        train_model(log, recipe, ModelSpec("frequency"), tmp_path / "model")


def test_wrong_options_are_named(place: Path, tmp_path: Path) -> None:
    words = ("train", place / "market", "--out", tmp_path / "model")
    assert "leave --horizon out" in refused(*words, "--hazard", "--horizon", "6h")
    assert "only a change" in refused(*words, "--hazard", "--task", "click")
    assert "whole hours" in refused(*words, "--horizon", "90m")
    assert "the nearest first" in refused(*words, "--horizon", "1d", "--horizon", "6h")
    assert "nor like 92d/5d/26d" in refused(*words, "--split", "half")
    with pytest.raises(InputError, match=r"the split takes 123 days, but .* `--split 31d/2d/8d`"):
        run(*words, "--split", "han2019")


# ------------------------------------------------------------------------------------------- pieces


def test_a_split_shrinks_to_the_log_unless_it_was_asked_for(log: Log) -> None:
    assert fitting_split(log, SPLIT, exactly=True) == SPLIT
    less = fitting_split(log, SPLITS["han2019"], exactly=False)
    assert less.train + less.validation + less.test <= 41 * DAY
    late = TimeSplit(DAY, DAY, DAY, datetime(2050, 1, 1, tzinfo=UTC))
    with pytest.raises(InputError, match="the log has 0"):
        fitting_split(log, late, exactly=False)
    assert usual_every(log) == timedelta(hours=1)


def test_a_recipe_comes_back_from_a_manifest() -> None:
    for recipe in (RECIPE, replace(RECIPE, split=replace(SPLIT, start=datetime.now(UTC)))):
        assert recipe_of(json.loads(json.dumps(plain(recipe)))) == recipe


def test_merchants_that_a_model_does_not_number_are_new_to_it() -> None:
    pages = pl.DataFrame({"merchant": ["b"] * 6 + ["a", None]})
    vocabulary = Vocabulary.fit(pages, np.arange(8) < 7, ("merchant",))
    shops = shops_of(pages, vocabulary.encode(pages), vocabulary)
    assert shops is not None
    assert list(shops.names) == ["a", "b"]
    assert shops.of_page.tolist() == [1] * 6 + [0, -1]
    assert shops.known.tolist() == [False, True]
    bare = Vocabulary.fit(pages, np.arange(8) < 7, ())
    assert shops_of(pages, bare.encode(pages), bare) is None


def test_every_feature_and_every_entry_of_a_manifest_is_documented(place: Path) -> None:
    text = (DOCS / "reference" / "models.md").read_text("utf-8")
    told = set(re.findall(r"`(\w+)`", text))
    assert {*all_names(EDGES), *METADATA} <= told
    manifest: dict[str, Any] = load_model(place / "model").manifest
    assert {*manifest, *manifest["data"], *manifest["features"]} <= told
    assert {*manifest["metrics"]["figures"][0]} <= told


@pytest.mark.parametrize("kind", ["sequence"])  # the plain network is a part of it
def test_networks_learn_from_few_examples(log: Log, tmp_path: Path, kind: str) -> None:
    few = {"epochs": 1, "hidden": (16,)}
    manifest = train_model(log, RECIPE, ModelSpec(kind, fitting=few), tmp_path / "model")
    assert manifest["fitting"]["batch"] == 256
    assert "jax" in manifest["libraries"]
    assert manifest["recipe"]["depth"] == (16 if kind == "sequence" else 0)
    rows, _ = predict_pages(load_model(tmp_path / "model"), log)
    assert rows["p_24h"].is_between(0, 1, closed="none").all()
    assert not list(tmp_path.glob(".*"))


class Twisted:
    """Shards in which everything that became of unseen pages is the other way round."""

    def __init__(self, shards: Shards) -> None:
        self.shards = shards

    def __getattr__(self, name: str) -> Any:
        return getattr(self.shards, name)

    def part(self, name: str, **asked: Any) -> Examples:
        rows = self.shards.part(name, **asked)
        label = np.where(rows.seen[:, None], rows.label, 1 - np.abs(rows.label)).astype(np.int8)
        return replace(rows, label=label)


def test_unseen_pages_take_no_part_in_training(log: Log, tmp_path: Path) -> None:
    shards = make_examples(log, RECIPE, tmp_path / "examples")
    assert not shards.part("validation", columns=()).seen.all()
    request = ModelSpec(model="trees", preset="han2019", fitting={"trees": 8, "least": 20})
    once, again = (
        fitted(each, RECIPE, request)  # type: ignore[arg-type]
        for each in (shards, Twisted(shards))
    )
    for mine, theirs in (
        (once.model.model.arrays(), again.model.model.arrays()),
        (once.model.arrays(), again.model.arrays()),
        (once.vocabulary[1], again.vocabulary[1]),
    ):
        assert all(np.array_equal(mine[name], theirs[name]) for name in mine)
    assert once.model.settings() == again.model.settings()
