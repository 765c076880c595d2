"""Commands about models: train them on logs or on the crawl, judge them, and ask them."""

from __future__ import annotations

from datetime import datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import typer

from salticus.cli import options, output
from salticus.cli.options import REQUIRED, Texts, arg, ask, day, flag, from_options, opt, span
from salticus.config import Share, duration
from salticus.errors import InputError

if TYPE_CHECKING:
    import polars as pl

    from salticus.models.training.recipe import TimeSplit
    from salticus.models.training.run import ModelSpec

_MODEL: Path = arg(REQUIRED, "A folder that `train` has made.", metavar="MODEL")
_SHOWN = 20  # pages that are printed
_FAR = "75d/20d/28d"  # a split whose second and third span reach beyond the curve's 14 days


def train(
    log: Path | None = arg(None, "A log; without one, the store of the settings.", metavar="[LOG]"),
    out: Path | None = opt(None, "A new folder for the model; with LOG."),
    task: Literal["change", "stale", "click", "impression", "all"] = opt(
        "change",
        "What is predicted: a change ahead, one missed, a click, an impression; or all that "
        "`simulate` takes: change, click and impression.",
    ),
    model: Literal["dnn", "trees", "sequence", "frequency", "traits"] | None = opt(
        None,
        "What is fitted; traits: how all pages change, not a model of features. [default: dnn if "
        "JAX is installed, else trees; trees on the store]",
    ),
    features: Literal["metadata", "history", "both"] = opt("both", "What the model looks at."),
    preset: Literal["full", "visits", "han2019", "han2020"] = opt(
        "full", "Which features there are."
    ),
    baseline: str = opt("combined", "Of the model frequency: combined, gamma, rule or a feature."),
    observe: str = opt("full", "What is known: full, partial, or visits per page and day (0.2)."),
    horizon: Texts = opt(None, "How far ahead; may be repeated, rising. [default: 6h]"),
    hazard: bool = opt(False, "A curve over 14 days: 6h, 1d, 3d, 7d and 14d ahead.", "--hazard"),
    split: str | None = opt(
        None, "han2019, han2020 or like 92d/5d/26d. [default: han2019, or less]"
    ),
    start: str | None = opt(None, "First day of training."),
    every: str | None = opt(None, "Predictions so often. [default: 1h, or the resolution]"),
    examples: int = opt(5_000_000, "At most so many in each span.", min=1),
    unseen: str = opt("25%", "Share of the pages held out of training."),
    published: bool = opt(False, "The network of Han 2019, and its features.", "--published"),
    cache: Path | None = opt(None, "Keep the examples in this folder, to use them again."),
    seed: int = options.SEED,
    config: Path = options.CONFIG,
    json: Path | None = options.JSON_FILE,
) -> None:
    """Learn from a log how likely its pages change (or are clicked) soon, and judge the result.

    Without LOG: learn from the visits of the crawl, and let the model serve in it if
    it is better than what serves now. Of the options, --task, --model, --features and
    --seed count then. With --model traits only --out and --seed count.
    """
    if log is None or model == "traits":
        from salticus.models.training.run import ModelSpec

        given = {
            "out": out and not log, "preset": preset != "full",
            "task": task == "stale" or (model == "traits" and task != "change"),
            "start": start, "baseline": baseline != "combined", "observe": observe != "full",
            "split": split, "horizon": horizon, "hazard": hazard, "every": every,
            "published": published, "cache": cache,
            "features": model == "traits" and features != "both",
        }  # fmt: skip
        _refuse(given, "not with traits" if log else "only with LOG; the store has its own way")
        if log is None:
            _train_store(config, task, ModelSpec(model, features), seed, json)
        else:
            _fit_traits(log, _named(out), seed, json)
        return
    out = _named(out)
    from salticus.charts.models import figures_table
    from salticus.exchange.folder import Log
    from salticus.models.training.recipe import HAZARD, Recipe, fitting_split, usual_every
    from salticus.models.training.run import ModelSpec, train_model, train_tasks

    source = Log(log)
    _check_horizons(task, horizon, hazard=hazard)
    everything = task == "all"
    wanted = _split(split or (_FAR if hazard or everything else "han2019"), day("start", start))
    recipe = from_options(
        Recipe,
        locals(),
        edges=HAZARD if hazard or everything else _edges(horizon or ["6h"]),
        split=fitting_split(source, wanted, exactly=split is not None),
        every=span("every", every) or usual_every(source),
        unseen=float(flag("unseen", Share.parse, unseen)),
    )
    request = from_options(ModelSpec, locals(), examples=cache)
    with output.steps() as told:
        if everything:
            manifests = train_tasks(source, recipe, request, out, told)
        else:
            manifests = {task: train_model(source, recipe, request, out, told)}
    if not everything:
        shown = _show(manifests[task], manifests[task]["metrics"], json)
    elif shown := output.write_json(manifests, json):
        for name, manifest in manifests.items():
            output.table(name, *figures_table(manifest["metrics"]))
    if shown:
        typer.echo(f"saved: {out}")


