"""Commands that tell what policies there are, and replay a log with them."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, NamedTuple

import typer

from salticus.cli import options, output
from salticus.cli.options import Texts, arg, day, flag, from_options, opt, span
from salticus.config import Budget, ClickScore, CrawlRate, Share, duration
from salticus.errors import ConfigError

if TYPE_CHECKING:
    from salticus.exchange.folder import Log
    from salticus.lab.simulate.stage import InstaSettings, SimulationSettings


def policies(
    name: str | None = arg(None, "A policy, or file.py:Class."),
    plot: Path | None = opt(None, "Draw its visits to this HTML, SVG or PNG file."),
    json: bool = options.JSON,
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
    log: Path = options.LOG_FOLDER,
    policy: Texts = opt(
        None,
        "A name, name@spacing, name_h, _ml, _mix or _fit, or file.py:Class; may be repeated. "
        "[default: the peers]",
    ),
    budget: Texts = opt(None, "Visits: 10%, 0.1 or 5000; may be repeated. [default: 10%]"),
    rate: Texts = opt(
        None, "Find new pages, with 0.1/s visits or 10% of the links that appear; may be repeated."
    ),
    publishers: str | None = opt(
        None, "Find new pages beside: so many synthetic sources, or the links of this log."
    ),
    split: Texts = opt(
        None, "With --publishers: a fixed share of the visits for finding, 30%; may be repeated."
    ),
    credit: Literal["first", "all"] = opt(
        "first", "With --rate: who a page on several sources counts for."
    ),
    push: str = opt("1h", "With --rate: how often clicks arrive."),
    remember: int = opt(7, "With --rate: visits to each source that tell its link rate.", min=1),
    start: str | None = opt(None, "First day of the history."),
    pages: int | None = opt(None, "A random sample of so many.", min=1),
    tick: str | None = opt(None, "Planning step. [default: 2h, or the log's resolution]"),
    spacing: str = opt("even", "even, coin, or file.py:Class."),
    predictor: str = opt("rhythm", "A name, or file.py:Class."),
    estimates: str = opt(
        "history",
        "change=…,clicks=…,impressions=…: history, a predictor, fitted, oracle, a MODEL, or "
        "MODEL+history.",
    ),
    models: Path | None = opt(None, "Folder of the models that POLICY_ml, _mix and _fit use."),
    history: str | None = opt(None, "Observed only. [default: 60d]"),
    warmup: str | None = opt(None, "Crawled, not scored. [default: 15d]"),
    days: int | None = opt(None, "Days scored. [default: 30]", min=1),
    observe: Literal["own", "partial", "full", "logged"] = opt(
        "own",
        "Estimates rest on: the history and the policy's own visits (own; partial: of the history "
        "the log's visits), or the whole log up to yesterday (full; logged: its visits).",
    ),
    frozen: bool = opt(False, "Learn no estimates after the history.", "--frozen"),
    copies: Literal["fresh", "none", "logged"] | None = opt(
        None, "At the start. [default: fresh, or the log's with --observe partial]"
    ),
    demand: str | None = opt(None, "file, uniform or zipf:1.1. [default: file if there is one]"),
    explore: str = opt("0%", "Share of the visits that go to pages drawn at random: 5%."),
    insta: str | None = opt(
        None, "Let clicks bring visits at once; the share of the visits set aside."
    ),
    gate_share: str = opt(
        "20%", "With --insta: the share of the clicks that the gate lets through."
    ),
    score: str = opt(
        "stale",
        "By what a click is scored: how likely its copy is stale, or the page changes within 6h.",
    ),
    delay: str | None = opt(None, "Between two visits to a host: 30s. [default: none]"),
    rendered: str = opt("0%", "Share of the pages, drawn at random, that cost 5 visits."),
    requests: bool = opt(False, "Clicks alone bring visits; budgets are shares.", "--requests"),
    gate: Texts = opt(
        None,
        "instacrawl, threshold, uniform, or file.py:Class; with --requests it may be "
        "repeated. [default: instacrawl with --insta, uniform with --requests]",
    ),
    runs: int | None = opt(None, "Each with its own chance.", min=1),
    seed: int = options.SEED,
    json: Path | None = options.JSON_FILE,
    plot: Path | None = options.CHARTS,
) -> None:
    """Replay a log with several policies and budgets: how fresh would each have kept the copy?

    With --rate its links are replayed: how soon would each have found the new pages? With
    --publishers leap refreshes the log's pages and finds new ones on one budget.
    """
    if rate:
        if budget:
            raise typer.BadParameter(
                "--budget: leave it out, --rate says how many visits there are"
            )
        given = DiscoveryOptions(tick, warmup, days, seed, estimates, json, plot)
        _find(log, policy, rate, given, {"credit": credit, "push": push, "remember": remember})
        return
    from salticus.charts.freshness import (
        contest_table,
        requests_table,
        write_contest,
        write_requests,
    )
    from salticus.exchange.folder import Log
    from salticus.lab.simulate import contest
    from salticus.lab.simulate.gates import BASELINE, GateContest, replay_requests
    from salticus.lab.simulate.named import Estimates
    from salticus.lab.simulate.stage import SimulationSettings, usual_tick

    source, scored = Log(log), flag("score", ClickScore.parse, score)
    rules = from_options(
        SimulationSettings,
        locals(),
        start=day("start", start),
        tick=span("tick", tick) or usual_tick(source),
        estimates=flag("estimates", Estimates.parse, estimates),
        history=span("history", history),
        warmup=span("warmup", warmup),
        explore=float(flag("explore", Share.parse, explore)),
        insta=_insta(insta, gate, gate_share, scored),
        delay=span("delay", delay),
        rendered=float(flag("rendered", Share.parse, rendered)),
    )
    budgets = budget or ["10%"]
    _check(locals())
    if publishers is not None:
        _both(source, rules, publishers, budgets, (split, json))
        return
    with output.steps() as told:
        if requests:
            shares = [flag("budget", Share.parse, text) for text in budgets]
            among = GateContest(shares, gate or [BASELINE], scored.horizon)
            report = replay_requests(source, rules, among, told)
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


def _check(given: dict[str, Any]) -> None:
    """Refuse options that do not go together."""
    requests, insta = given["requests"], given["insta"] is not None
    beside = given["policy"] or requests or insta or given["plot"] is not None
    if given["publishers"] is not None and beside:
        raise typer.BadParameter(
            "--publishers: leave out --policy (it is leap), --requests, --insta and --plot"
        )
    if given["split"] and given["publishers"] is None:
        raise typer.BadParameter("--split: there is nothing to find; add --publishers")
    if requests and insta:
        raise typer.BadParameter("--insta: leave out --requests, which has no policy beside it")
    for name in ("gate", "score"):
        wanted = given[name] not in (None, [], "stale")
        if wanted and not (requests or insta):
            said = f"--{name}: gates decide on clicks; add --insta or --requests"
            raise typer.BadParameter(said)


class DiscoveryOptions(NamedTuple):
    """The options that count where new pages are to be found."""

    tick: str | None
    warmup: str | None
    days: int | None
    seed: int
    estimates: str
    json: Path | None
    plot: Path | None


def _find(
    log: Path, policies: Texts, rates: list[str], given: DiscoveryOptions, learnt: dict[str, Any]
) -> None:
    """Replay the links of a log."""
    from salticus.charts.finding import discovery_table, write_discovery
    from salticus.exchange.folder import Log
    from salticus.lab.simulate.discovery import (
        DISCOVERERS,
        DiscoverySettings,
        Learning,
        contest,
    )

    if given.estimates not in ("history", "oracle"):
        raise typer.BadParameter("--estimates: new pages are found by history or oracle")
    warmup, tick = span("warmup", given.warmup), span("tick", given.tick)
    oracle = given.estimates == "oracle"
    learning = Learning(
        push=flag("push", duration, learnt["push"]),
        history=learnt["remember"],
        shared=learnt["credit"] == "all",
    )
    rules = DiscoverySettings(warmup, given.days, tick, given.seed, oracle, learning)
    wanted = [flag("rate", CrawlRate.parse, text) for text in rates]
    with output.steps() as told:
        report = contest(Log(log), rules, policies or DISCOVERERS, wanted, told)
    if given.plot is not None:
        write_discovery(report, given.plot)
    if output.write_json(report, given.json):
        output.table(report["log"]["name"], *discovery_table(report))
        for note in report["notes"]:
            typer.echo(f"note: {note}")


def _both(
    log: Log,
    rules: SimulationSettings,
    publishers: str,
    budgets: list[str],
    wanted: tuple[Texts, Path | None],
) -> None:
    """Replay a log beside publishers, at one price and with the splits that are wanted."""
    from salticus.charts.joint import joint_table
    from salticus.lab.simulate.joint import contest

    splits, json = wanted
    visits = [flag("budget", Budget.parse, text) for text in budgets]
    shares = [float(flag("split", Share.parse, text)) for text in splits or ()]
    with output.steps() as told:
        report = contest(log, rules, publishers, (visits, [None, *shares]), told)
    if output.write_json(report, json):
        output.table(report["log"]["name"], *joint_table(report))


def _insta(
    share: str | None, gates: list[str] | None, gate_share: str, score: ClickScore
) -> InstaSettings | None:
    from salticus.lab.simulate.stage import InstaSettings

    if share is None:
        return None
    if len(gates or ()) > 1:
        raise typer.BadParameter("--gate: --insta takes one")
    gate = (gates or ["instacrawl"])[0]
    parts = flag("insta", Share.parse, share), flag("gate-share", Share.parse, gate_share)
    return InstaSettings(float(parts[0]), gate, float(parts[1]), score.horizon)


def study_one_price(
    budget: Texts = opt(
        None, "Visits per page and day; may be repeated. [default: 2, 5, 10, 20, 50 %]"
    ),
    split: Texts = opt(
        None, "Share of the visits for finding; may be repeated. [default: 10 % to 90 %]"
    ),
    offers: int = opt(2000, "Offers of each world.", min=1),
    sources: int = opt(60, "Sources of each world.", min=1),
    days: int = opt(14, "Days measured.", min=1),
    runs: int = opt(10, "Worlds, each with a seed of its own.", min=1),
    seed: int = options.SEED,
    json: Path | None = options.JSON_FILE,
) -> None:
    """Refresh offers and find new pages on one budget: one price beside the best fixed split."""
    from salticus.charts.joint import one_price_table
    from salticus.lab.studies.one_price import BUDGETS, SPLITS, OnePriceSettings, study

    settings = from_options(OnePriceSettings, locals())
    budgets = [float(flag("budget", Share.parse, text)) for text in budget or ()] or BUDGETS
    splits = [float(flag("split", Share.parse, text)) for text in split or ()] or SPLITS
    with output.steps() as told:
        report = study(settings, budgets, splits, told)
    if output.write_json(report, json):
        output.table("clicks served", *one_price_table(report))


def study_live(
    budget: float = opt(600.0, "Visits a day."),
    rival: str = opt("miniflux", "The policy beside leap."),
    days: int = opt(8, "World days that are crawled.", min=2),
    warmup: int = opt(3, "Of these, days that are not measured.", min=1),
    publishers: int = opt(6, "Publishers beside the shops.", min=1),
    shops: int = opt(3, "Shops.", min=1),
    offers: int = opt(300, "Offers of all shops.", min=1),
    tick: str = opt("30m", "Planning step."),
    speed: float = opt(7200.0, "World seconds a wall second, at most."),
    seed: int = options.SEED,
    json: Path | None = options.JSON_FILE,
) -> None:
    """Crawl shops and publishers over HTTP: are articles found sooner, and what does it cost?"""
    from salticus.charts.joint import live_table
    from salticus.lab.studies.live import LiveSettings, study
    from salticus.lab.worlds.mall.press import PressSettings

    if warmup >= days:
        raise typer.BadParameter("--warmup: nothing is left of --days to measure")
    press = PressSettings(publishers=publishers, dead=2)
    settings = from_options(LiveSettings, locals(), press=press)
    with output.steps() as told:
        report = study(settings, budget, rival, told)
    if output.write_json(report, json):
        output.table("shops and publishers", *live_table(report))
