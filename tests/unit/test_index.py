"""The index of the policies: its special cases, and what it costs in steps."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.special import lambertw

from salticus.allocate.leap import by_host
from salticus.allocate.rates import g_inverse, intervals
from salticus.allocate.share import first


def test_g_inverse_is_lambert_w() -> None:
    y = np.linspace(0.01, 0.99, 99)
    assert g_inverse(y) == pytest.approx(-1 - lambertw(-(1 - y) / np.e, -1).real, rel=1e-12)


def test_more_pages_than_visits_were_never_visited() -> None:
    worth = np.array([np.inf, 7.0, np.inf, np.inf])
    assert first(-worth, 1.5).tolist() == [0.5, 0.0, 0.5, 0.5]
    assert by_host(worth, np.ones(4), np.zeros(4, dtype=np.int64), np.array([1.5])).tolist() == [
        0.5,
        0,
        0.5,
        0.5,
    ]


def test_worthless_pages_share_what_is_left() -> None:
    assert first(np.zeros(4), 3.0).tolist() == [0.75] * 4


def test_hosts_without_pages_and_pages_without_room() -> None:
    worth, host = np.array([1.0, 2.0]), np.array([2, 2])
    assert by_host(worth, np.ones(2), host, np.array([9.0, 0.0, 0.0, 1.0])).tolist() == [0.0, 0.0]
    assert len(by_host(np.empty(0), np.empty(0), np.empty(0, dtype=np.int64), np.ones(3))) == 0


def test_a_page_that_only_just_comes_to_the_price_is_never_due() -> None:
    interval = intervals(np.ones(2), np.array([1.0, 1.01]), 1.0)
    assert np.isfinite(interval).tolist() == [False, True]
