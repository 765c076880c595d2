"""The bench of links, in small: the same pages for all, nothing is timed."""

from __future__ import annotations

import json

from typer.testing import CliRunner

from salticus.cli import app
from salticus.extract.base import Content
from salticus.extract.links import links_of, read_links
from salticus.lab.bench.links import CONTESTANTS, URL, front_page, plain_list

COLUMNS = {"page", "contestant", "bytes", "ms/page", "links/s", "x parse"}


def test_a_row_for_every_page_and_contestant() -> None:
    words = ["bench", "links", "--links", "30", "--rounds", "1", "--json"]
    done = CliRunner().invoke(app, words)
    assert done.exit_code == 0, done.output
    rows = json.loads(done.stdout)
    assert [(row["page"], row["contestant"]) for row in rows] == [
        (page, contestant) for page in ("front", "list") for contestant in CONTESTANTS
    ]
    assert all(set(row) == COLUMNS for row in rows)
    assert {row["x parse"] for row in rows if row["contestant"] == "parse"} == {1.0}


def test_the_pages_have_what_pages_have() -> None:
    """Menus, trackers and other sites, of which nothing is to be shown."""
    for page, articles in ((front_page(80), 60), (plain_list(80), 80)):
        content = Content(URL, page, "text/html", "utf-8")
        shown = [entry.url for entry in read_links(content)]
        assert len(shown) == len(set(shown)) == articles * 9 // 10
        assert all(url.startswith(f"{URL}news/") and "utm" not in url for url in shown)
        assert page.count(b"<a ") == 80
    assert len(links_of(Content(URL, front_page(80), "text/html", "utf-8"))) == 54 + 20
