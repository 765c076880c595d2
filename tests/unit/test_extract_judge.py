"""Walls, errors and empty shells are known for what they are; real pages are left alone."""

from __future__ import annotations

import pytest

from salticus.extract.base import Content
from salticus.extract.document import ParsedPage
from salticus.extract.judge import EMPTY, SCRIPTED, judge
from salticus.extract.text import Text
from salticus.types import Reading, Status, Value

URL = "https://a.example/kettles/blue"
STORY = (
    "The mill at the end of the valley has ground flour for two hundred years, and the miller says "
    "that the wheel has never stood still for more than a week. This spring the river was low, and "
    "for the first time he had to wait for rain before he could open the sluice again. "
)
NAV = "<nav>" + "".join(f"<a href='/c/{n}'>Room {n}</a> " for n in range(8)) + "</nav>"
BANNER = (
    "<div id='consent'><h2>We value your privacy</h2><p>We and our partners use cookies to show "
    "you personalised advertising and to measure our audience.</p><button>Accept all</button>"
    "<button>Reject all</button></div>"
)


def page(title: str, h1: str, body: str, *, lang: str = "en", head: str = "") -> str:
    heading = f"<h1>{h1}</h1>" if h1 else ""
    return (
        f"<!doctype html><html lang={lang}><head><meta charset=utf-8><title>{title}</title>{head}"
        f"</head><body>{heading}{body}</body></html>"
    )


def verdict(html: str, url: str = URL, value: Value | None = None, **how: bool) -> Reading | None:
    document = ParsedPage(Content(url, html.encode(), "text/html"))
    found = value or Text().extract(document.content)
    return judge(document, found if isinstance(found, Value) else None, **how)


MISSING = {
    "english": page("Page not found – Tea & Co", "Page not found", f"{NAV}<p>Sorry about that."),
    "english, a number": page("404", "404", "<p>Not found"),
    "english, with interjection": page("Tea & Co", "Oops! That page can’t be found.", NAV),
    "english, a product": page(
        "Tea & Co", "This product is no longer available", f"<p>You may like:{NAV}"
    ),
    "english, without headings": page(
        "Tea & Co", "", "<p>The page you are looking for does not exist.</p><a href=/>Home</a>"
    ),
    "english, apache": page("404 Not Found", "Not Found", "<p>The requested URL was not found"),
    "english, in the title alone": page("Error 404 | Tea & Co", "", NAV + "<p>Try our search."),
    "english, among recommendations": page(
        "Page not found", "Sorry, this page could not be found", "<p>Bestsellers:" + STORY * 4
    ),
    "english, a domain": page("a.example", "This domain is for sale", "<p>Make an offer."),
    "english, a shop system": page(
        "404 Not Found",
        "Whoops, our bad...",
        "<dl><dt>The page you requested was not found, and we have a fine guess why.<dd>If you "
        "typed the address, please make sure the spelling is correct. If you clicked on a link, "
        "the link is outdated.<dt>What can you do?<dd>Go back, or use the search at the top of "
        "the page to find your products. Follow these links: Store Home, My Account.</dl>",
    ),
    "english, two sentences": page(
        "Craft", "Uh oh!", "<p>Sorry, the page you were looking for was not found.</p>"
    ),
    "german": page("Seite nicht gefunden", "Die Seite wurde leider nicht gefunden", NAV, lang="de"),
    "german, an article": page(
        "Kessel", "Dieser Artikel ist leider nicht mehr verfügbar", NAV, lang="de"
    ),
    "german, existence": page("Fehler 404", "Diese Seite existiert nicht mehr", NAV, lang="de"),
    "german, we": page("Tee", "Wir konnten die Seite leider nicht finden", NAV, lang="de"),
    "german, an ad": page(
        "Tee", "Die gewünschte Anzeige ist nicht mehr verfügbar.", NAV, lang="de"
    ),
    "spanish, we": page("Té", "¡Ups! No encontramos la página que buscas", NAV, lang="es"),
    "portuguese, we": page("Chá", "Ops! Não encontramos a página", NAV, lang="pt"),
    "italian, a product": page("Tè", "Prodotto non più disponibile", NAV, lang="it"),
    "norwegian": page("Te", "Beklager, siden finnes ikke", NAV, lang="no"),
    "finnish": page("Tee", "Sivua ei löytynyt", NAV, lang="fi"),
    "hungarian": page("Tea", "A keresett oldal nem található", NAV, lang="hu"),
    "french": page("Page introuvable", "Oups ! Cette page n’existe plus", NAV, lang="fr"),
    "french, a product": page("Thé", "Ce produit n'est plus disponible", NAV, lang="fr"),
    "spanish": page("Página no encontrada", "La página que busca no existe", NAV, lang="es"),
    "italian": page("Pagina non trovata", "Errore 404", NAV, lang="it"),
    "portuguese": page("Erro 404", "Página não encontrada", NAV, lang="pt"),
    "dutch": page("Pagina niet gevonden", "Deze pagina bestaat niet meer", NAV, lang="nl"),
    "polish": page("Błąd 404", "Strona nie została znaleziona", NAV, lang="pl"),
    "czech": page("Stránka nenalezena", "Stránka nebyla nalezena", NAV, lang="cs"),
    "swedish": page("Sidan kunde inte hittas", "Sidan finns inte längre", NAV, lang="sv"),
    "danish": page("Siden findes ikke", "Siden blev ikke fundet", NAV, lang="da"),
    "russian": page("Ошибка 404", "Страница не найдена", NAV, lang="ru"),
    "turkish": page("Sayfa bulunamadı", "Aradığınız sayfa bulunamadı", NAV, lang="tr"),
    "japanese": page("404", "お探しのページは見つかりませんでした", NAV, lang="ja"),
    "chinese": page("404", "您访问的页面不存在", NAV, lang="zh"),
    "korean": page("오류", "페이지를 찾을 수 없습니다", NAV, lang="ko"),
}

