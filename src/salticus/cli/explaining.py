"""Commands that explain: how fresh the copy is, and why pages are visited when they are."""

from __future__ import annotations

from datetime import timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Any

import typer

from salticus.cli import options, output
from salticus.cli.options import REQUIRED, arg, ask, opt, span

if TYPE_CHECKING:
    from salticus.views.fresh import Fresh
    from salticus.views.freshness import Freshness
    from salticus.views.panel import PanelView
    from salticus.views.reasons import Why


def fresh(
    urls: list[str] = arg(REQUIRED, "URLs of pages.", metavar="URL..."),
    config: Path = options.CONFIG,
    json: bool = options.JSON,
) -> None:
    """Tell how likely the copies of pages are still right."""
    from salticus.views import fresh

    found = ask(config, fresh.fresh, urls, foresee=True)
    known = [page for page in found if isinstance(page, fresh.Fresh)]
    if json:
        output.json(found)
    elif known:
        header = ("url", "still right", "state", "last visit", "last answer", "next visit")
        output.table("copies", header, map(_row, known))
    wrong = [page for page in found if isinstance(page, fresh.Unknown)]
    for page in wrong:
        typer.echo(f"salticus: {page.error}", err=True)
    if wrong:
        raise typer.Exit(2)


def _row(page: Fresh) -> tuple[Any, ...]:
    due = "none in sight" if page.next_visit is None else page.next_visit.due
    last = (page.last_visit or "never", page.last_answer or "never")
    return (page.url, f"{page.fresh:.1%}", page.state, *last, due)


def why(url: str = options.URL, config: Path = options.CONFIG, json: bool = options.JSON) -> None:
    """Explain when a page is visited next, and why then."""
    from salticus.views.reasons import in_words
    from salticus.views.why import why

    def people(told: Why) -> None:
        typer.echo(told.url)
        for heading, text in in_words(told):
            typer.echo(f"  {heading}")
            output.wrapped(text, "    ")

    output.answer(ask(config, why, url), json, people)


def freshness(
    window: str = options.WINDOW,
    plot: Path | None = opt(None, "Write a chart of all days to this .html, .svg or .png."),
    config: Path = options.CONFIG,
    json: bool = options.JSON,
) -> None:
    """Estimate how fresh the copy is, without bias, from exploring visits.

    By pages and by clicks, each with an interval that holds in 95 % of the cases. With
    `freshness_target` in the settings, also the budget that it needs.
    """
    from salticus.views import freshness
    from salticus.views.times import plain

    length = span("window", window) or timedelta(days=1)
    told = ask(config, freshness.freshness, length)
    if plot is not None:
        from salticus.charts.freshness import write_chart

        past = ask(config, freshness.freshness_over_time, length)
        write_chart(plain(past), plot)
    output.answer(told, json, _print_freshness)


def _print_freshness(told: Freshness) -> None:
    from salticus.views.times import when

    rows = [
        (f"by {name}", *map(_percent, (share.freshness, share.low, share.high, share.model)))
        for name, share in (("pages", told.pages), ("clicks", told.clicks))
    ]
    title = f"freshness from {when(told.start)} to {when(told.end)}"
    output.table(title, ("", "estimate", "95 % from", "to", "predictor alone"), rows)
    rest = ("exploring visits", "of them failed", "share of the visits", "found over foretold")
    facts = output.facts_of(told)
    output.facts("it rests on", {name: facts[name] for name in rest})
    if told.pages.half_width is None:
        none = "no exploring visit in this time"
        output.wrapped(f"{none}; is `explore` above 0, and the crawl running?")
    if "target" in facts:
        output.wrapped(facts["target"].words())


def _percent(share: float | None) -> str:
    return "-" if share is None else f"{100 * share:.1f} %"


def insta(
    window: str = options.WINDOW, config: Path = options.CONFIG, json: bool = options.JSON
) -> None:
    """Tell what became of clicks, and what the visits that the gate saved have found elsewhere."""
    from salticus.views.schedulers import insta
    from salticus.views.times import when

    length = span("window", window) or timedelta(days=1)
    told = ask(config, insta, length)
    span_ = f"from {when(told.start)} to {when(told.end)}"
    output.answer(told, json, lambda _: output.facts(span_, output.facts_of(told, "from", "to")))


def arms(config: Path = options.CONFIG, json: bool = options.JSON) -> None:
    """Show the arms of a bandit: how likely each is drawn, and what its steps earned."""
    from salticus.views.schedulers import SHOWN, arms

    told = ask(config, arms)
    if json:
        output.json(told)
        return
    output.table(f"arms of {told.policy}", *output.table_of(told.arms))
    steps = [(step.at, step.arm, step.reward) for step in told.steps[-SHOWN:]]
    output.table("last steps", ("at", "arm", "reward"), steps)


def panel_plan(
    pages: int = opt(REQUIRED, "So many pages.", min=1),
    every: str = opt("4h", "How often each is visited, e.g. 4h."),
    days: float | None = opt(None, "End by itself after this.", min=0.0),
    config: Path = options.CONFIG,
    json: bool = options.JSON,
) -> None:
    """Choose pages to be watched closely, on a budget of their own.

    Half are drawn evenly, half by clicks, from small and large hosts.
    """
    from salticus.views.panel import plan_panel

    often = span("every", every) or timedelta(hours=4)
    length = None if days is None else timedelta(days=days)
    told = ask(config, plan_panel, pages, often, length)
    output.answer(told, json, _print_panel)


def panel_(context: typer.Context) -> None:
    """Watch a sample of pages closely; alone, show what was found."""
    if context.invoked_subcommand is None:
        panel_show(options.SETTINGS, json=False)


def panel_show(config: Path = options.CONFIG, json: bool = options.JSON) -> None:
    """Show the panel and what it found."""
    from salticus.views.panel import panel

    output.answer(ask(config, panel), json, _print_panel)


def panel_end(config: Path = options.CONFIG, json: bool = options.JSON) -> None:
    """End the panel; what it found stays."""
    from salticus.views.panel import end_panel

    output.answer(ask(config, end_panel), json, _print_panel)


def _print_panel(told: PanelView) -> None:
    facts = output.facts_of(told)
    strata = facts.pop("strata", [])
    for name in {"pages fresh", "clicks fresh"} & facts.keys():
        facts[name] = facts[name].words()
    output.facts("panel", facts)
    if strata:
        output.table("strata", *output.table_of(strata))
