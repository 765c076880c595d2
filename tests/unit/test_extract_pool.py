"""Bad extractors cost their own page and no other."""

from __future__ import annotations

import asyncio
import multiprocessing
import os
import signal
import sys
from collections.abc import Awaitable, Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

import pytest
from lxml import html

from salticus.config import Extract, Rule, Span
from salticus.errors import ExtractError, PluginError
from salticus.extract import pool
from salticus.extract.base import Content
from salticus.extract.pool import Extraction
from salticus.types import Target, Value

URL = "https://a.example/1"
TEXT = Content(URL, b"<main><p>Good day to you</p></main>", "text/html")
SALE = b'<script type="application/ld+json">{"@type":"Product","offers":{"price":5}}</script>'
OFFER = Content(URL, SALE + TEXT.body, "text/html")
FAST = Extract(workers=1, deadline=Span(seconds=1))


class Hang:
    fast = False

    def extract(self, content: Content) -> Value | None:
        while True:
            pass


class Exit:
    fast = False

    def extract(self, content: Content) -> Value | None:
        os._exit(3)


class Leave:
    fast = False

    def extract(self, content: Content) -> Value | None:
        sys.exit(3)


class Eat:
    fast = False

    def extract(self, content: Content) -> Value | None:
        return Value("page", str(len([bytes(10**9) for _ in range(4)])))


class Odd:
    fast = False

    def extract(self, content: Content) -> Value | None:
        return lambda: None  # type: ignore[return-value]


class String:
    fast = False

    def extract(self, content: Content) -> Value | None:
        return "text"  # type: ignore[return-value]


class Raise:
    fast = True

    def extract(self, content: Content) -> Value | None:
        raise KeyError("no such thing")


class Where:
    fast = False

    def extract(self, content: Content) -> Value | None:
        return Value("page", str(os.getpid()))


class Smart:
    """Gives the strings of lxml, which know where they stood."""

    fast = False

    def extract(self, content: Content) -> Value | None:
        (text,) = html.fromstring(content.body).xpath("//body//text()")
        return Value("page", text, {"title": text})


BAD = (Hang, Exit, Leave, Eat, Odd, String, Raise, Where, Smart)
EXTRACTORS = {part.__name__.lower(): f"{__file__}:{part.__name__}" for part in BAD}


def target(kind: str | None = None, url: str = URL) -> Target:
    return Target(page=1, url=url, host="a.example", kind=kind)


async def value(extraction: Extraction, content: Content, kind: str | None) -> Value | None:
    return (await extraction.read(content, target(kind))).value


def run(
    main: Callable[[Extraction], Awaitable[None]],
    config: Extract = FAST,
    rules: Sequence[Rule] = (),
) -> None:
    async def whole() -> None:
        extraction = Extraction(config, rules=rules, extractors=EXTRACTORS)
        try:
            await main(extraction)
        finally:
            await extraction.close()
        assert not multiprocessing.active_children()

    asyncio.run(whole())


def test_the_kind_chooses_the_extractor() -> None:
    async def main(extraction: Extraction) -> None:
        assert await value(extraction, OFFER, "offer") == Value("offer", "5", {"price": "5"})
        assert await value(extraction, TEXT, "offer") is None
        for kind in ("page", "article"):
            found = await value(extraction, OFFER, kind)
            assert found is not None
            assert (found.kind, found.text) == ("page", "Good day to you")
        unknown = [await value(extraction, content, None) for content in (OFFER, TEXT)]
        assert [found and found.kind for found in unknown] == ["offer", "page"]
        assert await value(extraction, Content(URL, b""), None) is None

    run(main)


def test_fast_extractors_need_no_worker() -> None:
    async def main(extraction: Extraction) -> None:
        await value(extraction, OFFER, "offer")
        await value(extraction, OFFER, None)
        assert not multiprocessing.active_children()

    run(main)


def test_a_clock_that_can_wait_does_so_while_workers_start() -> None:
    held: list[str] = []

    @contextmanager
    def pause() -> Iterator[None]:
        held.append("held")
        yield
        held.append("let go")

    async def main() -> None:
        extraction = Extraction(FAST, pause=pause)
        try:
            await value(extraction, OFFER, "offer")
            assert held == [], "no worker is needed"
            for _ in range(2):
                assert await value(extraction, TEXT, "page") is not None
                assert held == ["held", "let go"], "not for every page"
        finally:
            await extraction.close()

    asyncio.run(main())


