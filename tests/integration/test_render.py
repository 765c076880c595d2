"""Pages that are built by their scripts, and pages that do their worst."""

from __future__ import annotations

import asyncio
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any, TypeVar

import msgspec
import pytest

from salticus.checks.fetch import settings
from salticus.checks.fetch_server import Server, reply
from salticus.clock import SystemClock
from salticus.config import Fetch, Rule, Size, Span
from salticus.errors import ConfigError
from salticus.fetch.base import Answer, Ask
from salticus.fetch.browser import find
from salticus.fetch.http import HttpEngine
from salticus.fetch.polite import PoliteFetcher
from salticus.fetch.render import BrowserRenderer, Shelf
from salticus.types import Status

try:
    find(None)
except ConfigError as missing:
    pytest.skip(str(missing), allow_module_level=True)

T = TypeVar("T")
HOME = "https://shop.example/p/1"
SHELL = """<!doctype html><meta charset="iso-8859-1"><title>Caf\xe9</title>
<div id="offer"></div><script src="/app.js"></script>"""
APP = b"""fetch('/offer.json').then(answer => answer.json()).then(offer => {
  document.getElementById('offer').innerHTML =
    `<span itemprop="price" content="${offer.price}">${offer.price}</span>`;
})"""
OFFER = b'{"price": 12.5}'
FETCH = Fetch(timeout=Span(seconds=60), max_size=Size(3_000_000))
SHORT = msgspec.structs.replace(FETCH, timeout=Span(seconds=3))
BRIEF = msgspec.structs.replace(FETCH, timeout=Span(seconds=0.8))  # for what never ends well


@pytest.fixture(scope="module")
def runner() -> Iterator[asyncio.Runner]:
    with asyncio.Runner() as runner:
        yield runner


@pytest.fixture(scope="module")
def renderer(runner: asyncio.Runner) -> Iterator[BrowserRenderer]:
    renderer = BrowserRenderer(FETCH)
    yield renderer
    runner.run(renderer.close())


class Web:
    """Answers by path, and notes what it was asked for."""

    def __init__(self, **answers: bytes | Answer | None) -> None:
        self.answers = answers
        self.asked: list[str] = []

    async def ask(self, url: str) -> Answer | None:
        self.asked.append(url)
        name = url.rpartition("/")[2].partition("?")[0].replace(".", "_")
        found = self.answers.get(name, b"")
        if not isinstance(found, bytes):
            return found
        return Answer(url, Status.OK, 0.0, 200, body=found, content_type="text/javascript")


def page(markup: str, url: str = HOME) -> Answer:
    """A page as it was fetched."""
    body = markup.encode("latin-1")
    kind = "text/html; charset=iso-8859-1"
    return Answer(url, Status.OK, 7.0, 200, body=body, content_type=kind, etag='"1"')


async def shown(renderer: BrowserRenderer, markup: str, ask: Ask, wait: str | None = None) -> str:
    answer = await renderer.render(page(markup), wait, ask)
    assert answer.status is Status.OK, answer.fault
    return answer.body.decode("utf-8")


def script(text: str) -> str:
    return f"<!doctype html><p>before</p><script>{text}</script><p>after</p>"


# ----------------------------------------------------------------------------------- what they show


