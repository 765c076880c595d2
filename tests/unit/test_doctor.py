"""The doctor: what is wrong is found, what is well is not blamed, and nothing is changed."""

from __future__ import annotations

import asyncio
import json
import os
import re
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from aiohttp import web
from hypothesis import given
from hypothesis import strategies as st
from protego import Protego

from salticus.config import load
from salticus.crawl.assembly import crawler
from salticus.errors import SalticusError
from salticus.fetch import AGENT
from salticus.store.sqlite.database import instance_lock
from salticus.types import HostState, Value
from salticus.views.trial import deciding, doubt, sells, shell, styles

from .cli_stage import SETTINGS, TEA, Stage, seen

PATIENCE_S = 600.0
DESK = '[desk]\nlisten = "127.0.0.1:0"\ninsta = "10%"\n'
OFFER = b"<script type='application/ld+json'>" + json.dumps(
    {"@type": "Product", "name": "Tea", "offers": {"price": 9.5, "priceCurrency": "EUR"}}
).encode() + b"</script>"  # fmt: skip
WORDS = b"<p>" + b"Words of a page that nobody would call empty. " * 20 + b"</p>"
SHOP = {
    "/offer": OFFER + WORDS,
    "/bare": b"<div class='price'>9,50</div><button>add to cart</button>" + WORDS,
    "/shell": b"<div id=app></div><script src=/app.js></script>",
    "/text": WORDS,
    "/robots.txt": b"User-agent: *\nDisallow: /private\nAllow: /private/open",
    "/private/x": WORDS,
}


class Shop:
    """A server of a few pages; `hits` are the paths that were asked for."""

    def __init__(self) -> None:
        self.hits: list[str] = []
        self.url = ""
        self.robots_status = 200

    async def answer(self, request: web.BaseRequest) -> web.Response:
        self.hits.append(request.path)
        if request.path == "/robots.txt" and self.robots_status != 200:
            return web.Response(status=self.robots_status)
        if request.path == "/moved":
            return web.Response(status=301, headers={"Location": "/offer"})
        body = SHOP.get(request.path)
        status = 404 if body is None else 200
        return web.Response(status=status, body=body or b"no", content_type="text/html")

    async def serve(self, opened: threading.Event, stop: asyncio.Event) -> None:
        runner = web.ServerRunner(web.Server(self.answer))  # type: ignore[arg-type]
        await runner.setup()
        site = web.TCPSite(runner, "127.0.0.1", 0)
        await site.start()
        self.url = f"http://127.0.0.1:{runner.addresses[0][1]}"
        opened.set()
        await stop.wait()
        await runner.cleanup()


@pytest.fixture(scope="module")
def shop() -> Iterator[Shop]:
    shop, loop, opened = Shop(), asyncio.new_event_loop(), threading.Event()
    stop = asyncio.Event()
    thread = threading.Thread(target=loop.run_until_complete, args=(shop.serve(opened, stop),))
    thread.start()
    try:
        assert opened.wait(PATIENCE_S)
        yield shop
    finally:
        loop.call_soon_threadsafe(stop.set)
        thread.join()
        loop.close()


@pytest.fixture
def stage(tmp_path: Path) -> Stage:
    return Stage(tmp_path)


def found(stage: Stage, *words: str) -> dict[str, dict[str, Any]]:
    """Findings by what they are about; the worst of each."""
    said = stage.run("doctor", *words, "-c", str(stage.file), "--json")
    told = json.loads(said.out)
    assert said.code == (0 if told["ok"] else 1)
    order = ("ok", "warn", "fail")
    ranked = sorted(told["findings"], key=lambda each: order.index(each["level"]))
    return {each["about"]: each for each in ranked}


# ---------------------------------------------------------------------------- settings and store


def test_settings_that_cannot_be_read_are_a_finding(stage: Stage) -> None:
    stage.file.write_text("nosuch = 1")
    told = found(stage)
    assert set(told) == {"settings"}
    assert "unknown field `nosuch`" in told["settings"]["said"]


