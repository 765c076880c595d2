"""Commands that replay a log."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer

from salticus.cli.options import day, flag, span
from salticus.cli.output import print_table, steps, write_json
from salticus.config import Budget, Share

if TYPE_CHECKING:
    from salticus.exchange.folder import Log
    from salticus.lab.simulate import SimulationSettings
    from salticus.lab.simulate.stage import InstaSettings

_Log = Annotated[Path, typer.Argument(metavar="LOG", help="A log: a folder of Parquet files.")]
_Policies = Annotated[
    list[str] | None,
    typer.Option(
        "--policy",
        help="A name, name@spacing, or file.py:Class; may be repeated. [default: the peers]",
    ),
]
_Budgets = Annotated[
    list[str] | None,
    typer.Option("--budget", help="Visits: 10%, 0.1 or 5000; may be repeated. [default: 10%]"),
]
_Out = Annotated[Path | None, typer.Option("--json", help="Write the result as JSON (- = print).")]


def simulate(
    log: _Log,
    policy: _Policies = None,
    budget: _Budgets = None,
    start: Annotated[str | None, typer.Option(help="First day of the history.")] = None,
    pages: Annotated[int | None, typer.Option(min=1, help="A random sample of so many.")] = None,
    tick: Annotated[
        str | None, typer.Option(help="Planning step. [default: 2h, or the log's resolution]")
    ] = None,
    spacing: Annotated[str, typer.Option(help="even, coin, or file.py:Class.")] = "even",
    predictor: Annotated[str, typer.Option(help="A name, or file.py:Class.")] = "rhythm",
    estimates: Annotated[
        str,
        typer.Option(
            help="Change rates from: history (the predictor's), fitted, oracle, or a MODEL."
        ),
    ] = "history",
    history: Annotated[str | None, typer.Option(help="Observed only. [default: 60d]")] = None,
    warmup: Annotated[str | None, typer.Option(help="Crawled, not scored. [default: 15d]")] = None,
    days: Annotated[int | None, typer.Option(min=1, help="Days scored. [default: 30]")] = None,
    observe: Annotated[
        Literal["full", "partial"], typer.Option(help="History: every step, or the log's visits.")
    ] = "full",
    frozen: Annotated[
        bool, typer.Option("--frozen", help="Learn no estimates after the history.")
    ] = False,
    demand: Annotated[
        str | None, typer.Option(help="file, uniform or zipf:1.1. [default: file if there is one]")
    ] = None,
    explore: Annotated[
        str, typer.Option(help="Share of the visits that go to pages drawn by a coin: 5%.")
    ] = "0%",
    insta: Annotated[
        str | None,
        typer.Option(help="Let clicks bring visits at once; the share of the visits set aside."),
    ] = None,
    gate_share: Annotated[
        str, typer.Option(help="With --insta: the share of the clicks that the gate lets through.")
    ] = "20%",
    delay: Annotated[
        str | None, typer.Option(help="Between two visits to a host: 30s. [default: none]")
    ] = None,
    rendered: Annotated[
        str, typer.Option(help="Share of the pages, drawn at random, that cost 5 visits.")
    ] = "0%",
    requests: Annotated[
        bool, typer.Option("--requests", help="Replay InstaCrawl requests; budgets are shares.")
    ] = False,
    gate: Annotated[
        list[str] | None,
        typer.Option(
            help="instacrawl, threshold, uniform, or file.py:Class; with --requests it may be "
            "repeated. [default: instacrawl with --insta, uniform with --requests]"
        ),
    ] = None,
    runs: Annotated[int | None, typer.Option(min=1, help="Each with its own chance.")] = None,
    seed: Annotated[int, typer.Option(help="Fixes every chance.")] = 0,
    json: _Out = None,
    plot: Annotated[Path | None, typer.Option(help="Write charts to this HTML file.")] = None,
) -> None:
    """Replay a log with several policies and budgets: how fresh would each have kept the copy?"""
    from salticus.exchange.folder import Log
    from salticus.lab.simulate.contest import usual_policies
    from salticus.lab.simulate.stage import SimulationSettings, usual_tick

    source = Log(log)
    rules = SimulationSettings(
        start=day("start", start),
        tick=span("tick", tick) or usual_tick(source),
        history=span("history", history),
        warmup=span("warmup", warmup),
        days=days,
        pages=pages,
        spacing=spacing,
        predictor=predictor,
        estimates=estimates,
        observe=observe,
        frozen=frozen,
        explore=float(flag("explore", Share.parse, explore)),
        insta=_insta(insta, gate, gate_share),
        delay=span("delay", delay),
        rendered=float(flag("rendered", Share.parse, rendered)),
        demand=demand,
        runs=runs,
        seed=seed,
    )
    budgets = budget or ["10%"]
    if requests and insta is not None:
        raise typer.BadParameter("--insta: leave out --requests, which has no policy beside it")
    if requests:
        report = _requests(source, rules, budgets, gate)
    elif gate and insta is None:
        raise typer.BadParameter("--gate: gates decide on clicks; add --insta or --requests")
    else:
        policies = policy or usual_policies(source)
        report = _contest(source, rules, budgets, policies, plotted=plot is not None)
    _show(report, json, plot, requests=requests)


def _insta(share: str | None, gates: list[str] | None, gate_share: str) -> InstaSettings | None:
    from salticus.lab.simulate.stage import InstaSettings

    if share is None:
        return None
    if len(gates or ()) > 1:
        raise typer.BadParameter("--gate: --insta takes one")
    gate = (gates or ["instacrawl"])[0]
    parts = flag("insta", Share.parse, share), flag("gate-share", Share.parse, gate_share)
    return InstaSettings(float(parts[0]), gate, float(parts[1]))


def _contest(
    log: Log,
    rules: SimulationSettings,
    budgets: list[str],
    policies: Sequence[str],
    *,
    plotted: bool,
) -> dict[str, Any]:
    from salticus.lab.simulate.contest import in_company, simulate

    visits = [flag("budget", Budget.parse, text) for text in budgets]
    competing = in_company(policies) if plotted else policies
    with steps() as told:
        return simulate(log, rules, competing, visits, told).report(policies)


def _requests(
    log: Log, rules: SimulationSettings, budgets: list[str], gates: list[str] | None
) -> dict[str, Any]:
    from salticus.lab.simulate.insta import BASELINE, replay_requests

    shares = [flag("budget", Share.parse, text) for text in budgets]
    with steps() as told:
        return replay_requests(log, rules, shares, gates or [BASELINE], told)


def _show(report: dict[str, Any], out: Path | None, plot: Path | None, *, requests: bool) -> None:
    from salticus.charts.contest import table_of, write_contest
    from salticus.charts.requests import requests_table, write_requests

    if plot is not None:
        (write_requests if requests else write_contest)(report, plot)
    if out is not None:
        write_json(report, out)
    if out is None or str(out) != "-":
        header, rows = (requests_table if requests else table_of)(report)
        print_table(report["log"]["name"], header, rows)
        for note in report["notes"]:
            typer.echo(f"note: {note}")