def test_a_page_is_what_its_scripts_make_of_it(
    runner: asyncio.Runner, renderer: BrowserRenderer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(renderer, "_scripts", Shelf())
    web = Web(app_js=APP, offer_json=OFFER)
    answer = runner.run(renderer.render(page(SHELL), None, web.ask))
    assert (answer.status, answer.url, answer.code) == (Status.OK, HOME, 200)
    assert answer.content_type == "text/html; charset=utf-8"
    assert (answer.charset, answer.etag, answer.answered_at) == ("utf-8", None, 7.0)
    text = answer.body.decode("utf-8")
    assert '<span itemprop="price" content="12.5">' in text
    assert "<title>Café</title>" in text
    assert web.asked == ["https://shop.example/app.js", "https://shop.example/offer.json"]


def test_scripts_are_asked_for_once_and_data_every_time(
    runner: asyncio.Runner, renderer: BrowserRenderer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(renderer, "_scripts", Shelf())
    web = Web(app_js=APP, offer_json=OFFER)
    for _ in range(2):
        assert "12.5" in runner.run(shown(renderer, SHELL, web.ask, "[itemprop=price]"))
    assert [url.rpartition("/")[2] for url in web.asked] == ["app.js", "offer.json", "offer.json"]


def test_a_page_is_done_when_the_selector_fits(
    runner: asyncio.Runner, renderer: BrowserRenderer
) -> None:
    late, never = (
        script(f"setTimeout(() => {{ document.body.id = 'done' }}, {ms})") for ms in (900, 900_000)
    )
    assert 'id="done"' not in runner.run(shown(renderer, never, Web().ask))
    assert 'id="done"' in runner.run(shown(renderer, late, Web().ask, "body#done"))


@pytest.mark.parametrize(
    ("wait", "words"),
    [("#never", "no element fits '#never' within 3 s"), ("p[", "is not a valid selector")],
)
def test_a_selector_that_does_not_fit_is_named(
    runner: asyncio.Runner,
    renderer: BrowserRenderer,
    wait: str,
    words: str,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(renderer, "settings", SHORT)
    answer = runner.run(renderer.render(page("<p>x"), wait, Web().ask))
    assert answer.status is Status.BROKEN
    assert words in (answer.fault or "")
    assert answer.body == b""


def test_what_is_no_markup_stays_as_it_is(
    runner: asyncio.Runner, renderer: BrowserRenderer
) -> None:
    data = Answer(HOME, Status.OK, 0.0, 200, body=OFFER, content_type="application/json")
    assert runner.run(renderer.render(data, None, Web().ask)) is data


def test_time_that_we_take_is_not_the_page_s(
    runner: asyncio.Runner, renderer: BrowserRenderer, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def slow(url: str) -> Answer | None:
        await asyncio.sleep(1.1)  # three in a row: longer than the limit
        return await Web(offer_json=OFFER).ask(url)

    monkeypatch.setattr(renderer, "settings", SHORT)
    loads = "for (let i = 0; i < 3; i++) offer = await (await fetch('/offer.json?' + i)).text();"
    text = f"(async () => {{ let offer; {loads} document.body.id = offer }})()"
    assert "12.5" in runner.run(shown(renderer, script(text), slow, "[id*='12.5']"))


def test_redirects_are_followed_through_us(
    runner: asyncio.Runner, renderer: BrowserRenderer
) -> None:
    moved = Answer("", Status.OK, 0.0, 302, location="https://cdn.example/app.js")
    web = Web(old_js=moved, app_js=APP, offer_json=OFFER)
    assert "12.5" in runner.run(shown(renderer, SHELL.replace("app", "old"), web.ask))
    web = Web(round_js=Answer("", Status.OK, 0.0, 302, location="/round.js"))
    runner.run(shown(renderer, SHELL.replace("app", "round"), web.ask))
    assert len(web.asked) == 6


def test_a_page_makes_us_send_so_many_requests_and_no_more(
    runner: asyncio.Runner, renderer: BrowserRenderer
) -> None:
    web = Web()
    asks = script("for (let i = 0; i < 90; i++) fetch('/x?' + i).catch(() => 0)")
    runner.run(shown(renderer, asks, web.ask))
    assert len(web.asked) == renderer.requests == 60


def test_pages_share_nothing(runner: asyncio.Runner, renderer: BrowserRenderer) -> None:
    note = "document.cookie = 'a=1'; localStorage.b = 2; sessionStorage.c = 3"
    tell = "document.body.id = document.cookie + Object.keys(localStorage) + 'nothing'"
    runner.run(shown(renderer, script(note), Web().ask))
    assert 'id="nothing"' in runner.run(shown(renderer, script(tell), Web().ask))


# -------------------------------------------------------------------------------- no way to the net

ESCAPES = """
const at = '127.0.0.1:PORT';
const tries = [
  () => new WebSocket('ws://' + at),
  () => new EventSource('http://' + at + '/events'),
  () => navigator.sendBeacon('http://' + at + '/beacon', 'x'),
  () => fetch('http://' + at + '/post', {method: 'POST', mode: 'no-cors', body: 'x'}),
  () => fetch('http://' + at + '/keep', {keepalive: true, method: 'POST', mode: 'no-cors'}),
  () => { new Image().src = 'http://' + at + '/image' },
  () => navigator.serviceWorker.register('/worker.js'),
  () => new Worker(URL.createObjectURL(new Blob([`new WebSocket('ws://${at}')`]))),
  () => window.open('http://' + at + '/popup'),
  () => new WebTransport('https://' + at + '/transport'),
  () => {
    const peer = new RTCPeerConnection({iceServers: [{urls: [`stun:${at}`]},
      {urls: [`turn:${at}?transport=tcp`], username: 'u', credential: 'c'}]});
    peer.createDataChannel('x');
    peer.createOffer().then(offer => peer.setLocalDescription(offer));
  },
  () => {
    for (const [rel, as] of [['prefetch'], ['preconnect'], ['dns-prefetch'], ['prerender'],
                             ['preload', 'image'], ['manifest'], ['icon'], ['stylesheet']]) {
      const link = document.createElement('link');
      Object.assign(link, {rel, as: as || '', href: 'http://' + at + '/' + rel});
      document.head.append(link);
    }
  },
  () => {
    for (const name of ['iframe', 'embed', 'object', 'video', 'audio', 'img']) {
      const element = document.createElement(name);
      element[name === 'object' ? 'data' : 'src'] = 'http://' + at + '/' + name;
      document.body.append(element);
    }
  },
  () => {
    const form = document.createElement('form');
    Object.assign(form, {action: 'http://' + at + '/form', method: 'POST', target: '_blank'});
    document.body.append(form);
    form.submit();
  },
  () => { location = 'http://' + at + '/away' },
];
for (const each of tries) try { Promise.resolve(each()).catch(() => 0) } catch { }
setTimeout(() => { document.body.id = 1 }, 900);
"""


class Listener(asyncio.DatagramProtocol):
    """Counts the datagrams that arrive."""

    def __init__(self) -> None:
        self.arrived = 0

    def datagram_received(self, data: bytes, addr: Any) -> None:
        self.arrived += 1


def test_nothing_goes_past_ask(runner: asyncio.Runner, renderer: BrowserRenderer) -> None:
    async def main() -> None:
        touched: list[Any] = []
        server = await asyncio.start_server(lambda *each: touched.append(each), "127.0.0.1", 0)
        port = server.sockets[0].getsockname()[1]
        loop = asyncio.get_running_loop()
        transport, listener = await loop.create_datagram_endpoint(
            Listener, local_addr=("127.0.0.1", port)
        )
        text = ESCAPES.replace("PORT", str(port))
        try:
            at_home = f"http://127.0.0.1:{port}/"  # also for a page that is at home there
            for url in (HOME, at_home):
                answer = await renderer.render(page(script(text), url), "[id='1']", web.ask)
                assert answer.status is Status.OK, answer.fault
        finally:
            transport.close()
            server.close()
        assert touched == []
        assert listener.arrived == 0

    web = Web()
    runner.run(main())
    assert web.asked == []  # none of these is something that a page may have


REFUSED = Answer("", Status.DISALLOWED, 0.0, fault="robots.txt disallows it")
SHAKEN = {
    "out of time": (None, Status.BUSY, "it could not be asked for in time"),
    "time-out": (Answer("", Status.TIMEOUT, 0.0, fault="slow"), Status.TIMEOUT, "slow"),
    "busy": (Answer("", Status.OK, 0.0, 503), Status.BUSY, "the server answered 503"),
    "broken": (Answer("", Status.OK, 0.0, 500), Status.HTTP, "the server answered 500"),
}


@pytest.mark.parametrize("name", SHAKEN)
def test_a_page_that_its_site_let_down_is_not_taken_for_what_it_shows(
    runner: asyncio.Runner, renderer: BrowserRenderer, name: str
) -> None:
    answer, status, fault = SHAKEN[name]
    web = Web(app_js=APP, offer_json=answer)
    found = runner.run(renderer.render(page(SHELL), None, web.ask))
    assert found.status is status
    assert found.fault == f"its scripts need https://shop.example/offer.json: {fault}"
    # what was waited for is there all the same
    assert "offer" in runner.run(shown(renderer, SHELL, web.ask, "#offer"))


@pytest.mark.parametrize("answer", [REFUSED, Answer("", Status.OK, 0.0, 404)])
def test_what_is_never_there_is_not_missed(
    runner: asyncio.Runner, renderer: BrowserRenderer, answer: Answer
) -> None:
    web = Web(app_js=APP, offer_json=answer)
    assert "12.5" not in runner.run(shown(renderer, SHELL, web.ask))
    assert web.asked[-1].endswith("/offer.json")


def test_other_sites_may_fail(runner: asyncio.Runner, renderer: BrowserRenderer) -> None:
    tracked = SHELL + "<script src=https://tracker.test/t.js></script>"
    web = Web(app_js=APP, offer_json=OFFER, t_js=None)
    assert "12.5" in runner.run(shown(renderer, tracked, web.ask))


def test_a_polite_visit_renders(runner: asyncio.Runner, renderer: BrowserRenderer) -> None:
    """The whole way: robots.txt forbids one of the two endpoints, and only that stays unasked."""
    refused = "fetch('/private/x').catch(() => { document.body.id = 'refused' })"
    shell = f"{SHELL}<script>{refused}</script>"
    robots = reply(b"User-agent: *\nDisallow: /private", Content_Type="text/plain")
    routes: dict[str, Any] = {
        "/robots.txt": robots,
        "/p": reply(shell.encode("latin-1"), Content_Type="text/html; charset=iso-8859-1"),
        "/app.js": reply(APP, Content_Type="text/javascript"),
        "/offer.json": reply(OFFER, Content_Type="application/json"),
    }

    async def main() -> None:
        async with Server(routes) as server:
            rules = (Rule(match="*/p", render=True, wait="[itemprop=price]"),)
            config = msgspec.structs.replace(settings(), pages=rules)
            clock = SystemClock()
            engine = HttpEngine(config.fetch, clock)
            fetcher = PoliteFetcher(engine, config, clock, renderer=renderer)
            fetched = await fetcher.fetch(config.ruled(server.target("/p")))
            await engine.close()
        assert fetched is not None
        assert (fetched.status, fetched.fault) == (Status.OK, None)
        assert b'content="12.5"' in fetched.body
        assert b'id="refused"' in fetched.body
        asked = [path for path, _ in server.arrivals]
        assert asked == ["/robots.txt", "/p", "/app.js", "/offer.json"]

    runner.run(main())


# ------------------------------------------------------------------------------------ hostile pages

HOSTILE = {
    "loop": "while (true) { }",
    "loop later": "setTimeout(() => { while (true) { } }, 50)",
    "alert": "while (true) alert(1)",
    "heap": "const a = []; while (true) a.push(new Array(1e5).fill({}))",
    "buffers": "const a = []; while (true) a.push(new Uint8Array(5e7).fill(1))",
    "growth": "setInterval(() => document.body.append('x'.repeat(1e6)), 1)",
    "large": "document.body.append(...Array(4000).fill('y'.repeat(1000)))",
    "flood": "setInterval(() => { for (let i = 0; i < 99; i++) fetch('/' + Math.random()) }, 1)",
    "blank": "location = 'about:blank'",
    "blank later": "setTimeout(() => { location = 'about:blank' }, 100)",
}
HARMLESS = {
    "open": "setInterval(() => { open('/x'); open('about:blank') }, 50)",
    "leave": "setInterval(() => { location = '/' + Math.random() }, 20)",
    "reload": "setTimeout(() => location.reload(), 50)",
    "refresh": "document.write('<meta http-equiv=refresh content=0;url=/x>')",
    "close": "close()",
    "confirm": "confirm(1); prompt(2); onbeforeunload = () => 'stay'",
    "service worker": "navigator.serviceWorker.register('/worker.js')",
    "clock": "setInterval(() => { document.body.id = Date.now() }, 10)",
    "names": "document.body.innerHTML += '<form name=querySelector></form><img name=doctype>'",
    "prototypes": "Object.getOwnPropertyDescriptor = JSON.stringify = Array = String = null",
    "surrogates": "document.body.append('\\ud800')",
    "history": "setInterval(() => history.pushState(0, '', '/' + Math.random()), 20)",
}


@pytest.mark.parametrize("name", HOSTILE)
def test_a_hostile_page_harms_only_itself(
    runner: asyncio.Runner, renderer: BrowserRenderer, name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    with monkeypatch.context() as briefly:
        briefly.setattr(renderer, "settings", BRIEF)
        answer = runner.run(renderer.render(page(script(HOSTILE[name])), None, Web().ask))
    assert answer.status in (Status.TIMEOUT, Status.BROKEN, Status.TOO_LARGE)
    assert answer.fault
    assert answer.body == b""
    web = Web(app_js=APP, offer_json=OFFER)
    assert "12.5" in runner.run(shown(renderer, SHELL, web.ask, "[itemprop=price]"))


def test_a_hostile_page_does_not_hold_up_its_neighbours(
    runner: asyncio.Runner, renderer: BrowserRenderer
) -> None:
    async def main() -> None:
        web = Web(app_js=APP, offer_json=OFFER)
        bad = asyncio.create_task(renderer.render(page(script("while (true) { }")), None, web.ask))
        assert "12.5" in await shown(renderer, SHELL, web.ask, "[itemprop=price]")
        assert not bad.done()
        bad.cancel()
        with pytest.raises(asyncio.CancelledError):
            await bad
        assert "12.5" in await shown(renderer, SHELL, web.ask, "[itemprop=price]")

    runner.run(main())


def test_a_page_stays_where_it_is(runner: asyncio.Runner, renderer: BrowserRenderer) -> None:
    async def main() -> list[Answer]:
        pages = [page(script(text)) for text in HARMLESS.values()]
        return await asyncio.gather(*(renderer.render(each, None, Web().ask) for each in pages))

    for name, answer in zip(HARMLESS, runner.run(main()), strict=True):
        assert answer.status is Status.OK, f"{name}: {answer.fault}"
        assert b"before" in answer.body, name
        assert b"after" in answer.body, name


def test_a_browser_that_dies_is_replaced(runner: asyncio.Runner, renderer: BrowserRenderer) -> None:
    async def main() -> str:
        await shown(renderer, SHELL, Web(app_js=APP, offer_json=OFFER).ask)
        assert renderer._browser is not None
        return await shown(renderer, SHELL, kill)

    async def kill(url: str) -> Answer | None:
        """The browser dies while the page waits for its data, once."""
        if not killed:
            killed.append(url)
            assert renderer._browser is not None
            os.kill(renderer._browser._pid, 9)
        return await Web(app_js=APP, offer_json=OFFER).ask(url)

    killed: list[str] = []
    assert "12.5" in runner.run(main())
    assert killed


# -------------------------------------------------------------------------------- what is left over


@pytest.fixture
def short() -> Iterator[Path]:
    """A folder with a short name: Chromium makes a socket in it."""
    with tempfile.TemporaryDirectory() as folder:
        yield Path(folder)


ENDLESS = """
import asyncio, sys
from salticus.config import Fetch
from salticus.fetch.base import Answer
from salticus.fetch.render import BrowserRenderer
from salticus.types import Status

async def ask(url):
    print(renderer._browser._pid, flush=True)
    await asyncio.Event().wait()

async def main():
    page = Answer("http://a.example/", Status.OK, 0.0, 200, b"<script src=x></script>", "text/html")
    await renderer.render(page, None, ask)

renderer = BrowserRenderer(Fetch())
asyncio.run(main())
"""


@pytest.mark.skipif(not Path("/proc/self").exists(), reason="processes are looked up in /proc")
@pytest.mark.parametrize("signal", [9, 15])
def test_no_browser_outlives_its_crawler(signal: int, short: Path) -> None:
    crawler = subprocess.Popen(
        [sys.executable, "-c", ENDLESS],
        stdout=subprocess.PIPE,
        text=True,
        env={**os.environ, "TMPDIR": str(short)},
    )
    with crawler:
        assert crawler.stdout is not None
        pid = int(crawler.stdout.readline())
        assert Path(f"/proc/{pid}").exists()
        crawler.send_signal(signal)
    deadline = time.monotonic() + 600
    while Path(f"/proc/{pid}").exists() or list(short.glob("playwright*")):
        assert time.monotonic() < deadline, list(short.iterdir())
        time.sleep(0.01)


@pytest.mark.parametrize("killed", [False, True])
def test_closing_leaves_nothing(short: Path, monkeypatch: pytest.MonkeyPatch, killed: bool) -> None:
    async def main() -> int:
        renderer = BrowserRenderer(FETCH)
        await shown(renderer, SHELL, Web().ask, "#offer")
        assert renderer._browser is not None
        pid = renderer._browser._pid
        if killed:
            os.kill(pid, 9)
        await renderer.close()
        await renderer.close()
        return pid

    monkeypatch.setenv("TMPDIR", str(short))
    monkeypatch.setattr("tempfile.tempdir", None)
    pid = asyncio.run(main())
    assert list(short.iterdir()) == []
    assert not Path(f"/proc/{pid}").exists()


# ------------------------------------------------------------------------------- what must be there


def test_a_missing_browser_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(ConfigError, match="fetch.browser: there is no program 'nosuch'"):
        BrowserRenderer(Fetch(browser="nosuch"))
    monkeypatch.setenv("PATH", "")
    with pytest.raises(ConfigError, match="install the system's package `chromium`"):
        BrowserRenderer(Fetch())
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None)
    with pytest.raises(ConfigError, match=r"pip install 'salticus\[render\]'"):
        BrowserRenderer(Fetch())


def test_a_program_that_is_no_browser_is_named(runner: asyncio.Runner) -> None:
    async def main() -> Answer:
        renderer = BrowserRenderer(Fetch(browser="false"))
        answer = await renderer.render(page("<p>"), None, Web().ask)
        await renderer.close()
        return answer

    answer = runner.run(main())
    assert answer.status is Status.BROKEN
    assert "false cannot be started" in (answer.fault or "")
