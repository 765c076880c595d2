"""The published tables of predictions, as data: AUC and its standard deviation over 20 subsets."""

from __future__ import annotations

from typing import NamedTuple


class Figure(NamedTuple):
    """A published AUC and its standard deviation."""

    auc: float
    sd: float


Both = tuple[Figure, Figure]  # partial, full observability

SEEN: dict[str, Both] = {  # Han 2019, Table 2
    "category_day": (Figure(0.560, 0.003), Figure(0.573, 0.004)),
    "category_week": (Figure(0.577, 0.004), Figure(0.584, 0.004)),
    "category_month": (Figure(0.570, 0.003), Figure(0.583, 0.003)),
    "category_recent": (Figure(0.569, 0.004), Figure(0.582, 0.003)),
    "page_day": (Figure(0.642, 0.002), Figure(0.721, 0.003)),
    "page_week": (Figure(0.769, 0.003), Figure(0.815, 0.003)),
    "page_month": (Figure(0.791, 0.003), Figure(0.832, 0.003)),
    "page_recent": (Figure(0.789, 0.003), Figure(0.827, 0.003)),
    "combined": (Figure(0.791, 0.004), Figure(0.847, 0.003)),
    "dnn_metadata": (Figure(0.842, 0.005), Figure(0.842, 0.005)),  # one figure: no history
    "dnn_both": (Figure(0.875, 0.002), Figure(0.883, 0.003)),
}
UNSEEN: dict[str, Both] = {  # Han 2019, Table 3
    "category_day": (Figure(0.554, 0.002), Figure(0.567, 0.002)),
    "category_week": (Figure(0.572, 0.002), Figure(0.579, 0.002)),
    "category_month": (Figure(0.565, 0.002), Figure(0.579, 0.002)),
    "category_recent": (Figure(0.564, 0.002), Figure(0.578, 0.002)),
    "page_day": (Figure(0.642, 0.002), Figure(0.720, 0.003)),
    "page_week": (Figure(0.766, 0.003), Figure(0.817, 0.003)),
    "page_month": (Figure(0.788, 0.003), Figure(0.833, 0.003)),
    "page_recent": (Figure(0.787, 0.003), Figure(0.828, 0.003)),
    "combined": (Figure(0.797, 0.003), Figure(0.849, 0.003)),
    "dnn_metadata": (Figure(0.803, 0.003), Figure(0.803, 0.003)),
    "dnn_both": (Figure(0.854, 0.003), Figure(0.862, 0.003)),
}

TASKS: dict[str, dict[str, Figure]] = {  # Han 2020, Table 4
    "change": {
        "metadata": Figure(0.860, 0.008),
        "history": Figure(0.833, 0.011),
        "both": Figure(0.882, 0.007),
    },
    "click": {
        "metadata": Figure(0.796, 0.021),
        "history": Figure(0.948, 0.006),
        "both": Figure(0.949, 0.006),
    },
    "impression": {
        "metadata": Figure(0.736, 0.008),
        "history": Figure(0.896, 0.003),
        "both": Figure(0.895, 0.003),
    },
}

NAMES = {  # as the papers call them
    "category_day": "Frequency (category, 1 day)",
    "category_week": "Frequency (category, 1 week)",
    "category_month": "Frequency (category, 1 month)",
    "category_recent": "Most recent (category)",
    "page_day": "Frequency (offer, 1 day)",
    "page_week": "Frequency (offer, 1 week)",
    "page_month": "Frequency (offer, 1 month)",
    "page_recent": "Most recent (offer)",
    "combined": "Frequency (combined)",
    "dnn_metadata": "DNN (metadata)",
    "dnn_both": "DNN (metadata + frequency)",
}


def published(model: str, group: str, observe: str) -> Figure | None:
    """What Han 2019 reports of a model; None if it has no such row.

    >>> published("dnn_both", "unseen", "full")
    Figure(auc=0.862, sd=0.003)
    """
    table = SEEN if group == "seen" else UNSEEN
    found = table.get(model)
    return None if found is None else found[observe == "full"]
