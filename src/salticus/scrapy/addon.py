"""What a Scrapy project names in its ADDONS."""

from __future__ import annotations

import logging

from scrapy.settings import BaseSettings

from salticus.scrapy.middleware import Revisits

_PRIORITY = 10  # next to the engine: what others filter never counts, what they add does


class Salticus:
    """Puts the spider middleware in its place.

    Its settings are SALTICUS_CONFIG, SALTICUS_CONTINUOUS and SALTICUS_ONLY_PLANNED; see `Options`.
    """

    def update_settings(self, settings: BaseSettings) -> None:
        logging.getLogger("numba").setLevel(logging.WARNING)  # Scrapy shows what others debug
        settings.setdefault_in_component_priority_dict("SPIDER_MIDDLEWARES", Revisits, _PRIORITY)
