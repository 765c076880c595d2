"""A shop whose offers are built by scripts: rendered, read, and paid for."""

from __future__ import annotations

import json

import pytest

from salticus.config import Fetch
from salticus.errors import ConfigError
from salticus.fetch.render import BrowserRenderer

from .conftest import Street, finished

RULE = """
[[pages]]
match = "*/o/*"
kind = "offer"
render = true
wait = ".price"
"""


def test_a_shop_behind_javascript_is_read(street: Street) -> None:
    try:
        BrowserRenderer(Fetch())
    except ConfigError as error:
        pytest.skip(str(error))
    street.open(shops=1, offers=3, markup="script", speed=43_200, delay=0.02, days=3650)
    street.set("budget", '"500%"')
    street.settings.write_text(street.settings.read_text() + RULE)
    street.set("timeout", '"20s"')
    visits = runs = 0
    while visits < 3 and runs < 8:  # a busy machine takes more than one
        code, out, err = finished(street.crawl("--for", "12s", "--json"))
        assert code == 0, err
        visits, runs = visits + json.loads(out)["visits"], runs + 1
    assert visits >= 3, err
    states = street.sql("SELECT kind, cost, status, fault, value FROM pages")
    assert len(states) == 3
    for kind, cost, status, fault, value in states:
        assert (kind, cost, status) == ("offer", 5.0, "ok"), fault
        assert value is not None
    texts = street.sql('SELECT value FROM "values"')
    assert all(str(text).endswith("Stock") for (text,) in texts), texts
    asked = [entry.path for entry in street.entries()]
    assert "/api/o/0" in asked
    assert asked.count("/app.js") <= runs, "scripts are shared between pages"
