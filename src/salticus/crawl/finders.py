"""Who learns what sources promise, as settings and policy want it."""

from __future__ import annotations

import math
from datetime import timedelta
from typing import Any

from salticus.allocate.base import Policy
from salticus.allocate.discovery import EchoNewpages
from salticus.config import Config
from salticus.crawl.census import Census
from salticus.crawl.parts import make_policy
from salticus.crawl.scout import RESOLUTION, SHORTEST, Scout
from salticus.predict.finder import FIRST_DAY, Finder, ModelFinder
from salticus.store.base import Store


def finder_for(policy: Policy | None, sources: int = 0, **made: Any) -> Finder:
    """What learns from visits to sources, `made` as `Finder` is: for a policy that takes its price
    from ECHO's model, by that model. As published, a policy pays for all links that appear; so for
    it only those appear that it sees."""
    echo = policy if isinstance(policy, EchoNewpages) else None
    kind = ModelFinder if echo is not None and not echo.published else Finder
    finder = kind(sources, **made)
    finder.rates.plain = echo is not None and echo.published and echo.page_cost > 0.0
    return finder


def make_census(config: Config, store: Store, policy: Policy | None = None) -> Census:
    """All pages of a store, and what is learnt of its sources, as the settings have it."""
    said = config.sources
    finder = finder_for(
        policy or make_policy(config),
        resolution=RESOLUTION,
        prior=FIRST_DAY._replace(decay=math.log(2.0) / (said.half_life / timedelta(days=1))),
        visits=said.history,
        shortest=SHORTEST,
    )
    scout = Scout(store, finder, relearn=said.relearn)
    return Census(store, max_interval=config.max_interval_days, rules=config.pages, scout=scout)
