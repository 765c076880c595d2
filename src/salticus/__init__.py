"""Salticus keeps a local copy of web content fresh on a budget.

What a user's own code needs, under one roof; each name is imported when it is first used.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

from salticus.version import VERSION as __version__

if TYPE_CHECKING:
    from salticus.allocate.base import Policy
    from salticus.assemble import crawler, stored
    from salticus.config import Budget, Config
    from salticus.errors import SalticusError
    from salticus.extract.base import Content, Extractor
    from salticus.loop import Loop
    from salticus.predict.base import Predictor
    from salticus.schedule.base import Spacing
    from salticus.types import NewPage, Outcomes, Pages, Plan, Survival, Tick, Value
    from salticus.worlds.base import World

_HOMES = {
    "salticus.allocate.base": ("Policy",),
    "salticus.assemble": ("crawler", "stored"),
    "salticus.config": ("Budget", "Config"),
    "salticus.errors": ("SalticusError",),
    "salticus.extract.base": ("Content", "Extractor"),
    "salticus.loop": ("Loop",),
    "salticus.predict.base": ("Predictor",),
    "salticus.schedule.base": ("Spacing",),
    "salticus.types": ("NewPage", "Outcomes", "Pages", "Plan", "Survival", "Tick", "Value"),
    "salticus.worlds.base": ("World",),
}

__all__ = [
    "Budget",
    "Config",
    "Content",
    "Extractor",
    "Loop",
    "NewPage",
    "Outcomes",
    "Pages",
    "Plan",
    "Policy",
    "Predictor",
    "SalticusError",
    "Spacing",
    "Survival",
    "Tick",
    "Value",
    "World",
    "__version__",
    "crawler",
    "stored",
]


def __getattr__(name: str) -> Any:
    for home, names in _HOMES.items():
        if name in names:
            return getattr(import_module(home), name)
    raise AttributeError(f"module 'salticus' has no attribute {name!r}")
