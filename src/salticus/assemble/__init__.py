"""From settings to a crawler, and to all that commands need without crawling."""

from salticus.assemble.base import clock_of, cost_of, stored
from salticus.assemble.crawl import crawler, fetching, guided
from salticus.assemble.importing import import_log
from salticus.assemble.parts import parts_of, predictor_of
from salticus.assemble.standing import Standing, recalled, visit_price
from salticus.assemble.visiting import by_hand, visit_now

__all__ = [
    "Standing",
    "by_hand",
    "clock_of",
    "cost_of",
    "crawler",
    "fetching",
    "guided",
    "import_log",
    "parts_of",
    "predictor_of",
    "recalled",
    "stored",
    "visit_now",
    "visit_price",
]