BLOCKED = {
    "cloudflare": page(
        "Just a moment...",
        "a.example",
        "<p>Verifying you are human. This may take a few seconds.</p>"
        "<script>window._cf_chl_opt={cvId:'3'}</script>",
    ),
    "cloudflare, german": page(
        "Nur einen Moment…", "", "<p>Bitte warten.<script>window._cf_chl_opt={}</script>", lang="de"
    ),
    "cloudflare, refused": page(
        "Attention Required! | Cloudflare",
        "Sorry, you have been blocked",
        "<p>You are unable to access a.example</p><p>Ray ID: 88aa</p><div id='cf-error-details'>",
    ),
    "akamai": page(
        "Access Denied",
        "Access Denied",
        'You don\'t have permission to access "http://a.example/" on this server.'
        "<p>Reference #18.2d</p><p>https://errors.edgesuite.net/18.2d",
    ),
    "datadome": page(
        "a.example",
        "",
        "<p id=cmsg>Please enable JS and disable any ad blocker</p>"
        "<script>var dd={'host':'geo.captcha-delivery.com'}</script>",
    ),
    "perimeterx": page(
        "Access to this page has been denied", "", "<div id=px-captcha></div><p>Press &amp; Hold"
    ),
    "search engine": page(
        "Sorry...",
        "",
        "<p>Our systems have detected unusual traffic from your computer network.</p>"
        "<div class=g-recaptcha></div>",
    ),
    "robot check": page("Robot Check", "", "<p>Enter the characters you see below <img src=c>"),
    "hcaptcha alone": page(
        "Security check", "", "<p>Complete the security check.</p><div class=h-captcha></div>"
    ),
    "incapsula": page(
        "", "", "<p>Request unsuccessful. Incapsula incident ID: 123-456<iframe></iframe>"
    ),
    "incapsula, in a frame": page("", "", "<iframe>Incapsula incident ID: 1</iframe>"),
    "characters": page(
        "Shop",
        "",
        "<p>Sorry, we just need to make sure you're not a robot.</p>"
        "<form action=/errors/validateCaptcha><input name=letters></form>",
    ),
    "too many": page("429 Too Many Requests", "429 Too Many Requests", "<hr>nginx"),
    "interruption": page(
        "Pardon Our Interruption",
        "Pardon Our Interruption",
        "<p>As you were browsing, something about your browser made us think you were a bot.",
    ),
    "forbidden": page("403 Forbidden", "403 Forbidden", "<hr>nginx"),
    "french": page("Accès refusé", "Accès refusé", "<p>Votre adresse est bloquée.", lang="fr"),
    "russian": page(
        "Вы не робот?", "", "<p>Подтвердите, что вы не робот<div class=captcha>", lang="ru"
    ),
    "chinese": page("安全验证", "", "<p>请完成人机验证<div id=captcha></div>", lang="zh"),
    "consent": page(
        "Before you continue to A",
        "Before you continue",
        "<p>We use cookies and data to deliver services and measure advertising.</p>"
        "<p>If you choose Accept all, we will also use cookies to personalise content.</p>"
        "<form><button>Reject all</button><button>Accept all</button></form>"
        "<a href=/p>Privacy</a> <a href=/t>Terms</a>",
    ),
    "consent, german": page(
        "Zustimmung erforderlich",
        "",
        "<h2>Mit Werbung weiterlesen</h2><p>Wir und unsere 180 Partner verwenden Cookies für "
        "Werbung und Analyse. Details in der Datenschutzerklärung.</p>"
        "<button>Alle akzeptieren</button><a href=/i>Impressum</a>",
        lang="de",
    ),
    "login": page(
        "Log in | Members",
        "Log in",
        "<form>Name <input name=u>Password <input type=password><button>Log in</button></form>",
    ),
    "login, polish": page(
        "Zaloguj się", "", "<form><input name=u><input type=password></form>", lang="pl"
    ),
}

