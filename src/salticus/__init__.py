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
    from salticus.crawl.manual import add
    from salticus.crawl.opening import Crawl, open_crawl, stored
    from salticus.crawl.running import run
    from salticus.crawl.world import World
    from salticus.errors import SalticusError
    from salticus.extract.base import Content, Extractor
    from salticus.predict.base import Predictor
    from salticus.schedule.base import Spacing
    from salticus.types import NewPage, Outcomes, Pages, Plan, Survival, Tick, Value
    from salticus.views.changes import Changed, Wanted, changes
    from salticus.views.fresh import Fresh, Unknown, fresh, plan
    from salticus.views.page import copy_of
    from salticus.views.reasons import Why
    from salticus.views.search import search
    from salticus.views.status import status
    from salticus.views.why import why

_HOMES = {
    "salticus.allocate.base": ("Policy",),
    "salticus.config": ("Budget", "Config"),
    "salticus.crawl.assembly": ("crawler",),
    "salticus.crawl.loop": ("Loop",),
    "salticus.crawl.manual": ("add",),
    "salticus.crawl.opening": ("Crawl", "open_crawl", "stored"),
    "salticus.crawl.running": ("run",),
    "salticus.crawl.world": ("World",),
    "salticus.errors": ("SalticusError",),
    "salticus.extract.base": ("Content", "Extractor"),
    "salticus.predict.base": ("Predictor",),
    "salticus.schedule.base": ("Spacing",),
    "salticus.types": ("NewPage", "Outcomes", "Pages", "Plan", "Survival", "Tick", "Value"),
    "salticus.views.changes": ("Changed", "Wanted", "changes"),
    "salticus.views.fresh": ("Fresh", "Unknown", "fresh", "plan"),
    "salticus.views.page": ("copy_of",),
    "salticus.views.reasons": ("Why",),
    "salticus.views.search": ("search",),
    "salticus.views.status": ("status",),
    "salticus.views.why": ("why",),
}

__all__ = [
    "Budget",
    "Changed",
    "Config",
    "Content",
    "Crawl",
    "Extractor",
    "Fresh",
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
    "Unknown",
    "Value",
    "Wanted",
    "Why",
    "World",
    "__version__",
    "add",
    "changes",
    "copy_of",
    "crawler",
    "fresh",
    "open_crawl",
    "plan",
    "run",
    "search",
    "status",
    "stored",
    "why",
]


def __getattr__(name: str) -> Any:
    for home, names in _HOMES.items():
        if name in names:
            return getattr(import_module(home), name)
    raise AttributeError(f"module 'salticus' has no attribute {name!r}")
