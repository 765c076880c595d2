"""Which links of a page are followed, and which traps are not."""

from __future__ import annotations

import pytest

from salticus.extract.address import address, site
from salticus.extract.base import Content
from salticus.extract.clutter import MOST_BOXES, is_list_part, without_session
from salticus.extract.links import FEWEST, MOST, MOST_ALIKE, Listing, links_of, read_links
from salticus.urls import without_tracking

URL = "https://www.shop.example/hub/"


def links(body: str, url: str = URL, charset: str | None = None) -> list[str]:
    content = Content(url, body.encode(charset or "utf-8"), "text/html", charset)
    return [entry.url for entry in read_links(content)]


def near(url: str, *others: str) -> list[str]:
    body = "".join(f'<a href="{other}">x</a>' for other in others).encode()
    return [entry.url for entry in links_of(Content(url, body))]


def test_links_in_order_and_once() -> None:
    body = """<a href="b">1</a><a href="/a#top">2</a><map><area href="../c?x=1&amp;y=2"></map>
      <a href="/a">3</a><A HREF='https://www.shop.example/d'>4</A><a href=" e
      ">5</a><link rel="prev next" href="?after=2"><link rel="stylesheet" href="/s">"""
    pages = [
        "https://www.shop.example/a",
        "https://www.shop.example/c?x=1&y=2",
        "https://www.shop.example/d",
        "https://www.shop.example/hub/b",
        "https://www.shop.example/hub/e",
    ]
    assert sorted(links(body)) == pages
    assert links(body)[0] == "https://www.shop.example/hub/b"
    following = links_of(Content(URL, body.encode()))
    onward = "https://www.shop.example/hub/?after=2"
    assert sorted(entry.url for entry in following) == sorted([*pages, onward])


@pytest.mark.parametrize(
    "link",
    [
        '<a rel="nofollow" href="/x">',
        '<a rel="noopener UGC" href="/x">',
        '<a rel="sponsored" href="/x">',
        '<a href="">',
        '<a href="#top">',
        '<a href="https://www.shop.example/hub/#self">',
        "<a>",
        '<a href="mailto:a@shop.example">',
        '<a href="javascript:void(0)">',
        '<a href="tel:123">',
        '<a href="data:text/html,x">',
        '<a href="ftp://www.shop.example/">',
        '<a href="https://other.example/">',
        '<a href="https://shop.example.evil.example/">',
        '<a href="//other.example/x">',
        '<a href="http://[::1">',
        '<a href="/picture.JPG">',
        '<a href="/archive.zip?v=2">',
        f'<a href="/{"x" * 3000}">',
        '<!-- <a href="/x"> -->',
        "<script>document.write('<a href=\"/x\">')</script>",
        '<template><a href="/x"></template>',
    ],
)
def test_what_is_not_followed(link: str) -> None:
    assert links(f"<body>{link}text</a>") == []


def test_pages_that_want_no_followers_have_none() -> None:
    assert links('<meta name="ROBOTS" content="noindex, NoFollow"><a href="/x">x</a>') == []


def test_base() -> None:
    assert links('<base href="/other/"><a href="x">') == ["https://www.shop.example/other/x"]
    assert links('<base href="https://evil.example/"><a href="x"><a href="/y">') == []
    assert links('<base href="::::"><a href="/x">') == ["https://www.shop.example/x"]


def test_ports_of_a_numeric_address_are_different_sites() -> None:
    body = '<a href="/x"><a href="http://127.0.0.1:8002/y">'
    assert links(body, "http://127.0.0.1:8001/") == ["http://127.0.0.1:8001/x"]


def test_other_hosts_of_the_site_count() -> None:
    assert links('<a href="http://blog.shop.example/1">') == ["http://blog.shop.example/1"]


@pytest.mark.parametrize(
    ("host", "expected"),
    [
        ("www.shop.co.uk", "shop.co.uk"),
        ("a.b.shop.com", "shop.com"),
        ("one.myshopify.com", "one.myshopify.com"),
        ("shop.example", "shop.example"),
        ("co.uk", "co.uk"),
        ("localhost", "localhost"),
        ("a.localhost", "a.localhost"),
        ("127.0.0.1", "127.0.0.1"),
        ("127.0.0.1:8001", "127.0.0.1:8001"),
        ("www.shop.com:8443", "shop.com"),
        ("[::1]", "[::1]"),
        ("www.xn--bcher-kva.de", "xn--bcher-kva.de"),
    ],
)
def test_sites(host: str, expected: str) -> None:
    assert site(host) == expected