def _refuse(given: dict[str, Any], where: str) -> None:
    """Options that mean nothing here must not be given."""
    if strange := [name for name, value in given.items() if value]:
        raise typer.BadParameter(f"--{strange[0]}: {where}")


def _named(out: Path | None) -> Path:
    if out is None:
        raise typer.BadParameter("--out: name a new folder for the model")
    return out


def _check_horizons(task: str, horizon: list[str] | None, *, hazard: bool) -> None:
    if hazard and horizon:
        raise typer.BadParameter("--hazard: it has its own horizons; leave --horizon out")
    if task != "change" and (hazard or horizon):
        raise typer.BadParameter("--task: only a change has horizons; leave them out")


def evaluate(
    model: Path = _MODEL,
    log: Path = options.LOG_FOLDER,
    start: str | None = opt(None, "First day judged. [default: that of the model's test]"),
    days: int | None = opt(None, "Days judged. [default: those of the model's test]", min=1),
    observe: str | None = opt(None, "As in `train`. [default: as the model was trained]"),
    plot: Path | None = options.CHARTS,
    json: Path | None = options.JSON_FILE,
) -> None:
    """Judge a model on a log: how well it ranks, and whether its probabilities come true."""
    from salticus.charts.models import write_evaluation
    from salticus.exchange.folder import Log
    from salticus.models.file import load_model
    from salticus.models.training.apply import Judged, judge

    saved, source = load_model(model), Log(log)
    length = None if days is None else timedelta(days=days)
    with output.steps() as told:
        found = judge(saved, source, Judged(day("start", start), length, observe), told)
    facts = _facts(saved.manifest)
    if plot is not None:
        title = f"{facts['model']} of {facts['task']} on {source.about.name}"
        write_evaluation({"title": title, "facts": facts, "evaluation": found}, plot)
    _show(saved.manifest, found, json)


def predict(
    model: Path = _MODEL,
    log: Path = options.LOG_FOLDER,
    at: str | None = opt(None, "When. [default: the end of the log]"),
    page: Texts = opt(None, "Only this page_id; may be repeated."),
    out: Path | None = opt(None, "Write all rows to this .parquet or .csv file."),
    json: Path | None = options.JSON_FILE,
) -> None:
    """Tell for each page of a log how likely the event is, by the end of each horizon."""
    from salticus.exchange.folder import Log
    from salticus.models.file import load_model
    from salticus.models.training.apply import lacks, predict_pages

    if out is not None and out.suffix not in (".parquet", ".csv"):
        raise typer.BadParameter("--out: name a file that ends in .parquet or .csv")
    saved, source = load_model(model), Log(log)
    with output.steps() as told:
        found, when = predict_pages(saved, source, day("at", at), told)
    rows, notes = _wanted(found, page), lacks(saved, source)
    if out is not None:
        _write(rows, out)
    told_at = f"{when:%Y-%m-%dT%H:%M:%SZ}"
    if output.write_json({"at": told_at, "notes": notes, "rows": rows.to_dicts()}, json):
        for note in notes:
            typer.echo(f"note: {note}")
        _print_pages(rows, saved.manifest, when)


def _edges(horizons: list[str]) -> tuple[int, ...]:
    """Horizons in whole hours, rising."""
    spans = [flag("horizon", duration, text) for text in horizons]
    hours = [each / timedelta(hours=1) for each in spans]
    if any(each < 1 or each != int(each) for each in hours):
        raise typer.BadParameter("--horizon: give whole hours, such as 6h or 1d")
    edges = tuple(int(each) for each in hours)
    if sorted(set(edges)) != list(edges):
        raise typer.BadParameter("--horizon: give each one once, the nearest first")
    return edges


