"""What visits to sources are worth at a visit price."""

from __future__ import annotations

import math

import numpy as np

from salticus.types import Floats, Harvest, Ints, Prospects


def source_worth(
    prospects: Prospects, rows: Ints, ages: Floats, price: float
) -> tuple[Floats, Floats]:
    """V of a visit to each source so many days after the last, in clicks, and how many pages it
    would find that are worth the price.

    A visit gains G(τ) = n(τ)·max(R(τ) − Λ, 0): n pages are found, each worth R clicks and a visit
    of its own. To come every τ days is best where (G − Λ)/τ is greatest, that is when
    V = G(τ) − τG'(τ) reaches the price. If links appear at the rate λ and stay, and interest in
    their pages decays from P at the rate m, this is λP/m·g(mτ) at the price 0 (ALGORITHMS §0).
    """
    harvest, own = prospects.harvest, prospects.row[rows]
    finds, each = harvest.at(own, ages)
    slope = _gain(harvest, own, ages * math.sqrt(2.0), price)
    slope -= _gain(harvest, own, ages / math.sqrt(2.0), price)
    worth = finds * np.maximum(each - price, 0.0) - slope / math.log(2.0)
    return np.maximum(worth, 0.0), np.where(each > price, finds, 0.0)


def _gain(harvest: Harvest, rows: Ints, ages: Floats, price: float) -> Floats:
    finds, each = harvest.at(rows, ages)
    return np.asarray(finds * np.maximum(each - price, 0.0))


def page_worth(harvest: Harvest) -> float:
    """Clicks on a new page, on average over all that visits at the shortest gap find."""
    finds, each = harvest.finds[:, 0], harvest.each[:, 0]
    return float(finds @ each / finds.sum()) if finds.any() else 0.0
