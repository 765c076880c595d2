"""Salticus keeps a local copy of web content fresh on a budget.

What a user's own code needs, under one roof; each name is imported when it is first used.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

from salticus.version import VERSION as __version__

if TYPE_CHECKING:
    from salticus.allocate.base import Policy
    from salticus.config import Budget, Config
    from salticus.crawl.assembly import crawler
    from salticus.crawl.loop import Loop
    from salticus.crawl.opening import stored
    from salticus.crawl.world import World
    from salticus.errors import SalticusError
    from salticus.extract.base import Content, Extractor
    from salticus.predict.base import Predictor
    from salticus.schedule.base import Spacing
    from salticus.types import NewPage, Outcomes, Pages, Plan, Survival, Tick, Value

_HOMES = {
    "salticus.allocate.base": ("Policy",),
    "salticus.crawl.assembly": ("crawler",),
    "salticus.crawl.opening": ("stored",),
    "salticus.config": ("Budget", "Config"),
    "salticus.errors": ("SalticusError",),
    "salticus.extract.base": ("Content", "Extractor"),
    "salticus.crawl.loop": ("Loop",),
    "salticus.predict.base": ("Predictor",),
    "salticus.schedule.base": ("Spacing",),
    "salticus.types": ("NewPage", "Outcomes", "Pages", "Plan", "Survival", "Tick", "Value"),
    "salticus.crawl.world": ("World",),
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
