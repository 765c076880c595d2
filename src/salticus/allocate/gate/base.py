"""The contract of a gate: requests come one by one, and a share of them is sent."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

import numpy as np

from salticus.errors import ConfigError, InputError
from salticus.types import Bools, Columns, Floats


@dataclass(frozen=True, slots=True)
class Decisions(Columns):
    """Whether each request is sent, and the probability with which it was."""

    sent: Bools
    propensity: Floats


class Gate(Protocol):
    """Scores of requests, in the order in which they come → which of them are sent.

    A score is any number that is higher where a visit is worth more, such as the probability that
    the page has changed since its last answer. A chance is in [0, 1), uniform and independent: a
    hash of (seed, page, number of the request). A constructor that takes `share` is given the
    share of requests to send.

    Laws: a request is sent if its chance is below its propensity; propensities are in [0, 1];
    one by one is as good as in a batch; restored from its state, a gate decides alike.
    """

    def send(self, scores: Floats, chances: Floats) -> Decisions: ...


def decided(propensity: Floats, chances: Floats) -> Decisions:
    """The decisions that these chances bring."""
    return Decisions(np.less(chances, propensity), propensity)


def a_share(share: float) -> float:
    """The share, unless it is none: ConfigError then.

    >>> a_share(20.0)
    Traceback (most recent call last):
    salticus.errors.ConfigError: a gate sends a share of the requests between 0 and 1, not 20.0
    """
    if not 0.0 <= share <= 1.0:
        raise ConfigError(f"a gate sends a share of the requests between 0 and 1, not {share}")
    return share


def scored(scores: Floats) -> Floats:
    """The scores, unless one is missing: InputError says which.

    >>> scored(np.array([0.5, np.nan]))
    Traceback (most recent call last):
    salticus.errors.InputError: the score of request 1 of the batch is not a number
    """
    bad = np.flatnonzero(np.isnan(scores))
    if len(bad):
        raise InputError(f"the score of request {bad[0]} of the batch is not a number")
    return scores