def _split(name: str, start: datetime | None) -> TimeSplit:
    """A split by its name, or by the lengths of its three spans."""
    from dataclasses import replace

    from salticus.models.training.recipe import SPLITS, TimeSplit

    if name in SPLITS:
        return replace(SPLITS[name], start=start)
    parts = name.split("/")
    if len(parts) != 3:
        known = ", ".join(SPLITS)
        raise typer.BadParameter(f"--split: {name!r} is neither {known} nor like 92d/5d/26d")
    train, validation, test = (flag("split", duration, part) for part in parts)
    return TimeSplit(train, validation, test, start)


def _facts(manifest: dict[str, Any]) -> dict[str, Any]:
    data, chosen = manifest["data"], manifest["features"]
    return {
        "model": manifest["kind"],
        "task": manifest["task"],
        "features": f"{chosen['kind']}, {chosen['preset']}",
        "observed": manifest["observe"],
        "trained on": f"{data['log']}, {data['spans']['train'][0][:10]} to "
        f"{data['spans']['train'][1][:10]}, {data['rows']['train']:,} examples",
        "calibrated until": data["spans"]["validation"][1][:10],
        "pages": data["pages"],
    }


def _show(manifest: dict[str, Any], found: dict[str, Any], out: Path | None) -> bool:
    """Print an evaluation; False if standard output is for JSON."""
    from salticus.charts.models import figures_table, stretches_table

    if not output.write_json({"model": manifest, "evaluation": found}, out):
        return False
    output.facts("model", _facts(manifest))
    for note in found.get("notes", []):
        typer.echo(f"note: {note}")
    output.table("test", *figures_table(found))
    if found["stretches"]:
        output.table("stretch by stretch", *stretches_table(found))
    output.table("by known observations", *figures_table(found, ("known",)))
    return True


def _wanted(found: pl.DataFrame, page: list[str] | None) -> pl.DataFrame:
    import polars as pl

    if not page:
        return found
    rows = found.filter(pl.col("page_id").cast(pl.String).is_in(page))
    if absent := sorted(set(page) - set(rows["page_id"].cast(pl.String))):
        raise InputError(f"page {absent[0]}: not in the log, or not there at that time")
    return rows


def _write(rows: pl.DataFrame, path: Path) -> None:
    from salticus.exchange.place import in_place
    from salticus.exchange.write import harmless_columns

    with in_place(path) as part:
        if path.suffix == ".csv":
            harmless_columns(rows).write_csv(part)
        else:
            rows.write_parquet(part)


def _print_pages(rows: pl.DataFrame, manifest: dict[str, Any], when: datetime) -> None:
    first = next(name for name in rows.columns if name.startswith("p_"))
    likely = rows.sort(first, descending=True, maintain_order=True).head(_SHOWN)
    more = f", the {_SHOWN} likeliest of {len(rows):,} pages" if len(rows) > _SHOWN else ""
    typer.echo(f"{manifest['task']} from {when:%Y-%m-%d %H:%M} UTC{more}")
    output.table("", likely.columns, likely.rows())


def _fit_traits(log: Path, out: Path, seed: int, json: Path | None) -> None:
    from salticus.exchange.folder import Log
    from salticus.lab.simulate.fitting import fit_log

    with output.steps() as told:
        told("fitting a rhythm to the log")
        traits, manifest = fit_log(Log(log), out, seed=seed)
    if output.write_json(manifest, json):
        found = manifest["fitting"]
        typer.echo(f"fitted: {traits.told()}")
        typer.echo(f"log loss {found['log_loss']:.4f}, as usual {found['usual_log_loss']:.4f}")
        typer.echo(f"saved: {out}")


def _train_store(path: Path, task: str, spec: ModelSpec, seed: int, json: Path | None) -> None:
    from salticus.crawl.training import train_all, train_crawl

    with output.steps() as told:
        if task == "all":
            found = ask(path, train_all, spec, seed=seed, told=told)
        else:
            found = [ask(path, train_crawl, spec, task=task, seed=seed, told=told)]
    if output.write_json(found if task == "all" else found[0], json):
        for each in found:
            said = "serves from the next tick on" if each.promoted else "does not take over"
            model = "" if each.version is None else f"model {each.version} {said}: "
            typer.echo(f"{each.task}: {model}{each.why}" if task == "all" else f"{model}{each.why}")