def test_a_crawl_without_contact_or_store(tmp_path: Path) -> None:
    stage = Stage(tmp_path, 'budget = "10%"')
    told = found(stage, "http://a.example/")
    assert told["contact"]["level"] == "fail"
    assert told["store"]["level"] == "warn"
    assert "was not tried" in told["trial"]["said"]
    assert not stage.store.exists()


def test_a_store_with_a_history_is_well(stage: Stage) -> None:
    stage.furnish()
    told = found(stage, "http://127.0.0.1:9/")
    assert {told[name]["level"] for name in ("settings", "contact", "store", "disk")} == {"ok"}
    assert told["running"]["said"] == "no crawl is running"
    assert told["pages"]["said"] == "5 pages to visit on 2 hosts"
    assert told["alert"]["said"].startswith("b.example: blocked since")
    assert "--pause" in told["alert"]["advice"]


def test_a_damaged_store_fails(stage: Stage) -> None:
    stage.furnish()
    body = bytearray(stage.store.read_bytes())
    body[4096 * 2 : 4096 * 20] = os.urandom(4096 * 18)
    stage.store.write_bytes(body)
    assert found(stage)["store"]["level"] == "fail"
    stage.store.write_bytes(b"no database at all, but long enough to look like one" * 20)
    assert "not a database" in found(stage)["store"]["said"]


def test_a_rule_that_fits_no_page_is_doubtful(tmp_path: Path) -> None:
    rules = '[[pages]]\nmatch = "https://c.example/*"\n[[pages]]\nmatch = "*/tea"\n'
    stage = Stage(tmp_path, SETTINGS + rules)
    stage.furnish()
    told = found(stage, "http://127.0.0.1:9/")
    assert told["[[pages]]"]["said"] == "the store has no pages that match 'https://c.example/*'"


def test_a_budget_beyond_politeness_is_told(tmp_path: Path) -> None:
    slow = SETTINGS.replace("100%", "1000").replace("10ms", "10m")
    stage = Stage(tmp_path, slow)
    stage.furnish()
    said = found(stage, "http://127.0.0.1:9/")["budget"]
    assert said["level"] == "warn"
    assert (
        "politeness leaves fewer to 2 hosts: a.example 144 of 600, b.example 144 of 400"
        in (said["said"])
    )


def test_an_interval_that_cannot_be_kept_fails(stage: Stage) -> None:
    stage.furnish()
    stage.file.write_text('max_interval = "1h"\n' + SETTINGS)
    assert "needs ticks of at most" in found(stage, "http://127.0.0.1:9/")["max_interval"]["said"]


OWN = """\
class Fussy:
    predictor = "nosuch"
    def expected(self, pages, visits): ...
    def learn(self, outcomes): ...

class Broken(Fussy):
    def __init__(self): raise ValueError("no licence")
"""


@pytest.mark.parametrize(
    ("setting", "about", "said"),
    [
        ('policy = "own.py:Fussy"', "predictor", "no predictor is called 'nosuch'"),
        ('policy = "own.py:Broken"', "parts", "ValueError: no licence"),
        ('spacing = "nosuch"', "spacing", "no spacing is called 'nosuch'"),
        (f'policy = "uniform"\n{DESK}gate = "nosuch"', "gate", "no gate is called 'nosuch'"),
    ],
)
def test_what_run_cannot_build_fails(
    stage: Stage, monkeypatch: pytest.MonkeyPatch, setting: str, about: str, said: str
) -> None:
    """The doctor and `run` refuse the same settings, for the same reason."""
    monkeypatch.chdir(stage.folder)
    (stage.folder / "own.py").write_text(OWN)
    top, _, desk = setting.partition("\n")
    stage.file.write_text(f"{top}\n{SETTINGS}\n{desk}")
    stage.furnish()
    assert said in found(stage, "http://127.0.0.1:9/")[about]["said"]
    with pytest.raises((SalticusError, ValueError), match=said.removeprefix("ValueError: ")):
        asyncio.run(_built(stage.file))


async def _built(file: Path) -> None:
    async with crawler(load(file)):
        pass


def test_what_run_can_build_is_well(stage: Stage) -> None:
    stage.file.write_text('predictor = "serving"\n' + SETTINGS)
    asyncio.run(_built(stage.file))
    assert "predictor" not in found(stage, "http://127.0.0.1:9/")


