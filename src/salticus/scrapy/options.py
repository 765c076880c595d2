"""The settings of the add-on, among those of a Scrapy project."""

from __future__ import annotations

from pathlib import Path

import msgspec
from scrapy.settings import BaseSettings
from scrapy.utils.conf import closest_scrapy_cfg

from salticus.config import Config, load


class Options(msgspec.Struct, frozen=True):
    """What the add-on needs to know.

    `config` is read from SALTICUS_CONFIG, a file beside scrapy.cfg unless its path is absolute.
    With `continuous` the spider does not end: visits are planned tick after tick. With
    `only_planned` the spider's own requests for pages that are known are left out.
    """

    config: Config
    continuous: bool = False
    only_planned: bool = True

    @classmethod
    def of(cls, settings: BaseSettings) -> Options:
        """The options in a project's settings; ConfigError names what is wrong."""
        project = Path(closest_scrapy_cfg() or "./scrapy.cfg").parent
        return cls(
            load(project / settings.get("SALTICUS_CONFIG", "salticus.toml")),
            continuous=settings.getbool("SALTICUS_CONTINUOUS", False),
            only_planned=settings.getbool("SALTICUS_ONLY_PLANNED", True),
        )
