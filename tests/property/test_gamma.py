"""The Gamma filter: a batch teaches what its visits teach one by one."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from salticus.checks.samples import some_outcomes, some_pages
from salticus.predict.gamma import Gamma
from salticus.types import DAY, Outcomes

visit = st.tuples(st.integers(0, 3), st.floats(0.05, 5.0), st.sampled_from([-1, 0, 0, 0, 1]))


def outcomes(visits: list[tuple[int, float, int]]) -> Outcomes:
    """Visits of four pages in order of time, each some days after the page's last."""
    clock = np.zeros(4)
    rows = []
    for page, gap, changed in visits:
        since = clock[page]
        clock[page] += gap
        rows.append((page, since, clock[page], changed))
    rows.sort(key=lambda row: row[2])
    columns = [np.array(c) for c in zip(*rows, strict=True)]
    pages = some_pages(len(rows))
    start, day = np.datetime64("2026-01-01", "us"), DAY.astype(np.int64)
    n = len(rows)
    return replace(
        some_outcomes(pages),
        page=columns[0].astype(np.int64),
        since=start + (columns[1] * day).astype("m8[us]"),
        at=start + (columns[2] * day).astype("m8[us]"),
        changed=columns[3].astype(np.int8),
        made=np.ones(n, dtype=np.bool_),
        status=np.zeros(n, dtype=np.int8),
    )


@settings(max_examples=80, deadline=None)
@given(st.lists(visit, min_size=1, max_size=40))
def test_a_batch_teaches_what_its_visits_teach_one_by_one(
    visits: list[tuple[int, float, int]],
) -> None:
    every = outcomes(visits)
    batch, single = Gamma(), Gamma()
    batch.learn(every)
    for row in range(len(every)):
        single.learn(every.take(np.array([row])))
    ids = np.arange(4)
    assert np.allclose(batch.rates(ids), single.rates(ids), rtol=1e-9)
