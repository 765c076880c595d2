"""Commands about the models of a crawl: train one, list, compare, pin, roll back."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from salticus.cli.options import DEFAULT, ConfigFile, Json, ask
from salticus.cli.output import print_facts, print_json, print_table, steps, write_json

if TYPE_CHECKING:
    from salticus.views.models import ModelView, ServingView

_Version = Annotated[int, typer.Argument(metavar="N", help="A model's number; 0 = none.")]
_FIGURES = ("log_loss", "auc", "ece")
_SHOWN = 10  # events


def train_store(path: Path, model: str, features: str, seed: int, json: Path | None) -> None:
    """Train on the store that the settings name."""
    from salticus.crawl.training import train_crawl

    with steps() as told:
        found = ask(
            path, lambda c: train_crawl(c, model=model, features=features, seed=seed, told=told)
        )
    if json is not None:
        write_json(found, json)
    if json is None or str(json) != "-":
        if found.version is None:
            typer.echo(found.why)
            return
        said = "serves from the next tick on" if found.promoted else "does not take over"
        typer.echo(f"model {found.version} {said}: {found.why}")


def models(context: typer.Context, config: ConfigFile = DEFAULT, json: Json = False) -> None:
    """The models of the crawl: list, compare, pin, roll back."""
    if context.invoked_subcommand is None:
        models_list(config, json)


def models_list(config: ConfigFile = DEFAULT, json: Json = False) -> None:
    """Show all models, which one serves, and what happened of late."""
    from salticus.views import models

    found = ask(config, models.models)
    if json:
        print_json(found)
        return
    if not found.models:
        typer.echo("no models yet: `salticus train` makes one, and so does a crawl that goes on")
        return
    header = ("model", "", "trained", "learnt until", "visits", *_FIGURES, "beside", "why")
    print_table("", header, [_row(each) for each in found.models])
    last = [(e.at, e.what, e.version, e.why) for e in found.history[-_SHOWN:]]
    print_table("history", ("at", "what", "model", "why"), last)


def _row(each: ModelView) -> tuple[Any, ...]:
    word = "broken" if each.broken else "serves" if each.serves else ""
    word += ", pinned" if each.pinned else ""
    told = each.judgement
    if told is None:
        return (each.model, word, "", "", "", *("" for _ in _FIGURES), "", "not judged")
    new, old = told.candidate_figures, told.incumbent_figures
    figures = (f"{_spelt(new.get(name))} ({_spelt(old.get(name))})" for name in _FIGURES)
    beside, why = told.incumbent or "the rhythm", each.broken or told.why
    return (each.model, word, told.at, told.span[1], told.visits, *figures, beside, why)


def _spelt(figure: float | None) -> str:
    return "-" if figure is None else f"{figure:.4f}"


def models_compare(
    first: Annotated[int, typer.Argument(metavar="A", help="A model's number; 0 = none.")],
    second: Annotated[int, typer.Argument(metavar="B", help="Another.")],
    config: ConfigFile = DEFAULT,
    json: Json = False,
) -> None:
    """Replay the latest fifth of the crawl's time with two models, and say which foretells better.

    Only visits to explore and of the panel count.
    """
    from salticus.views import models
    from salticus.views.times import when

    found = ask(config, lambda crawl: models.compared(crawl, (first, second)))
    if json:
        print_json(found)
        return
    both = (("A", found.first), ("B", found.second))
    rows = [(name, *(_spelt(each[figure]) for figure in _FIGURES)) for name, each in both]
    span = " to ".join(map(when, found.judged))
    print_table(f"{found.visits} visits, {span}", ("", *_FIGURES), rows)
    typer.echo(f"A ({first}) beside B ({second}): {found.why}")


def models_pin(version: _Version, config: ConfigFile = DEFAULT, json: Json = False) -> None:
    """Let a model serve, whatever is trained later; one that was broken gets another chance."""
    from salticus.views import models

    _tell(ask(config, lambda crawl: models.pin(crawl, version)), json)


def models_unpin(config: ConfigFile = DEFAULT, json: Json = False) -> None:
    """Let better models take over again."""
    from salticus.views import models

    _tell(ask(config, models.unpin), json)


def models_roll_back(config: ConfigFile = DEFAULT, json: Json = False) -> None:
    """Let the model serve that served before, or none."""
    from salticus.views import models

    _tell(ask(config, models.roll_back), json)


def _tell(found: ServingView, json: bool) -> None:
    if json:
        print_json(found)
        return
    name = f"model {found.serving}" if found.serving else "the rhythm alone"
    print_facts(f"{name} serves from the next tick on", {"pinned": found.pinned})