# ----------------------------------------------------------------------------------------- a trial


def test_an_offer_is_tried(stage: Stage, shop: Shop) -> None:
    told = found(stage, f"{shop.url}/offer")
    assert told["value"]["said"].startswith("offer: 9.5 EUR (price 9.5, currency EUR")
    assert told["fetch"]["said"].startswith("200 in ")
    assert told["robots.txt"]["said"].endswith("/offer may be visited (no rule speaks of it)")
    assert not stage.store.exists()


def test_a_redirect_is_told(stage: Stage, shop: Shop) -> None:
    assert found(stage, f"{shop.url}/moved")["fetch"]["said"].endswith(
        f"moved for good to {shop.url}/offer"
    )


@pytest.mark.parametrize(
    ("path", "level", "said", "advice"),
    [
        ("bare", "warn", "no price was found", "no JSON-LD, microdata or OpenGraph"),
        ("shell", "fail", "no value was found", "render = true"),
        ("text", "ok", "page: Words of a page", ""),
    ],
)
def test_what_is_missing_is_named(
    stage: Stage, shop: Shop, path: str, level: str, said: str, advice: str
) -> None:
    value = found(stage, f"{shop.url}/{path}")["value"]
    assert value["level"] == level
    assert said in value["said"]
    assert advice in value["advice"]


def test_a_page_that_is_gone_fails(stage: Stage, shop: Shop) -> None:
    fetch = found(stage, f"{shop.url}/nothing")["fetch"]
    assert fetch["said"] == "gone: the server answered 404"
    assert "salticus forget" in fetch["advice"]


def test_what_is_disallowed_is_not_asked_for(stage: Stage, shop: Shop) -> None:
    told = found(stage, f"{shop.url}/private/x")
    assert "(Disallow: /private)" in told["robots.txt"]["said"]
    assert "/private/x" not in shop.hits
    assert "fetch" not in told


@pytest.fixture
def troubled(shop: Shop) -> Iterator[Shop]:
    """The shop while its robots.txt is answered with an error."""
    shop.robots_status = 500
    yield shop
    shop.robots_status = 200


def test_a_robots_txt_out_of_reach_is_told_and_what_it_means(
    tmp_path: Path, troubled: Shop
) -> None:
    stage, hits = Stage(tmp_path, SETTINGS + "retries = 0\n"), len(troubled.hits)
    told = found(stage, f"{troubled.url}/offer")
    host = troubled.url.removeprefix("http://")
    assert told["robots.txt"]["level"] == "fail"
    assert told["robots.txt"]["said"] == (
        "robots.txt could not be reached: the server answered 500; "
        f"until it can be read, no page of {host} is visited"
    )
    assert troubled.hits[hits:] == ["/robots.txt"]
    assert "fetch" not in told, "the page was not asked for"


def test_a_host_out_of_reach_is_not_called_one_without_rules(tmp_path: Path) -> None:
    stage = Stage(tmp_path, SETTINGS + "retries = 0\n")
    told = found(stage, "http://127.0.0.1:9/")["robots.txt"]
    assert told["level"] == "fail"
    assert told["said"].startswith("robots.txt could not be reached: cannot connect to 127.0.0.1")
    assert "proxy" in told["advice"]


@pytest.mark.parametrize(("path", "level"), [("/offer", "warn"), ("/private/x", "fail")])
def test_rules_read_before_hold_while_robots_txt_is_out_of_reach(
    tmp_path: Path, troubled: Shop, path: str, level: str
) -> None:
    stage = Stage(tmp_path, SETTINGS + "retries = 0\n")
    host, yesterday = troubled.url.removeprefix("http://"), time.time() - 86_400
    known = HostState(host, 0.0, 0, SHOP["/robots.txt"].decode(), 200, yesterday)
    visit = seen(1, 1, 1, "5 EUR")
    visit.hosts = (known,)
    stage.furnish([visit])
    told = found(stage, troubled.url + path)
    assert told["robots.txt"]["level"] == level
    assert ("what it said before holds" in told["robots.txt"]["said"]) == (level == "warn")
    assert ("fetch" in told) == (level == "warn")


