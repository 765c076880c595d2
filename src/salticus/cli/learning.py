"""Commands that train models on logs, judge them and use them."""

from __future__ import annotations

from datetime import datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer

from salticus.cli.models import train_store
from salticus.cli.options import DEFAULT, ConfigFile, day, flag, span
from salticus.cli.output import print_facts, print_table, steps, write_json
from salticus.config import Share, duration
from salticus.errors import InputError

if TYPE_CHECKING:
    import polars as pl

    from salticus.models.training.recipe import TimeSplit

_Log = Annotated[Path, typer.Argument(metavar="LOG", help="A log: a folder of Parquet files.")]
_Model = Annotated[Path, typer.Argument(metavar="MODEL", help="A folder that `train` has made.")]
_Json = Annotated[Path | None, typer.Option("--json", help="Write the result as JSON (- = print).")]
_SHOWN = 20  # pages that are printed
_FAR = "75d/20d/28d"  # a split whose second and third span reach beyond the curve's 14 days


def train(
    log: Annotated[
        Path | None,
        typer.Argument(metavar="[LOG]", help="A log; without one, the store of the settings."),
    ] = None,
    out: Annotated[Path | None, typer.Option(help="A new folder for the model; with LOG.")] = None,
    task: Annotated[
        Literal["change", "stale", "click", "impression"],
        typer.Option(help="What is foretold: a change ahead, one missed, a click, an impression."),
    ] = "change",
    model: Annotated[
        Literal["dnn", "trees", "sequence", "frequency"] | None,
        typer.Option(help="[default: dnn if JAX is installed, else trees; trees on the store]"),
    ] = None,
    features: Annotated[
        Literal["metadata", "history", "both"], typer.Option(help="What the model looks at.")
    ] = "both",
    preset: Annotated[
        Literal["full", "visits", "han2019", "han2020"],
        typer.Option(help="Which features there are."),
    ] = "full",
    baseline: Annotated[
        str, typer.Option(help="Of the model frequency: combined, gamma, rule or a feature.")
    ] = "combined",
    observe: Annotated[
        str, typer.Option(help="What is known: full, partial, or visits per page and day (0.2).")
    ] = "full",
    horizon: Annotated[
        list[str] | None,
        typer.Option(help="How far ahead; may be repeated, rising. [default: 6h]"),
    ] = None,
    hazard: Annotated[
        bool, typer.Option("--hazard", help="A curve over 14 days: 6h, 1d, 3d, 7d and 14d ahead.")
    ] = False,
    split: Annotated[
        str | None,
        typer.Option(help="han2019, han2020 or like 92d/5d/26d. [default: han2019, or less]"),
    ] = None,
    start: Annotated[str | None, typer.Option(help="First day of training.")] = None,
    every: Annotated[
        str | None, typer.Option(help="Predictions so often. [default: 1h, or the resolution]")
    ] = None,
    examples: Annotated[int, typer.Option(min=1, help="At most so many in each span.")] = 5_000_000,
    unseen: Annotated[str, typer.Option(help="Share of the pages held out of training.")] = "25%",
    published: Annotated[
        bool, typer.Option("--published", help="The features and the network of Han 2019.")
    ] = False,
    cache: Annotated[
        Path | None, typer.Option(help="Keep the examples in this folder, to use them again.")
    ] = None,
    seed: Annotated[int, typer.Option(help="Fixes every chance.")] = 0,
    config: ConfigFile = DEFAULT,
    json: _Json = None,
) -> None:
    """Learn from a log how likely its pages change (or are clicked) soon, and judge the result.

    Without LOG: learn from the visits of the crawl, and let the model serve in it if
    it is better than what serves now. Of the options, --model, --features and --seed
    count then.
    """
    if log is None:
        given = {
            "out": out, "task": task != "change", "preset": preset != "full", "start": start,
            "baseline": baseline != "combined", "observe": observe != "full", "split": split,
            "horizon": horizon, "hazard": hazard, "every": every, "published": published,
            "cache": cache,
        }  # fmt: skip
        if strange := [name for name, value in given.items() if value]:
            raise typer.BadParameter(f"--{strange[0]}: only with LOG; the store has its own way")
        train_store(config, model or "trees", features, seed, json)
        return
    if out is None:
        raise typer.BadParameter("--out: name a new folder for the model")
    from salticus.exchange.folder import Log
    from salticus.models.training.recipe import HAZARD, Recipe
    from salticus.models.training.run import ModelSpec, train_model
    from salticus.models.training.span import fitting_split, usual_every

    source = Log(log)
    if hazard and horizon:
        raise typer.BadParameter("--hazard: it has its own horizons; leave --horizon out")
    if task != "change" and (hazard or horizon):
        raise typer.BadParameter("--task: only a change has horizons; leave them out")
    recipe = Recipe(
        task=task,
        edges=HAZARD if hazard else _edges(horizon or ["6h"]),
        observe=observe,
        split=fitting_split(
            source,
            _split(split or (_FAR if hazard else "han2019"), day("start", start)),
            exactly=split is not None,
        ),
        every=span("every", every) or usual_every(source),
        examples=examples,
        unseen=float(flag("unseen", Share.parse, unseen)),
        seed=seed,
    )
    request = ModelSpec(
        model=model,
        features=features,
        preset=preset,
        baseline=baseline,
        published=published,
        examples=cache,
    )
    with steps() as told:
        manifest = train_model(source, recipe, request, out, told)
    _show(manifest, manifest["metrics"], json)
    if json is None or str(json) != "-":
        typer.echo(f"saved: {out}")


