"""Estimates and policies by the names that one can type, those of Han et al. (2020) among them."""

from __future__ import annotations

from dataclasses import dataclass, fields, replace
from pathlib import Path
from typing import Self

from salticus import allocate, plugins
from salticus.allocate.base import Informed
from salticus.errors import ConfigError

HISTORY, ORACLE, FITTED = "history", "oracle", "fitted"

PAPER = {
    "delta": "change_proportional",
    "mu": "demand_proportional",
    "nu": "impression_proportional",
    "lambda": "lambdacrawl",
}
"""What Han et al. (2020) call Δ, μ, ν and λ."""

MODELS = {"change": "change", "clicks": "click", "impressions": "impression"}
"""The folder of each quantity's model, which is also its task."""

SETS = ("h", "ml", "mix", "fit")
"""Endings of policy names: estimates from history, from models, or from both (`fit`: of change,
from models beside a rhythm fitted to the history)."""


@dataclass(frozen=True, slots=True)
class Estimates:
    """Whose word counts on change, clicks and impressions.

    `history`: the predictor of the rules; the mean of the trailing 30 days. The name of a
    predictor: that one. `oracle`: what will turn out to be true on average. A folder: the model in
    it, alone;
    ``FOLDER+history``: model and history, with a weight that is learnt; ``FOLDER+fitted``: the
    model and a rhythm fitted to the history.
    """

    change: str = HISTORY
    clicks: str = HISTORY
    impressions: str = HISTORY

    @classmethod
    def parse(cls, text: str) -> Self:
        """From ``change=…,clicks=…,impressions=…``; a word alone is about change.

        >>> Estimates.parse("clicks=models/click+history,change=gamma").clicks
        'models/click+history'
        >>> Estimates.parse("oracle")
        Estimates(change='oracle', clicks='history', impressions='history')
        """
        found, known = {}, [f.name for f in fields(cls)]
        for part in text.split(","):
            name, said, word = part.strip().rpartition("=")
            if (said and name not in known) or not word:
                raise ConfigError(f"{text!r}: write change=…,clicks=…,impressions=…, or one word")
            found[name or "change"] = word
        for name, word in found.items():
            beside = word.partition("+")[2]
            if "+" in word and beside not in (HISTORY, FITTED):
                raise ConfigError(f"{name}={word}: write FOLDER+history or FOLDER+fitted")
            if name != "change" and FITTED in (word, beside):
                raise ConfigError(f"{name}={word}: only change can be fitted")
        return cls(**found)

    @classmethod
    def of_models(cls, folder: Path, ending: str) -> Self:
        """Those of the three models in a folder, as the ending of a policy's name says."""
        beside = "" if ending == "ml" else f"+{HISTORY}"
        made = cls(**{name: f"{folder / task}{beside}" for name, task in MODELS.items()})
        return replace(made, change=f"{folder / 'change'}+{FITTED}") if ending == "fit" else made

    def names(self) -> tuple[str, str, str]:
        return self.change, self.clicks, self.impressions


@dataclass(frozen=True, slots=True)
class Contestant:
    """A policy as it was typed: its own name, its spacing and estimates if these were named."""

    policy: str
    spacing: str | None = None
    estimates: Estimates | None = None


def contestant(name: str, models: Path | None = None) -> Contestant:
    """From ``POLICY[_h|_ml|_mix|_fit][@SPACING]``.

    `_h`: the published 30-day frequency and counts (for a policy that names a predictor, as leap,
    that one); `_ml`: the models in the folder `models` alone, `_mix`: with history beside them,
    `_fit`: of change with a fitted rhythm beside it.

    >>> contestant("mu_h@coin").estimates
    Estimates(change='frequency', clicks='history', impressions='history')
    """
    policy, spacing, ending = parsed(name)
    if ending is None:
        return Contestant(policy, spacing)
    if ending == "h":
        estimates = Estimates(change=HISTORY if _chooses(policy) else "frequency")
    elif models is None:
        raise ConfigError(
            f"{name}: with which models? give --models FOLDER, which has change/, click/ and "
            "impression/ (`salticus train LOG --task all --out FOLDER`)"
        )
    else:
        estimates = Estimates.of_models(models, ending)
    return Contestant(policy, spacing, estimates)


def parsed(name: str) -> tuple[str, str | None, str | None]:
    """The policy that a name means, and the spacing and the ending that it has.

    >>> parsed("lambda_ml@even"), parsed("kab5_ix")
    (('lambdacrawl', 'even', 'ml'), ('kab5_ix', None, None))
    """
    base, _, spacing = name.partition("@")
    stem, _, ending = base.rpartition("_")
    if ending in SETS and _is_policy(stem):
        return PAPER.get(stem, stem), spacing or None, ending
    return PAPER.get(base, base), spacing or None, None


def _is_policy(name: str) -> bool:
    return name in PAPER or name in allocate.BUILTIN


def _chooses(policy: str) -> bool:
    """Whether a policy names the predictor that it wants."""
    made = plugins.make("policy", policy, allocate.BUILTIN, seed=0)
    return isinstance(made, Informed)