SHELLS = {
    "root": page("Tea & Co", "", "<div id=root></div><script src=/main.js></script>"),
    "noscript": page(
        "Tea & Co", "", "<noscript>You need to enable JavaScript to run this app.</noscript>"
    ),
    "told": page("Tea & Co", "", "<p>Please enable JavaScript to view this page."),
    "loading": page("Tea & Co", "", "<div id=app>Loading…</div><script src=/a.js></script>"),
    "german": page("Tee", "", "<noscript>Bitte aktivieren Sie JavaScript.</noscript>", lang="de"),
    "french": page("Thé", "", "<p>Veuillez activer JavaScript.", lang="fr"),
    "japanese": page("茶", "", "<p>JavaScriptを有効にしてください。", lang="ja"),
}

FAILING = {
    "gateway": page("502 Bad Gateway", "502 Bad Gateway", "<hr>nginx"),
    "maintenance": page("Tea & Co", "We'll be back soon!", "<p>Sorry for the inconvenience."),
    "german": page("Wartungsarbeiten", "", "<p>Wir sind bald zurück.", lang="de"),
    "database": page("Database Error", "Error establishing a database connection", ""),
}

REAL = {
    "an article about 404s": page(
        "How to fix a 404 error", "How to fix a 404 error", f"<p>A page not found… {STORY * 3}"
    ),
    "a long article called so": page("404 Not Found", "404 Not Found", f"<p>{STORY * 9}"),
    "a short note about 404s": page(
        "404s on our site", "We fixed our 404s", "<p>Some pages could not be found last week."
    ),
    "a shop that asks": page(
        "Kettles", "Kettles", f"{NAV}<p>Not found what you look for? Ask us! {STORY}"
    ),
    "a shop that asks, short": page("Kettles", "", "<p>Not found what you look for? Ask us!"),
    "a question": page("Help", "", "<p>What to do when the page could not be found?"),
    "found": page("Lost and found", "Page found", "<p>The lost page of the book was found."),
    "a car": page("Peugeot 404", "Peugeot 404", "<p>A saloon built from 1960 on."),
    "a room": page("Room 404", "Room 404", "<p>A bed, a desk and a view of the river."),
    "one product is gone": page(
        "Kettles", "Kettles", f"<p>{STORY}</p><ul><li>Blue kettle: no longer available</ul>"
    ),
    "an empty search": page("Search", "Search", "<p>No results found for “ketle”."),
    "stock": page("Blue kettle", "Blue kettle", "<p>Out of stock. Back in March."),
    "a list of error codes": page(
        "Status codes", "Status codes", "<dl><dt>404<dd>Not found<dt>403<dd>Forbidden</dl>" + STORY
    ),
    "an article about captchas": page(
        "Why captchas annoy us",
        "Why captchas annoy us",
        f"<p>“Verify you are human”, they say, and we click on buses. {STORY * 3}",
    ),
    "a teaser about captchas": page(
        "Magazine",
        "Captchas are dying",
        NAV + "<p>Sites ask you to verify you are human. Read how this ends.",
    ),
    "a contact form with a captcha": page(
        "Contact", "Contact", f"<p>Write to us. {STORY}<form><div class=g-recaptcha></div></form>"
    ),
    "a short contact form": page(
        "Contact", "Contact", "<p>Write to us.<form><div class=g-recaptcha></div></form>"
    ),
    "behind cloudflare": page(
        "Kettles", "Kettles", "<p>Open today.<script src=/cdn-cgi/challenge-platform/x></script>"
    ),
    "a band": page("Access Denied (band)", "Access Denied (band)", f"<p>{STORY}"),
    "a film": page("Forbidden", "Forbidden", "<p>A film of 1932 with Barbara Stanwyck."),
    "a song": page("Un momento", "Un momento", "<p>A song about a summer.", lang="es"),
    "a moment": page("Just a moment", "Just a moment", "<p>A poem about a moment in June."),
    "a cookie banner on top": page("Mill", "The old mill", BANNER + f"<p>{STORY}"),
    "a cookie banner on a short page": page(
        "Bakery", "Opening hours", BANNER + "<p>Monday to Friday 9 to 17"
    ),
    "a banner on a page without a heading": page(
        "Bakery",
        "",
        BANNER + "<p>Monday to Friday from 9 to 17, Saturday from 10 to 14."
        "<p>Closed on Sundays and on holidays, and in the first two weeks of August.",
    ),
    "a cookie recipe": page(
        "Cookies", "Oatmeal cookies", "<p>Mix oats and sugar. Bake.</p><button>OK</button>"
    ),
    "a privacy policy": page(
        "Privacy policy", "Your privacy", BANNER + "<p>We keep personal data for a year. " * 60
    ),
    "a short cookie policy": page(
        "Cookie policy", "Cookie policy", "<p>We set one cookie, to keep your basket."
    ),
    "a login in the header": page(
        "Mill", "The old mill", f"<form><input type=password></form><p>{STORY}"
    ),
    "a short page with a login": page(
        "Club", "Next meeting", "<form><input type=password></form><p>Friday at eight."
    ),
    "how to log in": page("How to log in", "How to log in", "<p>Press the green button."),
    "a noscript hint": page(
        "Mill", "The old mill", f"<noscript>Please enable JavaScript.</noscript><p>{STORY}"
    ),
    "a rendered app": page(
        "Mill", "", f"<div id=root><h1>The old mill</h1><p>{STORY}</div><script src=/a></script>"
    ),
    "a short status page": page(
        "Status", "", "<div id=root><p>All systems are up and running today.</div><script></script>"
    ),
    "an article about scripts": page(
        "JavaScript", "On scripts", f"<p>Few enable JavaScript today. {STORY}"
    ),
    "news of maintenance": page(
        "News", "Maintenance of the mill", f"<p>The mill is under maintenance. {STORY}"
    ),
    "a german page": page("Mühle", "Die alte Mühle", "<p>Seite 404 fehlt im Buch.", lang="de"),
    "a japanese page": page("急須", "急須の選び方", "<p>ページ数が多い本です。" * 5, lang="ja"),
    "an encyclopedia": page(
        "HTTP 404 – Encyclopedia", "HTTP 404", f"<p>A response code of servers. {STORY * 3}"
    ),
    "a knowledge base": page("Error 404 – Help", "Error 404", f"<p>Check the address. {STORY * 2}"),
    "not to be had now": page(
        "Kessel", "Kessel blau", "<p>Dieser Artikel ist zur Zeit nicht lieferbar.", lang="de"
    ),
    "a manual": page("Manual", "Reset", "<p>Press and hold the button for three seconds."),
    "rules of an archive": page(
        "Archive", "Rules", "<p>You do not have permission to access the archive on Sundays."
    ),
    "a toy": page("Robot", "Are you human?", "<p>A toy robot for children, 30 cm high."),
    "a consent form": page(
        "Consent form", "Consent form", "<p>Parents sign this form.</p><button>Accept</button>"
    ),
    "a library": page("captcha.js", "captcha.js", "<p>It draws captchas.<img src=captcha.png>"),
    "a welcome": page("Bakery", "Welcome to the bakery", "<p>Bread.</p><button>OK</button>"),
    "one word": page("Kettle", "", "<p>Soon"),
    "nothing": "",
}


