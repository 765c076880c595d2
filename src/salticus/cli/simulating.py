"""Commands that tell what policies there are, and replay a log with them."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer

from salticus.cli import output
from salticus.cli.options import (
    Charts,
    Json,
    JsonFile,
    LogFolder,
    Seed,
    Texts,
    arg,
    day,
    flag,
    from_options,
    opt,
    span,
)
from salticus.config import Budget, Share
from salticus.errors import ConfigError

if TYPE_CHECKING:
    from salticus.lab.simulate.stage import InstaSettings


def policies(
    name: Annotated[str | None, arg("A policy, or file.py:Class.")] = None,
    plot: Annotated[Path | None, opt("Draw its visits to this HTML, SVG or PNG file.")] = None,
    json: Json = False,
) -> None:
    """List the policies, or describe one and draw what it does."""
    from salticus.views.schedulers import policies

    if name is None and plot is not None:
        raise ConfigError("--plot draws one policy; name it")
    if name is None:
        every = policies()
        rows = [(one.name, one.summary) for one in every]
        output.answer(every, json, lambda _: output.columns(("policy", "what it does"), rows))
        return
    about = _about(name, plot)
    where = "" if about["where"] == about["name"] else f" ({about['where']})"
    words = [f"{about['name']}{where}", about["summary"], about["text"]]
    output.answer(about, json, "\n\n".join(filter(None, words)))


def _about(name: str, plot: Path | None) -> dict[str, Any]:
    from salticus.views.schedulers import policy

    about = output.facts_of(policy(name))
    if plot is None:
        return about
    from salticus.charts.sheet import checked
    from salticus.charts.spending import write_habits
    from salticus.lab.simulate.spending import habits

    checked(plot)
    with output.steps() as told:
        told(f"letting {name} settle")
        found = [asdict(habit) for habit in habits(name)]
    write_habits(about, found, plot)
    return {**about, "habits": found}


def simulate(
    log: LogFolder,
    policy: Annotated[
        Texts, opt("A name, name@spacing, or file.py:Class; may be repeated. [default: the peers]")
    ] = None,
    budget: Annotated[
        Texts, opt("Visits: 10%, 0.1 or 5000; may be repeated. [default: 10%]")
    ] = None,
    start: Annotated[str | None, opt("First day of the history.")] = None,
    pages: Annotated[int | None, opt("A random sample of so many.", min=1)] = None,
    tick: Annotated[
        str | None, opt("Planning step. [default: 2h, or the log's resolution]")
    ] = None,
    spacing: Annotated[str, opt("even, coin, or file.py:Class.")] = "even",
    predictor: Annotated[str, opt("A name, or file.py:Class.")] = "rhythm",
    estimates: Annotated[
        str, opt("Change rates from: history (the predictor's), fitted, oracle, or a MODEL.")
    ] = "history",
    history: Annotated[str | None, opt("Observed only. [default: 60d]")] = None,
    warmup: Annotated[str | None, opt("Crawled, not scored. [default: 15d]")] = None,
    days: Annotated[int | None, opt("Days scored. [default: 30]", min=1)] = None,
    observe: Annotated[
        Literal["full", "partial"], opt("History: every step, or the log's visits.")
    ] = "full",
    frozen: Annotated[bool, opt("Learn no estimates after the history.", "--frozen")] = False,
    demand: Annotated[
        str | None, opt("file, uniform or zipf:1.1. [default: file if there is one]")
    ] = None,
    explore: Annotated[
        str, opt("Share of the visits that go to pages drawn by a coin: 5%.")
    ] = "0%",
    insta: Annotated[
        str | None, opt("Let clicks bring visits at once; the share of the visits set aside.")
    ] = None,
    gate_share: Annotated[
        str, opt("With --insta: the share of the clicks that the gate lets through.")
    ] = "20%",
    delay: Annotated[str | None, opt("Between two visits to a host: 30s. [default: none]")] = None,
    rendered: Annotated[
        str, opt("Share of the pages, drawn at random, that cost 5 visits.")
    ] = "0%",
    requests: Annotated[
        bool, opt("Clicks alone bring visits; budgets are shares.", "--requests")
    ] = False,
    gate: Annotated[
        Texts,
        opt(
            "instacrawl, threshold, uniform, or file.py:Class; with --requests it may be "
            "repeated. [default: instacrawl with --insta, uniform with --requests]"
        ),
    ] = None,
    runs: Annotated[int | None, opt("Each with its own chance.", min=1)] = None,
    seed: Seed = 0,
    json: JsonFile = None,
    plot: Charts = None,
) -> None:
    """Replay a log with several policies and budgets: how fresh would each have kept the copy?"""
    from salticus.charts.freshness import (
        contest_table,
        requests_table,
        write_contest,
        write_requests,
    )
    from salticus.exchange.folder import Log
    from salticus.lab.simulate import contest
    from salticus.lab.simulate.stage import SimulationSettings, usual_tick

    source = Log(log)
    rules = from_options(
        SimulationSettings,
        locals(),
        start=day("start", start),
        tick=span("tick", tick) or usual_tick(source),
        history=span("history", history),
        warmup=span("warmup", warmup),
        explore=float(flag("explore", Share.parse, explore)),
        insta=_insta(insta, gate, gate_share),
        delay=span("delay", delay),
        rendered=float(flag("rendered", Share.parse, rendered)),
    )
    budgets = budget or ["10%"]
    if requests and insta is not None:
        raise typer.BadParameter("--insta: leave out --requests, which has no policy beside it")
    if not requests and gate and insta is None:
        raise typer.BadParameter("--gate: gates decide on clicks; add --insta or --requests")
    with output.steps() as told:
        if requests:
            shares = [flag("budget", Share.parse, text) for text in budgets]
            report = contest.replay_requests(
                source, rules, shares, gate or [contest.BASELINE], told
            )
        else:
            visits = [flag("budget", Budget.parse, text) for text in budgets]
            policies = policy or contest.usual_policies(source)
            competing = policies if plot is None else contest.in_company(policies)
            report = contest.simulate(source, rules, competing, visits, told).report(policies)
    table = requests_table if requests else contest_table
    if plot is not None:
        (write_requests if requests else write_contest)(report, plot)
    if output.write_json(report, json):
        output.table(report["log"]["name"], *table(report))
        for note in report["notes"]:
            typer.echo(f"note: {note}")


def _insta(share: str | None, gates: list[str] | None, gate_share: str) -> InstaSettings | None:
    from salticus.lab.simulate.stage import InstaSettings

    if share is None:
        return None
    if len(gates or ()) > 1:
        raise typer.BadParameter("--gate: --insta takes one")
    gate = (gates or ["instacrawl"])[0]
    parts = flag("insta", Share.parse, share), flag("gate-share", Share.parse, gate_share)
    return InstaSettings(float(parts[0]), gate, float(parts[1]))