@pytest.mark.parametrize(
    ("url", "expected"),
    [
        ("http://a.example/x;jsessionid=0A1B?q=1", "http://a.example/x?q=1"),
        ("http://a.example/x?PHPSESSID=abc&q=1", "http://a.example/x?q=1"),
        ("http://a.example/x?q=1&sessionid=5", "http://a.example/x?q=1"),
        ("http://a.example/x?ASPSESSIONIDABC=5", "http://a.example/x"),
        ("http://a.example/x?CFID=1&CFTOKEN=2", "http://a.example/x"),
        ("http://a.example/(S(lit3py55t21z5v55vlm25s55))/x", "http://a.example/x"),
        ("http://a.example/x?sid=0123456789abcdef0123", "http://a.example/x"),
        ("http://a.example/x?sid=42", "http://a.example/x?sid=42"),
        ("http://a.example/x?inside=1", "http://a.example/x?inside=1"),
        ("http://a.example/sessions?season=winter", "http://a.example/sessions?season=winter"),
    ],
)
def test_sessions_are_taken_out(url: str, expected: str) -> None:
    assert without_session(url) == expected
    assert without_session(expected) == expected


def test_sessions_do_not_multiply_pages() -> None:
    body = "".join(f'<a href="/x;jsessionid={n}?a=1&PHPSESSID={n}">' for n in range(50))
    assert links(body) == ["https://www.shop.example/x?a=1"]


@pytest.mark.parametrize(
    ("query", "kept"),
    [
        ("utm_source=rss&utm_medium=feed", ""),
        ("id=7&utm_campaign=x", "?id=7"),
        ("fbclid=1&gclid=2&msclkid=3&mc_cid=4&srsltid=5", ""),
        ("UTM_Source=a&a=b", "?a=b"),
        ("page_id=3&ref=home", "?page_id=3&ref=home"),
        ("pk_id=3&glid=1&futm_x=2", "?pk_id=3&glid=1&futm_x=2"),
        ("", "?"),
    ],
)
def test_trackers_are_taken_out(query: str, kept: str) -> None:
    url = "https://www.shop.example/x"
    assert without_tracking(f"{url}?{query}") == url + kept
    if query:
        assert links(f'<a href="/x?{query}">') == [url + kept]
        assert near("https://www.shop.example/y", f"/x?{query}") == [url + kept]


@pytest.mark.parametrize(
    ("path", "is_part"),
    [
        ("/news/page/2", True),
        ("/news/page/2/", True),
        ("/news/page-3?sort=new", True),
        ("/news/?page=2", True),
        ("/news/?sort=new&PAGE=2&x=y", True),
        ("/news/?start=20", True),
        ("/2026/11/18/", True),
        ("/blog/2026/11", True),
        ("/2026/", True),
        ("/archive/2026", True),
        ("/events/?tribe-bar-date=2026-11-18", True),
        ("/2026/11/18/a-storm", False),
        ("/2026/11/18/12345678", False),
        ("/p/2026", False),
        ("/p/2", False),
        ("/?p=2", False),
        ("/frontpage2-review", False),
        ("/?page=about", False),
        ("/news/homepage/7", False),
        ("/?startle=2", False),
    ],
)
def test_parts_of_lists_are_no_pages(path: str, is_part: bool) -> None:
    assert is_list_part("https://www.shop.example" + path) == is_part
    assert links(f'<a href="/a"><a href="{path}">')[1:] == [
        "https://www.shop.example" + path for _ in range(not is_part)
    ]


def test_a_list_of_nothing_but_parts_is_a_list() -> None:
    assert len(links('<a href="/2026/11/17/"><a href="/2026/11/18/">')) == 2


def shown(box: str, outside: int = FEWEST) -> set[str]:
    """Which of the links /1 to /3 in a box count, with so many others outside."""
    others = "".join(f'<p><a href="/other/{chr(97 + n)}">x</a></p>' for n in range(outside))
    inside = "".join(f'<li><a href="/{n}">x</a></li>' for n in (1, 2, 3))
    found = links(f"<body><div>{others}</div>{box.replace('LINKS', inside)}</body>")
    return {url.rpartition("/")[2] for url in found} & {"1", "2", "3"}


@pytest.mark.parametrize(
    "box",
    [
        "<nav>LINKS</nav>",
        "<aside><div>LINKS</div></aside>",
        "<footer>LINKS</footer>",
        '<div role="navigation">LINKS</div>',
        '<div class="box related-posts">LINKS</div>',
        '<section class="Most-Read">LINKS</section>',
        '<ul id="mostread">LINKS</ul>',
        '<div class="trending_now"><ul>LINKS</ul></div>',
        '<div class="x recommended">LINKS</div>',
    ],
)
def test_boxes_show_no_new_pages(box: str) -> None:
    assert shown(box) == set()
    assert shown(box, outside=FEWEST - 1) == {"1", "2", "3"}, "law: a hub is more than its boxes"
    assert shown(f'<p><a href="/2">x</a></p>{box}') == {"2"}, "law: once outside is enough"
    body = f"<body>{box.replace('LINKS', '<a href=/1>x</a>')}</body>".encode()
    assert len(links_of(Content(URL, body))) == 1, "law: ordinary pages have no boxes"


