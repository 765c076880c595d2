"""Change frequencies of a log written down by hand."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import numpy as np
import polars as pl
import pytest

from salticus.features.truths import NEVER_GONE
from salticus.lab.studies.calibration.market import full_history, partial_history
from salticus.lab.studies.calibration.statistics import frequencies

DAY0 = datetime(2018, 5, 1, tzinfo=UTC)
HOUR0 = int(DAY0.timestamp()) // 3600
KINDS = {"page_id": pl.Int64, "at": pl.Datetime("us", "UTC"), "value": pl.String}
PAGES = pl.DataFrame({"page_id": [7, 8, 9], "category": ["A > B", "A > B", None]})


def table(*rows: tuple[int, float, str | None]) -> pl.LazyFrame:
    told = [(page, DAY0 + timedelta(hours=hour), value) for page, hour, value in rows]
    return pl.LazyFrame(told, schema=KINDS, orient="row")


VALUES = table(
    (7, 0, "a"), (7, 30.5, "b"), (7, 40, "b"), (7, 50, "a"),
    (8, 24, "x"), (8, 60, None),
    (9, 0, "m"), (9, 10, None), (9, 20, "m"), (9, 30, "n"),
)  # fmt: skip


def test_a_change_is_a_value_other_than_the_last_one() -> None:
    history = full_history(PAGES, VALUES)
    assert list(zip(history.page, history.hour - HOUR0, strict=True)) == [(0, 30), (0, 50), (2, 30)]
    assert (history.born - HOUR0).tolist() == [0, 24, 0]
    assert history.gone.tolist() == [NEVER_GONE, HOUR0 + 60, NEVER_GONE]
    assert history.start == HOUR0
    assert history.group[0] == history.group[1] != history.group[2]
    assert len(history) == 3


def test_frequencies_are_changes_an_hour() -> None:
    history = full_history(PAGES, VALUES)
    found = frequencies(history, np.array([0, 0, 1]), HOUR0 + np.array([50, 51, 48]))
    assert found["page_day"] == pytest.approx([1 / 24, 2 / 24, 0.0])
    assert found["page_week"] == pytest.approx([1 / 50, 2 / 51, 0.0])
    assert found["page_recent"] == pytest.approx([20, 1, 24])
    assert found["category_week"] == pytest.approx([1 / (50 + 26), 2 / (51 + 27), 1 / (48 + 24)])
    assert found["category_recent"] == pytest.approx([(20 + 26) / 2, (1 + 27) / 2, (18 + 24) / 2])


def test_a_page_that_has_gone_no_longer_counts_in_its_category() -> None:
    history = full_history(PAGES, VALUES)
    found = frequencies(history, np.array([0]), np.array([HOUR0 + 100]))
    assert found["category_recent"] == pytest.approx([50])
    assert found["category_day"] == pytest.approx([0.0])
    assert found["category_month"] == pytest.approx([2 / (100 + 36)])


def test_a_page_without_a_history_is_as_old_as_the_log() -> None:
    history = full_history(PAGES, VALUES.filter(pl.col("page_id") != 9))
    found = frequencies(history, np.array([2, 1]), HOUR0 + np.array([10, 10]))
    assert found["page_recent"] == pytest.approx([10, 10])
    assert found["page_month"] == pytest.approx([0.0, 0.0])


VISITS = pl.LazyFrame(
    {
        "page_id": [7, 7, 7, 8, 8],
        "at": [DAY0 + timedelta(hours=h) for h in (1.0, 35.2, 36.0, 30.0, 70.0)],
        "changed": [None, True, False, None, True],
    },
    schema={"page_id": pl.Int64, "at": pl.Datetime("us", "UTC"), "changed": pl.Boolean},
)


def test_a_crawler_sees_a_change_when_it_visits() -> None:
    full = full_history(PAGES, VALUES)
    history = partial_history(PAGES, VISITS, full)
    assert (history.born == full.born).all()
    assert (history.gone == full.gone).all()
    assert list(zip(history.page, history.hour - HOUR0, strict=True)) == [(0, 35)]


def test_pages_need_no_category() -> None:
    history = full_history(PAGES.drop("category"), VALUES)
    found = frequencies(history, np.array([0, 2]), np.array([HOUR0 + 51] * 2))
    assert found["category_month"] == pytest.approx([3 / (51 + 27 + 51)] * 2)


@pytest.mark.parametrize("hour", [0, 5, 100])
def test_nothing_seen_is_no_change(hour: int) -> None:
    history = full_history(PAGES, VALUES.filter(pl.col("at") < DAY0))
    found = frequencies(history, np.array([0, 2]), np.array([hour, hour]))
    assert [*found["page_day"], *found["category_month"]] == [0.0] * 4
