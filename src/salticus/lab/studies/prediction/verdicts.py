"""Do the figures hold what was asked of them: each with what was compared."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import product
from typing import Any

GROUPS, SIGHTS = ("seen", "unseen"), ("partial", "full")
COLD_AUC = 0.75
COLD_SHARE = 0.9  # of the way from 0.5 to the ceiling
OFFER = ("page_day", "page_week", "page_month", "page_recent")

Row = dict[str, Any]


def verdict(check: str, holds: bool, figures: str) -> Row:
    """One line: what was checked, whether it holds, and the figures."""
    return {"check": check, "holds": bool(holds), "figures": figures}


def auc_of(
    rows: Iterable[Row], model: str, group: str, observe: str, name: str = "auc"
) -> float | None:
    """The mean AUC (or other figure) of a cell of the table; None if it is not there or known."""
    cell = (model, group, observe)
    known = (row[name] for row in rows if (row["model"], row["group"], row["observe"]) == cell)
    return next(known, None)


def better(rows: Sequence[Row], model: str, others: Sequence[str]) -> list[Row]:
    """Whether a model is above each of the others in all four cells of the table."""
    found = []
    for other in others:
        cells = [*product(GROUPS, SIGHTS)]
        pairs = [(auc_of(rows, model, *c), auc_of(rows, other, *c)) for c in cells]
        known = [(a, b) for a, b in pairs if a is not None and b is not None]
        if known:
            least = min(a - b for a, b in known)
            told = ", ".join(f"{a:.3f} to {b:.3f}" for a, b in known)
            whole = len(known) == len(cells)
            found.append(verdict(f"{model} above {other} everywhere", whole and least > 0, told))
    return found


def steadier(rows: Sequence[Row], model: str, others: Sequence[str] = (*OFFER, "combined")) -> Row:
    """Whether a model loses less from full to partial sight than each of the others."""
    told, holds = [], True
    for group in GROUPS:
        mine = drop(rows, model, group)
        theirs = {other: drop(rows, other, group) for other in others}
        known = {other: lost for other, lost in theirs.items() if lost is not None}
        if mine is None or not known:
            holds = False
            continue
        least = min(known, key=known.__getitem__)
        holds &= mine < known[least]
        told.append(f"{group}: {mine:.3f} to {known[least]:.3f} ({least})")
    return verdict(f"{model} loses less to partial sight", holds, "; ".join(told) or "not known")


def drop(rows: Sequence[Row], model: str, group: str) -> float | None:
    """AUC with full sight less that with partial sight."""
    full, partial = (auc_of(rows, model, group, observe) for observe in ("full", "partial"))
    return None if full is None or partial is None else full - partial


def warm_enough(name: str, auc: float | None, ceiling: float | None) -> Row:
    """Whether metadata alone rank well enough: 0.75, or nine tenths of what the world allows."""
    check = f"metadata alone, {name}: ≥ {COLD_AUC} or {COLD_SHARE:.0%} of the way to the ceiling"
    if auc is None:
        return verdict(check, False, "not known: no such rows, or all alike")
    told, way = f"{auc:.3f}", None
    if ceiling is not None and ceiling > 0.5:
        way = (auc - 0.5) / (ceiling - 0.5)
        told += f", ceiling {ceiling:.3f}: {way:.0%} of the way"
    return verdict(check, auc >= COLD_AUC or (way is not None and way >= COLD_SHARE), told)


def at_most(check: str, found: float | None, bound: float) -> Row:
    """Whether a figure stays within a bound."""
    told = "not known" if found is None else f"{found:.4f} ≤ {bound:g}"
    return verdict(check, found is not None and found <= bound, told)


def at_least(check: str, found: float | None, bound: float) -> Row:
    """Whether a figure reaches a bound."""
    told = "not known" if found is None else f"{found:.4f} ≥ {bound:g}"
    return verdict(check, found is not None and found >= bound, told)
