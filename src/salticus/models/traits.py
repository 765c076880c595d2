"""Traits: a few numbers on how all pages of a world change, fitted to visits; kept as a model."""

from __future__ import annotations

import math
from dataclasses import asdict, dataclass, fields
from pathlib import Path
from typing import Any

from salticus.errors import InputError
from salticus.models.file import MANIFEST, Saved, load_model, read_manifest, write_manifest

TRAITS = "traits"
"""The kind of model that they are."""

_WORDS = {
    "memory_days": "memory {:g} days",
    "echo": "echo {:g}",
    "echo_days": "echo for {:g} days",
    "regime": "regime {:g}",
    "regime_days": "regime for {:g} days",
    "kin_prior": "kin {:g}",
    "merchant_prior": "merchant {:g}",
}
_ENDLESS = ("regime", "kin_prior", "merchant_prior")  # may be infinite
_NONE = ("echo",)  # may be 0


@dataclass(frozen=True, slots=True)
class Traits:
    """How the pages of a world change; those given are `Rhythm`'s own.

    Evidence of a page's usual rate fades over `memory_days`. Round it the rate of the day is a
    Gamma of shape `regime` whose evidence fades over `regime_days`; infinite: it is always the
    usual. A change raises the changes expected soon by `echo` in all, of which 1/e are left after
    `echo_days` of own time. `kin_prior` and `merchant_prior` are the changes that it takes to
    believe the news of a day (see `predict.news`).
    """

    memory_days: float = 50.0
    echo: float = 0.0
    echo_days: float = 0.1
    regime: float = math.inf
    regime_days: float = 6.0
    kin_prior: float = math.inf
    merchant_prior: float = math.inf

    def unusual(self) -> dict[str, float]:
        """What differs from the usual.

        >>> Traits(memory_days=20.0, echo=0.6).unusual()
        {'memory_days': 20.0, 'echo': 0.6}
        """
        usual = Traits()
        own = {f.name: getattr(self, f.name) for f in fields(self)}
        return {name: x for name, x in own.items() if x != getattr(usual, name)}

    def told(self) -> str:
        """What differs from the usual, in words.

        >>> Traits(memory_days=20.0, echo=0.6, kin_prior=0.3).told()
        'memory 20 days, echo 0.6, kin 0.3'
        """
        other = [_WORDS[name].format(x) for name, x in self.unusual().items()]
        return ", ".join(other) or "nothing that differs from the usual"


def save_traits(folder: Path, traits: Traits, about: dict[str, Any]) -> dict[str, Any]:
    """Write traits as a model into a new or empty folder, with what else its manifest is to tell;
    the manifest. In JSON null stands for infinite."""
    own = {name: x if math.isfinite(x) else None for name, x in asdict(traits).items()}
    return write_manifest(folder, {"kind": TRAITS, "task": "change", "traits": own, **about})


def load_traits(folder: Path) -> Traits:
    """The traits of a folder; InputError names the file and says what is wrong with it."""
    manifest = read_manifest(folder)
    told = manifest.get("traits")
    names = {each.name for each in fields(Traits)}
    if manifest.get("kind") != TRAITS or not isinstance(told, dict) or told.keys() != names:
        raise InputError(f"{folder / MANIFEST}: not the traits of a world; fit them again")
    for name, x in told.items():
        if x is None and name in _ENDLESS:
            continue
        if not isinstance(x, int | float) or not (0 < x < 1e9 or (x == 0 and name in _NONE)):
            raise InputError(f"{folder / MANIFEST}: {name} is {x!r}, which cannot be")
    return Traits(**{name: math.inf if x is None else float(x) for name, x in told.items()})


def is_traits(folder: Path) -> bool:
    """Whether a folder holds traits, not a model of features."""
    return bool(read_manifest(folder).get("kind") == TRAITS)


def traits_told(folder: Path) -> str | None:
    """The traits of a folder in words; None if it holds no traits that can be read."""
    try:
        return load_traits(folder).told()
    except InputError:
        return None


def load_version(folder: Path) -> Saved | Traits:
    """Whatever a folder of the registry holds: a model of features, or traits."""
    return load_traits(folder) if is_traits(folder) else load_model(folder)