@pytest.mark.parametrize("name", MISSING)
def test_missing_pages(name: str) -> None:
    found = verdict(MISSING[name])
    assert found is not None
    assert found.status is Status.SOFT_404
    assert found.fault
    assert found.value is None


@pytest.mark.parametrize("name", BLOCKED)
def test_walls(name: str) -> None:
    found = verdict(BLOCKED[name])
    assert found is not None
    assert found.status is Status.BLOCKED
    assert found.fault
    assert found.value is None


@pytest.mark.parametrize("name", SHELLS)
def test_shells_lose_their_value_and_say_how_to_get_it(name: str) -> None:
    assert verdict(SHELLS[name]) == Reading(fault=SCRIPTED)
    assert verdict(SHELLS[name], rendered=True) == Reading(fault=EMPTY)


@pytest.mark.parametrize("name", FAILING)
def test_sites_that_are_down_have_no_value(name: str) -> None:
    found = verdict(FAILING[name])
    assert found is not None
    assert (found.value, found.status) == (None, Status.OK)
    assert found.fault
    assert found.fault.startswith("the site says")


@pytest.mark.parametrize("name", REAL)
def test_real_pages_are_left_alone(name: str) -> None:
    assert len(REAL) >= 30
    assert verdict(REAL[name]) is None


@pytest.mark.parametrize("html", [MISSING["english"], BLOCKED["akamai"], SHELLS["root"]])
def test_an_offer_with_a_price_is_never_judged(html: str) -> None:
    assert verdict(html, value=Value("offer", "5 EUR", {"price": "5"})) is None
    assert verdict(html, value=Value("page", "word " * 500)) is None


def test_only_html_is_judged() -> None:
    for kind in ("application/json", "text/plain", "application/xml"):
        content = Content(URL, b'{"title": "404 Not Found"}', kind)
        assert judge(ParsedPage(content), None) is None
    assert judge(ParsedPage(Content(URL, b"GIF89a<title>404</title>", "text/html")), None) is None


def test_a_wall_is_known_by_its_address_too() -> None:
    body = "<p>Our 200 partners use cookies.</p><button>OK</button>"
    assert verdict(page("A", "", body)) is None
    found = verdict(page("A", "", body), url="https://consent.a.example/collect")
    assert found is not None
    assert found.status is Status.BLOCKED