def evaluate(
    model: _Model,
    log: _Log,
    start: Annotated[
        str | None, typer.Option(help="First day judged. [default: that of the model's test]")
    ] = None,
    days: Annotated[
        int | None, typer.Option(min=1, help="Days judged. [default: those of the model's test]")
    ] = None,
    observe: Annotated[
        str | None, typer.Option(help="As in `train`. [default: as the model was trained]")
    ] = None,
    plot: Annotated[Path | None, typer.Option(help="Write charts to this HTML file.")] = None,
    json: _Json = None,
) -> None:
    """Judge a model on a log: how well it ranks, and whether its probabilities come true."""
    from salticus.charts.models import write_evaluation
    from salticus.exchange.folder import Log
    from salticus.models.file import load_model
    from salticus.models.training.apply import Judged, judge

    saved, source = load_model(model), Log(log)
    length = None if days is None else timedelta(days=days)
    with steps() as told:
        found = judge(saved, source, Judged(day("start", start), length, observe), told)
    facts = _facts(saved.manifest)
    if plot is not None:
        title = f"{facts['model']} of {facts['task']} on {source.about.name}"
        write_evaluation({"title": title, "facts": facts, "evaluation": found}, plot)
    _show(saved.manifest, found, json)


def predict(
    model: _Model,
    log: _Log,
    at: Annotated[str | None, typer.Option(help="When. [default: the end of the log]")] = None,
    page: Annotated[
        list[str] | None, typer.Option(help="Only this page_id; may be repeated.")
    ] = None,
    out: Annotated[
        Path | None, typer.Option(help="Write all rows to this .parquet or .csv file.")
    ] = None,
    json: _Json = None,
) -> None:
    """Tell for each page of a log how likely the event is, by the end of each horizon."""
    from salticus.exchange.folder import Log
    from salticus.models.file import load_model
    from salticus.models.training.apply import lacks, predict_pages

    if out is not None and out.suffix not in (".parquet", ".csv"):
        raise typer.BadParameter("--out: name a file that ends in .parquet or .csv")
    saved, source = load_model(model), Log(log)
    with steps() as told:
        found, when = predict_pages(saved, source, day("at", at), told)
    rows, notes = _wanted(found, page), lacks(saved, source)
    if out is not None:
        _write(rows, out)
    if json is not None:
        told_at = f"{when:%Y-%m-%dT%H:%M:%SZ}"
        write_json({"at": told_at, "notes": notes, "rows": rows.to_dicts()}, json)
    if json is None or str(json) != "-":
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
    """What a model is, in a few lines."""
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


def _show(manifest: dict[str, Any], found: dict[str, Any], out: Path | None) -> None:
    from salticus.charts.models import figures_table, stretches_table

    if out is not None:
        write_json({"model": manifest, "evaluation": found}, out)
    if out is not None and str(out) == "-":
        return
    print_facts("model", _facts(manifest))
    for note in found.get("notes", []):
        typer.echo(f"note: {note}")
    print_table("test", *figures_table(found))
    if found["stretches"]:
        print_table("stretch by stretch", *stretches_table(found))
    print_table("by known observations", *figures_table(found, ("known",)))


def _wanted(found: pl.DataFrame, page: list[str] | None) -> pl.DataFrame:
    import polars as pl

    if not page:
        return found
    rows = found.filter(pl.col("page_id").cast(pl.String).is_in(page))
    if absent := sorted(set(page) - set(rows["page_id"].cast(pl.String))):
        raise InputError(f"page {absent[0]}: not in the log, or not there at that time")
    return rows


def _write(rows: pl.DataFrame, path: Path) -> None:
    from salticus.exchange.cells import harmless_columns
    from salticus.exchange.place import in_place

    with in_place(path) as part:
        harmless_columns(rows).write_csv(part) if path.suffix == ".csv" else rows.write_parquet(
            part
        )


def _print_pages(rows: pl.DataFrame, manifest: dict[str, Any], when: datetime) -> None:
    first = next(name for name in rows.columns if name.startswith("p_"))
    likely = rows.sort(first, descending=True, maintain_order=True).head(_SHOWN)
    more = f", the {_SHOWN} likeliest of {len(rows):,} pages" if len(rows) > _SHOWN else ""
    typer.echo(f"{manifest['task']} from {when:%Y-%m-%d %H:%M} UTC{more}")
    print_table("", likely.columns, likely.rows())
