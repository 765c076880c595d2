"""The exchange format: which tables a log may have, their columns, and what each column holds."""

from __future__ import annotations

TABLES: dict[str, dict[str, str]] = {
    "pages": {
        "page_id": "id", "url": "text", "kind": "text", "merchant": "text", "brand": "text",
        "category": "text", "condition": "text", "country": "text", "language": "text",
        "title": "text", "timezone": "text", "host": "text", "tags": "texts", "stratum": "text",
    },
    "values": {"page_id": "id", "at": "time", "value": "text"},
    "demand": {"page_id": "id", "at": "time", "clicks": "count", "impressions": "count"},
    "visits": {
        "page_id": "id", "at": "time", "purpose": "text", "policy": "text", "propensity": "float",
        "status": "text", "changed": "bool", "value": "text", "age_s": "float",
    },
    "requests": {"page_id": "id", "at": "time"},
    "links": {"source_id": "id", "page_id": "id", "appeared": "time", "vanished": "time"},
    "texts": {"page_id": "id", "at": "time", "text": "text"},
    "signals": {"page_id": "id", "at": "time", "kind": "text", "value": "text"},
    "crawls": {"host": "text", "at": "time"},
}  # fmt: skip

REQUIRED: dict[str, tuple[str, ...]] = {
    "pages": ("page_id",),
    "values": ("page_id", "at", "value"),
    "demand": ("page_id", "at", "clicks"),
    "visits": ("page_id", "at"),
    "requests": ("page_id", "at"),
    "links": ("source_id", "page_id", "appeared"),
    "texts": ("page_id", "at", "text"),
    "signals": ("page_id", "at", "kind"),
    "crawls": ("host", "at"),
}