def test_a_parsers_own_strings_are_text() -> None:
    async def main(extraction: Extraction) -> None:
        page = Content(URL, b"<body><p>Good day</p></body>")
        assert await value(extraction, page, "smart") == Value(
            "page", "Good day", {"title": "Good day"}
        )

    run(main)


@pytest.mark.parametrize(
    ("kind", "reason"),
    [
        ("hang", "longer than 1 s"),
        ("exit", r"crashed .* \(exit code 3\)"),
        ("leave", "SystemExit: 3"),
        ("eat", "more than 2 GB"),
        ("odd", "TypeError"),
        ("string", "ValidationError"),
        ("raise", "KeyError: 'no such thing'"),
    ],
)
def test_a_bad_extractor_costs_one_page(kind: str, reason: str) -> None:
    async def main(extraction: Extraction) -> None:
        with pytest.raises(ExtractError, match=f"^{URL}: .*{reason}"):
            await value(extraction, TEXT, kind)
        assert await value(extraction, TEXT, "page") is not None

    run(main)


def test_pages_beside_a_bad_one_are_extracted() -> None:
    async def main(extraction: Extraction) -> None:
        kinds = ["page", "page", "exit", *["page"] * 6, "hang", *["page"] * 4]
        found = await asyncio.gather(
            *(value(extraction, TEXT, kind) for kind in kinds), return_exceptions=True
        )
        for kind, one in zip(kinds, found, strict=True):
            assert isinstance(one, Value if kind == "page" else ExtractError), (kind, one)

    run(main)


def test_a_worker_killed_from_outside_is_replaced() -> None:
    async def main(extraction: Extraction) -> None:
        first = await value(extraction, TEXT, "where")
        assert first is not None
        (worker,) = multiprocessing.active_children()
        assert first.text == str(worker.pid)
        os.kill(int(first.text), signal.SIGKILL)
        await asyncio.to_thread(worker.join)
        again = await value(extraction, TEXT, "where")
        assert again is not None
        assert again.text != first.text

    run(main)


def test_closing_ends_what_is_under_way() -> None:
    async def main(extraction: Extraction) -> None:
        await value(extraction, TEXT, "page")
        kinds = ("hang", *["page"] * 8)
        waiting = [asyncio.create_task(value(extraction, TEXT, kind)) for kind in kinds]
        await asyncio.sleep(0)
        await extraction.close()
        ended = await asyncio.gather(*waiting, return_exceptions=True)
        assert isinstance(ended[0], ExtractError)
        assert all(isinstance(one, ExtractError | Value) for one in ended), ended
        with pytest.raises(ExtractError, match="closed"):
            await value(extraction, TEXT, "page")
        await extraction.close()

    run(main, Extract(workers=1, deadline=Span(seconds=60)))


def test_a_cancelled_visit_is_cancelled() -> None:
    async def main(extraction: Extraction) -> None:
        await value(extraction, TEXT, "page")
        waiting = asyncio.create_task(value(extraction, TEXT, "hang"))
        await asyncio.sleep(0)
        waiting.cancel()
        with pytest.raises(asyncio.CancelledError):
            await waiting
        assert await value(extraction, TEXT, "page") is not None

    run(main, Extract(workers=1, deadline=Span(seconds=60)))


def test_workers_that_never_answer_are_given_up(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    part = tmp_path / "stuck.py"
    part.write_text(
        "import multiprocessing, time\n"
        "if multiprocessing.parent_process():\n"
        "    time.sleep(600)\n"
        "class Stuck:\n"
        "    fast = False\n"
    )
    monkeypatch.setattr(pool, "RESTART_S", 0.0)

    async def main() -> None:
        config = Extract(workers=1, deadline=Span(seconds=0.05))
        extraction = Extraction(config, extractors={"page": f"{part}:Stuck"})
        with pytest.raises(ExtractError, match="no worker answers"):
            await value(extraction, TEXT, "page")
        await extraction.close()
        assert not multiprocessing.active_children()

    asyncio.run(main())


def test_closing_what_never_started() -> None:
    async def main(extraction: Extraction) -> None:
        await extraction.close()

    run(main)


def test_an_unknown_part_is_named() -> None:
    async def main() -> None:
        extraction = Extraction(FAST, extractors={"page": "nosuch"})
        with pytest.raises(PluginError, match="nosuch"):
            await value(extraction, TEXT, "page")

    asyncio.run(main())