@pytest.mark.parametrize(
    "box",
    [
        '<div class="unrelated">LINKS</div>',
        '<div class="popularity">LINKS</div>',
        '<div class="almost-new">LINKS</div>',
        '<article class="related">LINKS</article>',
        "<main>LINKS</main>",
        "<header>LINKS</header>",
    ],
)
def test_what_is_no_box(box: str) -> None:
    assert shown(box) == {"1", "2", "3"}


def test_an_item_with_a_box_name_is_no_box() -> None:
    item = '<div class="product popular"><a href="/1">x</a> <a href="/1#reviews">3</a></div>'
    assert shown(item) == {"1"}


def test_a_class_counts_once_however_many_names_it_has() -> None:
    item = '<div class="popular trending related">x</div>'
    assert shown(item * (MOST_BOXES - 1) + "<footer>LINKS</footer>") == set()
    assert shown(item * MOST_BOXES + "<footer>LINKS</footer>") == {"1", "2", "3"}


def test_a_page_that_is_one_box_is_none() -> None:
    body = '<body><div class="popular">' + "".join(f'<a href="/{c}">' for c in "abcdefgh")
    assert len(links(body)) == 8


def test_numbers_do_not_multiply_pages_for_ever() -> None:
    body = "".join(f'<a href="/day/{n}">' for n in range(1000)) + '<a href="/other">'
    assert len(links(body)) == MOST_ALIKE + 1
    assert links(body)[-1] == "https://www.shop.example/other"


def test_there_is_a_most() -> None:
    words = (f"{a}{b}{c}" for a in "abcdefghij" for b in "abcdefghij" for c in "abcdefghij")
    assert len(links("".join(f'<a href="/{word}">' for word in words))) == MOST


@pytest.mark.parametrize(
    ("own", "other", "followed"),
    [
        ("/list?page=2", "/list?page=3", True),
        ("/list?page=100", "/list?page=101", False),
        ("/calendar/2026/11", "/calendar/2026/12", True),
        ("/calendar/2026/12", "/calendar/2027/01", False),
        ("/calendar?month=12&year=2026", "/calendar?month=1&year=2027", False),
        ("/p/1234", "/p/1235", False),
        ("/p/1234", "/q/1235", True),
        ("/p/1234", "/p/1234?variant=2", True),
    ],
)
def test_ordinary_pages_lead_on_but_not_for_ever(own: str, other: str, followed: bool) -> None:
    base = "https://www.shop.example"
    assert near(base + own, base + other) == [base + other] * followed


def test_a_calendar_ends() -> None:
    """From page to page, as a crawler with links on would go."""

    def neighbours(url: str) -> list[str]:
        year, month = map(int, url.rsplit("/", 2)[1:])
        later, earlier = year * 12 + month, year * 12 + month - 2
        return [f"https://a.example/cal/{n // 12}/{n % 12 + 1}" for n in (later, earlier)]

    seen = {"https://a.example/cal/2026/6"}
    todo = list(seen)
    while todo:
        url = todo.pop()
        fresh = set(near(url, *neighbours(url))) - seen
        seen |= fresh
        todo += fresh
        assert len(seen) < 100
    assert len(seen) == 12


def test_a_listing_knows_what_it_left_out() -> None:
    listing = Listing(URL, most=3)
    assert listing.add("/a")
    assert not listing.add("https://www.shop.example/a#b")
    assert not listing.add("https://other.example/")
    assert not listing.add("nonsense://x")
    assert listing.add("/b")
    assert not listing.full
    assert listing.remarks("cut") == (
        "cut; 1 links to other sites were left out; 1 entries have no web address"
    )


def test_a_listing_has_an_end() -> None:
    listing = Listing(URL, most=2)
    assert [listing.add(f"/{n}") for n in range(3)] == [True, True, False]
    assert listing.cut == "it names more than 2 pages, and was cut"
    empty = Listing(URL, most=2)
    assert [empty.full or empty.add("x:y") for _ in range(5)] == [False] * 4 + [True]
    assert empty.cut == "most of its entries name no page that is new, and it was cut"


@pytest.mark.parametrize("raw", ["/x", "x", "?q", "//b.example/", "\\\\evil", "\ud800", "\0"])
@pytest.mark.parametrize("base", ["http://a.example", "", "nonsense", "http://[", "file:///x"])
def test_no_link_is_too_odd(raw: str, base: str) -> None:
    found = address(raw, base)
    assert found is None or found.url.startswith("http")


@pytest.mark.parametrize("charset", ["utf-16", "latin1", "shift_jis", None])
def test_charsets(charset: str | None) -> None:
    assert links('<a href="/é">' if charset != "shift_jis" else '<a href="/ア">', charset=charset)
