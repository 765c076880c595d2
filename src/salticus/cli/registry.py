"""Commands about the models of a crawl: list, compare, pin, roll back."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import typer

from salticus.cli import options, output
from salticus.cli.options import REQUIRED, arg, ask, opt

if TYPE_CHECKING:
    from salticus.views.models import ModelView, ServingView, TaskView

_TASK: Literal["change", "click", "impression"] = opt("change", "Of what the model is.", "--task")
_FIGURES = ("log_loss", "auc", "ece")
_EVENTS = 10  # events of models that are printed


def models(
    context: typer.Context, config: Path = options.CONFIG, json: bool = options.JSON
) -> None:
    """The models of the crawl: list, compare, pin, roll back."""
    if context.invoked_subcommand is None:
        models_list(config, json)


def models_list(config: Path = options.CONFIG, json: bool = options.JSON) -> None:
    """Show all models, which ones serve and with which weight, and what happened of late."""
    from salticus.views import models

    found = ask(config, models.models)
    if json:
        output.json(found)
        return
    tasks = {"change": found, "click": found.click, "impression": found.impression}
    for task, each in tasks.items():
        if each.models:
            _list_task(task, each)
    if not any(each.models for each in tasks.values()):
        typer.echo("no models yet: `salticus train` makes one, and so does a crawl that goes on")


def _list_task(task: str, found: TaskView) -> None:
    header = ("model", "", "trained", "learnt until", "judged on", *_FIGURES, "beside", "why")
    beside = "the rhythm" if task == "change" else "counts"
    output.table(f"models of {task}", header, [_row(each, beside) for each in found.models])
    if found.weights is not None:
        known = ("", *found.weights)
        output.table("", known, [(f"weight beside {beside}", *found.weights.values())])
    last = [(e.at, e.what, e.version, e.why) for e in found.history[-_EVENTS:]]
    output.table("history", ("at", "what", "model", "why"), last)


def _row(each: ModelView, beside: str) -> tuple[Any, ...]:
    word = "broken" if each.broken else "serves" if each.serves else ""
    word += ", pinned" if each.pinned else ""
    word += "" if each.traits is None else f" fitted: {each.traits}"
    told = each.judgement
    if told is None:
        return (each.model, word, "", "", "", *("" for _ in _FIGURES), "", "not judged")
    new, old = told.candidate_figures, told.incumbent_figures
    figures = (f"{_spelt(new.get(name))} ({_spelt(old.get(name))})" for name in _FIGURES)
    rival, why = told.incumbent or beside, each.broken or told.why
    return (each.model, word, told.at, told.span[1], told.visits, *figures, rival, why)


def _spelt(figure: float | None) -> str:
    return "-" if figure is None else f"{figure:.4f}"


def models_compare(
    first: int = arg(REQUIRED, "A model's number; 0 = none.", metavar="A"),
    second: int = arg(REQUIRED, "Another.", metavar="B"),
    task: Literal["change", "click", "impression"] = _TASK,
    config: Path = options.CONFIG,
    json: bool = options.JSON,
) -> None:
    """Replay the latest fifth of the crawl's time with two models, and say which predicts better.

    Only visits to explore and of the panel count; for clicks and impressions, all pages day by
    day.
    """
    from salticus.views import models
    from salticus.views.times import when

    found = ask(config, models.compared, (first, second), task)
    if json:
        output.json(found)
        return
    both = (("A", found.first), ("B", found.second))
    rows = [(name, *(_spelt(each[figure]) for figure in _FIGURES)) for name, each in both]
    span = " to ".join(map(when, found.judged))
    what = "visits" if task == "change" else "days of pages"
    output.table(f"{found.visits} {what}, {span}", ("", *_FIGURES), rows)
    typer.echo(f"A ({first}) beside B ({second}): {found.why}")


def models_pin(
    version: int = arg(REQUIRED, "A model's number; 0 = none.", metavar="N"),
    task: Literal["change", "click", "impression"] = _TASK,
    config: Path = options.CONFIG,
    json: bool = options.JSON,
) -> None:
    """Let a model serve, whatever is trained later; one that was broken gets another chance."""
    from salticus.views import models

    output.answer(ask(config, models.pin, version, task), json, _print_serving)


def models_unpin(
    task: Literal["change", "click", "impression"] = _TASK,
    config: Path = options.CONFIG,
    json: bool = options.JSON,
) -> None:
    """Let better models take over again."""
    from salticus.views import models

    output.answer(ask(config, models.unpin, task), json, _print_serving)


def models_roll_back(
    task: Literal["change", "click", "impression"] = _TASK,
    config: Path = options.CONFIG,
    json: bool = options.JSON,
) -> None:
    """Let the model serve that served before, or none."""
    from salticus.views import models

    output.answer(ask(config, models.roll_back, task), json, _print_serving)


def _print_serving(found: ServingView) -> None:
    name = f"model {found.serving}" if found.serving else "no model"
    output.facts(f"{name} serves from the next tick on", {"pinned": found.pinned})
