"""Commands about the models of a crawl: train one, list, compare, pin, roll back."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from salticus.cli.options import DEFAULT, ConfigFile, Json, settings
from salticus.cli.output import print_facts, print_json, print_table, steps, write_json
from salticus.models.registry import NONE, Registry

if TYPE_CHECKING:
    from salticus.config import Config
    from salticus.crawl.training import Terms

_Version = Annotated[int, typer.Argument(metavar="N", help="A model's number; 0 = none.")]
_FIGURES = ("log_loss", "auc", "ece")
_SHOWN = 10  # events


def train_store(path: Path, model: str, features: str, seed: int, json: Path | None) -> None:
    """Train on the store that the settings name."""
    config = settings(path)
    with steps() as told:
        found = asyncio.run(_train(config, (model, features, seed), told))
    if json is not None:
        write_json(found, json)
    if json is None or str(json) != "-":
        if found["version"] is None:
            typer.echo(found["why"])
            return
        said = "serves from the next tick on" if found["promoted"] else "does not take over"
        typer.echo(f"model {found['version']} {said}: {found['why']}")


async def _train(config: Config, wish: tuple[str, str, int], told: Any) -> dict[str, Any]:
    from salticus.crawl.opening import stored
    from salticus.crawl.training import train_stored
    from salticus.models.training.run import ModelSpec

    model, features, seed = wish
    request, terms = ModelSpec(model=model, features=features), _terms(config, seed)
    async with stored(config) as store:
        return await train_stored(store, _registry(config), request, terms, told)


def _terms(config: Config, seed: int = 0) -> Terms:
    from salticus.crawl.opening import clock_of
    from salticus.crawl.training import Terms

    return Terms(config.tick, config.models.least, clock_of(config).now(), seed)


def _registry(config: Config) -> Registry:
    return Registry(Path(config.models.path))


def models(context: typer.Context, config: ConfigFile = DEFAULT, json: Json = False) -> None:
    """The models of the crawl: list, compare, pin, roll back."""
    if context.invoked_subcommand is None:
        models_list(config, json)


def models_list(config: ConfigFile = DEFAULT, json: Json = False) -> None:
    """Show all models, which one serves, and what happened of late."""
    found = listed(_registry(settings(config)))
    if json:
        print_json(found)
        return
    if not found["models"]:
        typer.echo("no models yet: `salticus train` makes one, and so does a crawl that goes on")
        return
    header = ("model", "", "trained", "learnt until", "visits", *_FIGURES, "beside", "why")
    print_table("", header, [_row(each) for each in found["models"]])
    last = [(e["at"], e["what"], e["version"], e["why"]) for e in found["history"][-_SHOWN:]]
    print_table("history", ("at", "what", "model", "why"), last)


def listed(registry: Registry) -> dict[str, Any]:
    """All that the registry knows, as plain data."""
    import msgspec

    pointer = registry.pointer()
    rows = []
    for version in registry.versions():
        judgement = registry.judgement(version)
        row = {
            "model": version,
            "serves": version == pointer.chain()[0],
            "pinned": pointer.pinned and version == pointer.serving,
            "broken": pointer.broken.get(str(version)),
            "judgement": None if judgement is None else msgspec.to_builtins(judgement),
        }
        rows.append(row)
    return {
        "serving": pointer.chain()[0],
        "since": pointer.since,
        "pinned": pointer.pinned,
        "models": rows,
        "history": msgspec.to_builtins(registry.history()),
    }


def _row(each: dict[str, Any]) -> tuple[Any, ...]:
    word = "broken" if each["broken"] else "serves" if each["serves"] else ""
    word += ", pinned" if each["pinned"] else ""
    told = each["judgement"]
    if told is None:
        return (each["model"], word, "", "", "", *("" for _ in _FIGURES), "", "not judged")
    new, old = told["candidate_figures"], told["incumbent_figures"]
    figures = (f"{_spelt(new.get(name))} ({_spelt(old.get(name))})" for name in _FIGURES)
    beside, why = told["incumbent"] or "the rhythm", each["broken"] or told["why"]
    return (each["model"], word, told["at"], told["span"][1], told["visits"], *figures, beside, why)


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
    found = asyncio.run(_compare(settings(config), (first, second)))
    if json:
        print_json(found)
        return
    rows = [(n, *(_spelt(found[n][name]) for name in _FIGURES)) for n in ("A", "B")]
    span = " to ".join(found["judged"])
    print_table(f"{found['visits']} visits, {span}", ("", *_FIGURES), rows)
    typer.echo(f"A ({first}) beside B ({second}): {found['why']}")


async def _compare(config: Config, versions: tuple[int, int]) -> dict[str, Any]:
    from salticus.crawl.contest import verdict
    from salticus.crawl.opening import stored
    from salticus.crawl.training import compare

    terms = _terms(config)
    async with stored(config) as store:
        found, when = await compare(store, _registry(config), versions, terms)
    better, why = verdict(found, terms.least)
    return {
        "A": {"model": versions[0], **found.figures(0)},
        "B": {"model": versions[1], **found.figures(1)},
        "judged": [f"{at:%Y-%m-%dT%H:%M:%SZ}" for at in (when.start, when.end)],
        "visits": len(found.changed),
        "better": better,
        "why": why,
    }


def models_pin(version: _Version, config: ConfigFile = DEFAULT, json: Json = False) -> None:
    """Let a model serve, whatever is trained later; one that was broken gets another chance."""
    loaded = settings(config)
    _registry(loaded).pin(version, _now(loaded))
    _tell(loaded, json)


def models_unpin(config: ConfigFile = DEFAULT, json: Json = False) -> None:
    """Let better models take over again."""
    loaded = settings(config)
    _registry(loaded).unpin(_now(loaded))
    _tell(loaded, json)


def models_roll_back(config: ConfigFile = DEFAULT, json: Json = False) -> None:
    """Let the model serve that served before, or none."""
    loaded = settings(config)
    _registry(loaded).roll_back(_now(loaded))
    _tell(loaded, json)


def _now(config: Config) -> Any:
    from salticus.crawl.opening import clock_of

    return clock_of(config).now()


def _tell(config: Config, json: bool) -> None:
    pointer = _registry(config).pointer()
    found = {"serving": pointer.chain()[0], "since": pointer.since, "pinned": pointer.pinned}
    if json:
        print_json(found)
        return
    name = "the rhythm alone" if found["serving"] == NONE else f"model {found['serving']}"
    print_facts(f"{name} serves from the next tick on", {"pinned": found["pinned"]})
