"""The published tables of predictions, as data: AUC and its standard deviation over 20 subsets."""

from __future__ import annotations

from typing import NamedTuple


class Figure(NamedTuple):
    """A published AUC and its standard deviation."""

    auc: float
    sd: float


def _figures(*thousandths: int) -> tuple[Figure, ...]:
    """Pairs of AUC and standard deviation, each told in thousandths."""
    pairs = zip(thousandths[::2], thousandths[1::2], strict=True)
    return tuple(Figure(auc / 1000, sd / 1000) for auc, sd in pairs)


_HAN2019 = {  # the name there; Table 2 (seen), Table 3 (unseen), each: partial, full observability
    "category_day": ("Frequency (category, 1 day)", 560, 3, 573, 4, 554, 2, 567, 2),
    "category_week": ("Frequency (category, 1 week)", 577, 4, 584, 4, 572, 2, 579, 2),
    "category_month": ("Frequency (category, 1 month)", 570, 3, 583, 3, 565, 2, 579, 2),
    "category_recent": ("Most recent (category)", 569, 4, 582, 3, 564, 2, 578, 2),
    "page_day": ("Frequency (offer, 1 day)", 642, 2, 721, 3, 642, 2, 720, 3),
    "page_week": ("Frequency (offer, 1 week)", 769, 3, 815, 3, 766, 3, 817, 3),
    "page_month": ("Frequency (offer, 1 month)", 791, 3, 832, 3, 788, 3, 833, 3),
    "page_recent": ("Most recent (offer)", 789, 3, 827, 3, 787, 3, 828, 3),
    "combined": ("Frequency (combined)", 791, 4, 847, 3, 797, 3, 849, 3),
    "dnn_metadata": ("DNN (metadata)", 842, 5, 842, 5, 803, 3, 803, 3),  # one figure: no history
    "dnn_both": ("DNN (metadata + frequency)", 875, 2, 883, 3, 854, 3, 862, 3),
}
NAMES = {model: name for model, (name, *_) in _HAN2019.items()}
SEEN = {model: _figures(*row[:4]) for model, (_, *row) in _HAN2019.items()}
UNSEEN = {model: _figures(*row[4:]) for model, (_, *row) in _HAN2019.items()}

_HAN2020 = {  # Table 4: metadata, history, both
    "change": _figures(860, 8, 833, 11, 882, 7),
    "click": _figures(796, 21, 948, 6, 949, 6),
    "impression": _figures(736, 8, 896, 3, 895, 3),
}
TASKS = {
    task: dict(zip(("metadata", "history", "both"), row, strict=True))
    for task, row in _HAN2020.items()
}


def published(model: str, group: str, observe: str) -> Figure | None:
    """What Han 2019 reports of a model; None if it has no such row.

    >>> published("dnn_both", "unseen", "full")
    Figure(auc=0.862, sd=0.003)
    """
    found = (SEEN if group == "seen" else UNSEEN).get(model)
    return None if found is None else found[observe == "full"]