def test_a_private_address_is_refused_with_advice(tmp_path: Path, shop: Shop) -> None:
    stage = Stage(tmp_path, SETTINGS.replace('allow_private = ["127.0.0.1"]', ""))
    told = found(stage, f"{shop.url}/offer")
    assert "allow_private" in told["fetch"]["advice"]


def test_what_is_no_url_is_named(stage: Stage) -> None:
    assert "'nonsense' is not a URL" in found(stage, "nonsense")["trial"]["said"]


def test_a_trial_leaves_nothing(stage: Stage, shop: Shop) -> None:
    stage.furnish([seen(1, 1, 1, "5 EUR")])
    before = stage.json("status"), stage.json("show", TEA)
    found(stage, f"{shop.url}/offer")
    assert (stage.json("status"), stage.json("show", TEA)) == before


def test_while_a_crawl_runs_nothing_is_tried(stage: Stage, shop: Shop) -> None:
    stage.furnish()
    hits = len(shop.hits)
    with instance_lock(stage.store):
        told = found(stage, f"{shop.url}/offer")
    assert "a crawl is running" in told["trial"]["said"]
    assert told["running"]["said"] == f"a crawl is running (process {os.getpid()})"
    assert len(shop.hits) == hits


def test_a_page_of_the_store_is_tried_if_none_is_named(stage: Stage, shop: Shop) -> None:
    stage.ok("add", f"{shop.url}/offer")
    assert found(stage)["value"]["said"].startswith("offer: 9.5 EUR")


def test_lines_fit_a_terminal(stage: Stage, shop: Shop, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "80")
    said = stage.run("doctor", f"{shop.url}/bare", "-c", str(stage.file))
    lines = said.out.splitlines()
    assert all(len(line) <= 80 or " " not in line.strip() for line in lines)
    assert all(re.match(r"(?:ok  |warn|fail)  \S|      ", line) for line in lines[:-1])
    assert re.fullmatch(r"\d+ ok, 2 to look at, 0 failed", lines[-1])


# --------------------------------------------------------------------------------------- judgements

paths = st.text("/ab$*", min_size=1, max_size=8).map(lambda text: f"/{text}")
lines = st.lists(st.tuples(st.sampled_from(["Allow", "Disallow"]), paths), max_size=5)


@given(lines, st.text("/ab", max_size=6))
def test_the_line_that_decides_agrees_with_the_rules(
    rules: list[tuple[str, str]], path: str
) -> None:
    """Where a line is named, it says what the parser decides."""
    text = "\n".join(["User-agent: *", *(f"{name}: {pattern}" for name, pattern in rules)])
    url = f"http://a.example/{path}"
    plain = all("$" not in pattern[:-1] for _, pattern in rules)
    line = deciding(text, url)
    if plain and (line is None or not line.endswith("*")):
        allowed = Protego.parse(text).can_fetch(url, AGENT)
        assert allowed == (line is None or line.startswith("Allow"))


def test_our_own_group_comes_first() -> None:
    text = f"User-agent: *\nDisallow: /\n\nUser-agent: other\nUser-agent: {AGENT}\nDisallow: /x"
    assert deciding(text, "http://a.example/y") is None
    assert deciding(text, "http://a.example/x1") == "Disallow: /x"


@given(st.binary(max_size=300))
def test_any_body_can_be_judged(body: bytes) -> None:
    assert isinstance(shell(body), bool)
    assert isinstance(sells(body), bool)
    assert set(styles(body)) <= {"JSON-LD", "microdata", "OpenGraph"}
    for kind in (None, "offer", "page", "source"):
        doubt(body, kind, None)


def test_no_doubt_without_a_reason() -> None:
    offer, text = Value("offer", "9 EUR"), Value("page", "Words")
    assert doubt(SHOP["/offer"], None, offer) is None
    assert doubt(SHOP["/text"], None, text) is None
    assert doubt(SHOP["/bare"], "page", text) is None
    assert doubt(SHOP["/bare"], "offer", None) is not None
