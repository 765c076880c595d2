"""The Scrapy add-on: an existing Scrapy project gets the revisit brain.

``ADDONS = {"salticus.scrapy.Salticus": 500}`` in the project's settings is enough. Needs the extra
`scrapy`.
"""

from salticus.scrapy.crawl import Salticus

__all__ = ["Salticus"]
