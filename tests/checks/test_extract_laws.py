"""Every built-in extractor obeys the laws, and the laws catch those that do not."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from salticus import plugins
from salticus.checks.extract import check_extractor
from salticus.errors import ExtractError
from salticus.extract import BUILTIN
from salticus.extract.base import Content
from salticus.types import Entry, Reading, Status, Value


@pytest.mark.parametrize("name", BUILTIN)
def test_built_in(name: str) -> None:
    check_extractor(plugins.load("extractor", name, BUILTIN)())


class Made:
    """An extractor made of a function."""

    fast = True

    def __init__(self, found: Callable[[Content], Any]) -> None:
        self.found = found

    def extract(self, content: Content) -> Value | Reading | None:
        found: Value | Reading | None = self.found(content)
        return found


def _refuse(content: Content) -> None:
    raise ExtractError(content.url)


def _drain(content: Content) -> None:
    content.body = b""


def test_giving_up_is_allowed() -> None:
    check_extractor(Made(_refuse))


def test_a_whole_reading_is_allowed() -> None:
    entries = (Entry("http://a.example/1", title="One"),)
    check_extractor(Made(lambda content: Reading(Value("page", "text"), entries=entries)))
    check_extractor(Made(lambda content: Reading(status=Status.BLOCKED, fault="a wall")))


@pytest.mark.parametrize(
    ("found", "law"),
    [
        (lambda content: 1 / 0, "raises nothing but ExtractError"),
        (lambda content: content.body.decode()[:0] or None, "raises nothing but ExtractError"),
        (lambda content, seen=[]: Value("a", str(seen.append(1) or len(seen))), "pure"),
        (lambda content: "text", "a Value, a Reading or None"),
        (lambda content: Value("", "text"), "has a kind"),
        (lambda content: Value("page", ""), "gives None"),
        (lambda content: Value("page", " text"), "no space"),
        (lambda content: Value("page", "\ud800"), "encodable"),
        (lambda content: Value("page", "a\0b"), "without NUL"),
        (lambda content: Value("page", "a", {"n": 1}), "are text"),  # type: ignore[dict-item]
        (_drain, "left as it was"),
        (lambda content: Reading(Value("page", "")), "gives None"),
        (lambda content: Reading(Value("a", "b"), Status.BLOCKED, "no"), "failed has no value"),
        (lambda content: Reading(status=Status.SOFT_404), "has a fault"),
        (lambda content: Reading(fault=""), "not an empty text"),
        (lambda content: Reading(fault="a\0b"), "without NUL"),
        (lambda content: Reading(canonical="/a"), "addresses are absolute"),
        (lambda content: Reading(entries=(Entry("ftp://a.example/"),)), "addresses are absolute"),
        (
            lambda content: Reading(
                status=Status.BLOCKED, fault="no", entries=(Entry("http://a.example/"),)
            ),
            "names no pages",
        ),
    ],
)
def test_a_broken_law_is_found(found: Callable[[Content], Any], law: str) -> None:
    with pytest.raises(AssertionError, match=law):
        check_extractor(Made(found))
