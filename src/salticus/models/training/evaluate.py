"""A model on rows that it has not seen: figures overall, and by group of pages."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np

from salticus.features.groups import groups_of
from salticus.features.metadata import Vocabulary
from salticus.models.model import Calibrated
from salticus.models.training import metrics
from salticus.types import Bools, Bytes, Examples, Floats, Ints, Metadata
from salticus.types.arrays import Columns
from salticus.types.frames import pl

KNOWN = (0, 1, 2, 5, 10, 30)
"""Where the groups by number of known observations begin."""

MERCHANTS = 20  # the largest, which are reported one by one


@dataclass(frozen=True, slots=True)
class Scored(Columns):
    """Rows of which both is known: what a model said, and what came.

    `probability` is of the event within each edge, `label` is of each stretch, as in `Examples`.
    """

    page: Ints
    hour: Ints
    probability: Floats
    label: Bytes
    weight: Floats
    seen: Bools
    known: Ints


@dataclass(frozen=True, slots=True)
class Shops:
    """Over pages: the merchant of each (-1 = unknown); and which merchants a model knows."""

    names: Sequence[str]
    of_page: Ints
    known: Bools


def shops_of(pages: pl.DataFrame, metadata: Metadata, vocabulary: Vocabulary) -> Shops | None:
    """The merchants of pages, if they are told; a model knows those that its vocabulary numbers."""
    if "merchant" not in pages.columns or "merchant" not in metadata.fields:
        return None
    merchant = groups_of(pages).merchant
    names = pages["merchant"].drop_nulls().cast(str).unique().sort().to_list()
    code = metadata.codes[:, metadata.fields.index("merchant")]
    numbered = (merchant >= 0) & (code >= 1) & (code <= len(vocabulary.known["merchant"]))
    known = np.zeros(len(names), dtype=np.bool_)
    known[merchant[numbered]] = True
    return Shops(names, merchant, known) if names else None


def scored(model: Calibrated, parts: Iterable[Examples], metadata: Metadata) -> Scored:
    """What a model says of the rows of the uniform stratum, part by part."""
    found = []
    for rows in (part.take(part.uniform) for part in parts):
        asked, said = rows.inputs, model.probabilities(rows.inputs, metadata)
        row = asked.page, asked.hour, said, rows.label, rows.weight, rows.seen, rows.known
        found.append(row)
    if not found:
        raise ValueError("there is nothing to score")
    return Scored(*(np.concatenate(column) for column in zip(*found, strict=True)))


def evaluate(rows: Scored, edges: tuple[int, ...], shops: Shops | None = None) -> dict[str, Any]:
    """All figures, as JSON can hold them; None where rows of one kind are missing.

    `figures` has a row for each edge and group of rows: all, seen and unseen pages, pages by number
    of known observations, and by merchant. `stretches` judges the probability of each stretch among
    the rows still at risk, which is what a hazard says, if there is more than one. `reliability` is
    the table from which the calibration error is taken.
    """
    within = labels_within(rows.label)
    within[_too_late(rows)] = -1
    figures, tables = [], []
    for at, edge in enumerate(edges):
        known, said, came = within[:, at] >= 0, rows.probability[:, at], within[:, at] == 1
        for (by, name), among in groups(rows, shops):
            some = known & among
            found = figures_of(said[some], came[some], rows.weight[some])
            figures.append({"by": by, "group": name, "edge": edge, **found})
        table = metrics.reliability(said[known], came[known], rows.weight[known])
        tables += [{"edge": edge, **asdict(each)} for each in table]
    return {
        "rows": len(rows),
        "edges": list(edges),
        "figures": figures,
        "stretches": _stretches(rows, edges) if len(edges) > 1 else [],
        "reliability": tables,
    }


def labels_within(label: Bytes) -> Bytes:
    """From labels of stretches to labels of edges: did it happen up to here? -1 = not known.

    >>> labels_within(np.array([[0, 1, -1], [0, 0, -1]], dtype=np.int8)).tolist()
    [[0, 1, 1], [0, 0, -1]]
    """
    happened = np.logical_or.accumulate(label == 1, axis=1)
    quiet = np.logical_and.accumulate(label == 0, axis=1)
    return np.where(happened, 1, np.where(quiet, 0, -1)).astype(np.int8)


def _too_late(rows: Scored) -> Bools:
    """Rows × edges: too near to the end, where only events are known and would count too much."""
    last = np.where(rows.label >= 0, rows.hour[:, None], np.iinfo(np.int64).min).max(axis=0)
    return np.asarray(rows.hour[:, None] > last)


def hazards_of(probability: Floats) -> Floats:
    """Of each stretch: the probability of the event in it, if it did not come before.

    >>> hazards_of(np.array([[0.5, 0.75]])).tolist()
    [[0.5, 0.5]]
    """
    quiet = 1.0 - probability
    before = np.concatenate([np.ones((len(quiet), 1)), quiet[:, :-1]], axis=1)
    return np.asarray(1.0 - quiet / np.maximum(before, np.finfo(float).tiny))


def figures_of(said: Floats, came: Bools, weight: Floats) -> dict[str, Any]:
    """Every figure of some rows; None where it is not defined."""
    told, total = (said, came, weight), float(weight.sum())
    mean, deviation = metrics.subset_aucs(*told)
    found = {
        "share": float(weight @ came) / total if total else np.nan,
        "said": float(weight @ said) / total if total else np.nan,
        "auc": metrics.auc(*told),
        "auc_mean": mean,
        "auc_sd": deviation,
        "pr_auc": metrics.pr_auc(*told),
        "log_loss": metrics.log_loss(*told),
        "brier": metrics.brier(*told),
        "ece": metrics.calibration_error(metrics.reliability(*told)),
        "ece_width": metrics.calibration_error(metrics.reliability(*told, equal="width")),
    }
    known = {name: None if np.isnan(value) else value for name, value in found.items()}
    return {"rows": len(said), "events": int(np.count_nonzero(came)), **known}


def groups(rows: Scored, shops: Shops | None) -> Iterator[tuple[tuple[str, str], Bools]]:
    """(What rows are told apart by, group), and which rows are in it; no empty ones."""
    return ((name, among) for name, among in _groups(rows, shops) if among.any())


def _groups(rows: Scored, shops: Shops | None) -> Iterator[tuple[tuple[str, str], Bools]]:
    yield ("all", "all"), np.ones(len(rows), dtype=np.bool_)
    yield ("seen", "seen"), rows.seen
    yield ("seen", "unseen"), ~rows.seen
    for low, high in zip(KNOWN, (*KNOWN[1:], None), strict=True):
        above = rows.known >= low
        yield ("known", _spelt(low, high)), above if high is None else above & (rows.known < high)
    if shops is None:
        return
    merchant = shops.of_page[rows.page]
    known = merchant >= 0
    fresh = np.zeros(len(rows), dtype=np.bool_)
    fresh[known] = ~shops.known[merchant[known]]
    yield ("merchant", "(new to the model)"), fresh
    sizes = np.bincount(merchant[known], minlength=len(shops.names))
    for at in np.argsort(-sizes, kind="stable")[:MERCHANTS]:
        yield ("merchant", shops.names[at]), merchant == at


def _spelt(low: int, high: int | None) -> str:
    """The name of a range.

    >>> _spelt(0, 1), _spelt(2, 5), _spelt(30, None)
    ('0', '2 to 4', '30 and more')
    """
    if high is None:
        return f"{low} and more"
    return str(low) if high == low + 1 else f"{low} to {high - 1}"


def _stretches(rows: Scored, edges: tuple[int, ...]) -> list[dict[str, Any]]:
    found = []
    for at, hazard in enumerate(hazards_of(rows.probability).T):
        risk, came = rows.label[:, at] >= 0, rows.label[:, at] == 1
        start = edges[at - 1] if at else 0
        figures = figures_of(hazard[risk], came[risk], rows.weight[risk])
        found.append({"from": start, "to": edges[at], **figures})
    return found
