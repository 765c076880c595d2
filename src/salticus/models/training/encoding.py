"""Metadata as numbers: what the pages that share a code did, never what the page itself did."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from salticus.models.trees import Encoding
from salticus.types import Bools, Examples, Floats, Floats32, Ints, Ints32, Metadata
from salticus.types.coins import coins

_LEAST = 1e-6  # a rate of nothing or all has no log-odds


@dataclass(frozen=True, slots=True)
class Totals:
    """Over pages: weight of the examples at risk, and of those with the event; × horizons."""

    trials: Floats
    hits: Floats

    def of(self, pages: Bools) -> Totals:
        """As if the other pages had no examples."""
        return Totals(self.trials * pages[:, None], self.hits * pages[:, None])

    def mean(self) -> Floats:
        """The share with the event, of each horizon; a half if there is no example."""
        trials, hits = self.trials.sum(axis=0), self.hits.sum(axis=0)
        return np.where(trials > 0, hits / np.maximum(trials, 1e-300), 0.5)


def totals(examples: Examples, pages: int) -> Totals:
    """Sums over the examples of each of so many pages."""
    page, label = examples.inputs.page, examples.label
    trials = [_sums(page, examples.weight * (column >= 0), pages) for column in label.T]
    hits = [_sums(page, examples.weight * (column == 1), pages) for column in label.T]
    return Totals(np.stack(trials, axis=1), np.stack(hits, axis=1))


def _sums(at: Ints | Ints32, weight: Floats, size: int) -> Floats:
    return np.bincount(at, weights=weight, minlength=size).astype(np.float64)


def encode(
    sums: Totals, metadata: Metadata, names: tuple[str, ...], *, smoothing: float
) -> Encoding:
    """The log-odds of each code and word: as if `smoothing` average pages at the mean rate had it.

    Examples of one page are alike, so that pages are what is counted. A code of which there is no
    example gets the mean. "title" among the names stands for the words.
    """
    fields = tuple(name for name in names if name != "title")
    sizes = tuple(metadata.sizes[metadata.fields.index(field)] for field in fields)
    columns = [metadata.codes[:, metadata.fields.index(field)] for field in fields]
    horizons = range(sums.hits.shape[1])
    tables, words = [], []
    for horizon in horizons:
        rate = _Rate(sums.trials[:, horizon], sums.hits[:, horizon], smoothing)
        codes = [rate.of(c[:, None], n) for c, n in zip(columns, sizes, strict=True)]
        tables.append(np.concatenate([np.empty(0), *codes]))
        words.append(rate.of(metadata.words, metadata.buckets if "title" in names else 0))
    return Encoding(fields, sizes, _narrow(tables), _narrow(words))


def _narrow(rows: list[Floats]) -> Floats32:
    return np.stack(rows).astype(np.float32)


class _Rate:
    """Log-odds by code for one horizon."""

    def __init__(self, trials: Floats, hits: Floats, smoothing: float) -> None:
        self.trials, self.hits = trials, hits
        pages = max(1, np.count_nonzero(trials))
        self.prior = smoothing * trials.sum() / pages
        self.mean = hits.sum() / trials.sum() if trials.sum() > 0 else 0.5

    def of(self, codes: Ints32, size: int) -> Floats:
        """Of each of so many codes; `codes` are pages × any number, -1 = none."""
        if not size:
            return np.empty(0)
        page, at = np.nonzero(codes >= 0)
        code = codes[page, at]
        trials, hits = (_sums(code, column[page], size) for column in (self.trials, self.hits))
        weight = trials + self.prior
        shrunk = (hits + self.mean * self.prior) / np.where(weight > 0, weight, 1.0)
        rate = np.clip(np.where(weight > 0, shrunk, self.mean), _LEAST, 1 - _LEAST)
        return np.asarray(np.log(rate / (1 - rate)))


def out_of_fold(
    sums: Totals, metadata: Metadata, names: tuple[str, ...], *, smoothing: float, folds: int = 5
) -> list[Floats32]:
    """Of each horizon: pages × columns, each page encoded from pages of other folds alone.

    The fold of a page is a hash of it. Law: a page's own labels do not move its row.
    """
    fold = (coins(0, np.arange(len(metadata)), folds) * folds).astype(np.int64)
    width = len(encode(sums, metadata, names, smoothing=smoothing).names)
    out = [np.empty((len(metadata), width), np.float32) for _ in range(sums.hits.shape[1])]
    for one in range(folds):
        others = encode(sums.of(fold != one), metadata, names, smoothing=smoothing)
        for horizon, columns in enumerate(out):
            columns[fold == one] = others.columns(metadata.take(fold == one), horizon)
    return out
