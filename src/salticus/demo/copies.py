"""What a store held when, with pages as rows of the mall."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from salticus.store.base import Store
from salticus.types import Ints, Times


@dataclass(frozen=True)
class Copies:
    """What the store held: one row each time the copy of a page changed; and all visits."""

    rows: Ints
    at: Times
    values: list[str]
    visited_rows: Ints
    visited_at: Times
    visited_changed: list[bool | None]


def read_copies(store: Store, urls: list[str]) -> Copies:
    """The history of the store, with pages as rows of the mall."""
    row_of_url = {url: row for row, url in enumerate(urls)}
    row_of = {page["page_id"]: row_of_url[page["url"]] for page in store.scan("pages")}
    values, visits = list(store.scan("values")), list(store.scan("visits"))
    return Copies(
        rows=np.array([row_of[v["page_id"]] for v in values], dtype=np.int64),
        at=np.array([v["at"] for v in values], dtype=np.int64).view("M8[us]"),
        values=[v["value"] for v in values],
        visited_rows=np.array([row_of[v["page_id"]] for v in visits], dtype=np.int64),
        visited_at=np.array([v["at"] for v in visits], dtype=np.int64).view("M8[us]"),
        visited_changed=[v["changed"] for v in visits],
    )
