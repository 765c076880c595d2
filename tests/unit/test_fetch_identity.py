"""As whom a host is asked."""

from pathlib import Path

import pytest
from yarl import URL

from salticus.config import Config, Host, parse
from salticus.errors import ConfigError
from salticus.fetch.identity import Identities

SHOP = URL("https://shop.example/p")


def headers(*hosts: Host, url: URL = SHOP) -> dict[str, str]:
    identity = Identities(Config(hosts=hosts)).at(url.host_port_subcomponent or "")
    return {} if identity is None else identity.headers_for(url, {})


def test_the_first_pattern_that_sets_a_value_wins_and_mappings_are_put_together() -> None:
    hosts = (
        Host("shop.*", headers={"X-A": "1"}, cookies={"a": "1", "A": "2"}),
        Host("*", headers={"x-a": "2", "X-B": "2"}, cookies={"a": "9", "b": "2"}, auth="u:p"),
        Host("*", auth="v:q", proxy="http://proxy.test:1"),
    )
    sent = headers(*hosts)
    assert sent["X-A"] == "1"
    assert sent["X-B"] == "2"
    assert "x-a" not in sent
    assert set(sent["Cookie"].split("; ")) == {"a=1", "A=2", "b=2"}
    assert sent["Authorization"] == "Basic dTpw"
    identity = Identities(Config(hosts=hosts)).at("shop.example")
    assert identity is not None
    assert str(identity.proxy) == "http://proxy.test:1"


def test_a_host_without_settings_has_no_identity() -> None:
    identities = Identities(Config(hosts=(Host("a.org", auth="u:p"), Host("*", concurrency=2))))
    assert identities
    assert identities.at("b.org") is None
    assert not Identities(Config(hosts=(Host("*", concurrency=2),)))


def test_the_same_host_is_the_same_identity() -> None:
    identities = Identities(Config(hosts=(Host("*", keep_cookies=True),)))
    assert identities.at("a.org") is identities.at("a.org")
    assert identities.at("a.org") is not identities.at("b.org")


def test_an_authorization_header_outweighs_auth() -> None:
    sent = headers(Host("*", headers={"authorization": "Bearer x"}, auth="u:p"))
    assert sent == {"authorization": "Bearer x"}


def test_what_is_asked_for_outweighs_nothing_but_adds() -> None:
    identity = Identities(Config(hosts=(Host("*", headers={"X-A": "1"}),))).at("a.org")
    assert identity is not None
    assert identity.headers_for(SHOP, {"If-None-Match": "x"}) == {"X-A": "1", "If-None-Match": "x"}


def test_values_come_from_the_environment_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PASSWORD", "u:secret")
    monkeypatch.setenv("TOKEN", "abc")
    monkeypatch.setenv("PROXY", "http://me:pw@proxy.test:8080")
    host = Host(
        "*", auth="env:PASSWORD", headers={"X-T": "env:TOKEN"}, cookies={"s": "env:TOKEN"},
        proxy="env:PROXY",
    )  # fmt: skip
    identities = Identities(Config(hosts=(host,)))
    monkeypatch.delenv("TOKEN")
    identity = identities.at("a.org")
    assert identity is not None
    assert identity.headers_for(SHOP, {}) == {
        "X-T": "abc",
        "Authorization": "Basic dTpzZWNyZXQ=",
        "Cookie": "s=abc",
    }
    assert str(identity.proxy) == "http://proxy.test:8080", "what is shown has no password"
    assert identity.headers_for(URL("http://a.org/"), {})["Proxy-Authorization"] == "Basic bWU6cHc="


@pytest.mark.parametrize(
    ("host", "told"),
    [
        (Host("*.org", auth="env:NOT_THERE_1"), "'*.org': auth: the environment has no variable"),
        (Host("*", headers={"X": "env:NOT_THERE_1"}), "headers.X: the environment has no variable"),
        (Host("*", cookies={"c": "env:NOT_THERE_1"}), "cookies.c: the environment has no"),
        (Host("*", proxy="env:NOT_THERE_1"), "proxy: the environment"),
        (Host("*", auth="nocolon"), "auth: write it as user:password"),
        (Host("*", auth="a:b\r\nX: y"), "auth: write it"),
        (Host("*", headers={"X Y": "1"}), "not the name of a header"),
        (Host("*", headers={"": "1"}), "not the name of a header"),
        (Host("*", headers={"X\r\nY": "1"}), "not the name of a header"),
        (Host("*", headers={"X": "secret\r\nY: 2"}), "one line of printable"),
        (Host("*", headers={"X": "secret\nY"}), "one line of printable"),
        (Host("*", headers={"X": "secret\0"}), "one line of printable"),
        (Host("*", headers={"Host": "secret"}), "cannot be set; it belongs to the connection"),
        (Host("*", headers={"User-Agent": "secret"}), "fetch.contact"),
        (Host("*", headers={"COOKIE": "secret"}), "under cookies"),
        (Host("*", headers={"Accept-Encoding": "secret"}), "cannot be set"),
        (Host("*", cookies={"a b": "secret"}), "cookies.a b"),
        (Host("*", cookies={"a": "secret; c=d"}), "no space, comma or semicolon"),
        (Host("*", cookies={"a": "secret\r\n"}), "no space, comma"),
        (Host("*", proxy="socks5://secret@h:1"), "SOCKS is not spoken"),
        (Host("*", proxy="ftp://secret@h:1"), "write it as http"),
        (Host("*", proxy="secret:3128"), "write it as http"),
        (Host("*", proxy="http://"), "write it as http"),
        (Host("*", proxy="http://h:secret"), "write it as http"),
        (Host("*", proxy="http://h:1/\r\nsecret"), "write it as http"),
        (Host("*", cookie_file="nowhere.txt"), "cookie_file nowhere.txt: no such file"),
    ],
)
def test_what_cannot_be_used_is_refused_by_pattern_and_key(host: Host, told: str) -> None:
    with pytest.raises(ConfigError) as caught:
        Identities(Config(hosts=(host,)))
    text = str(caught.value)
    assert told in text
    assert f"hosts that match {host.match!r}" in text
    assert "secret" not in text, "what may be secret is not shown"
    assert "\n" not in text


def test_settings_as_they_are_written() -> None:
    raw = {
        "hosts": [{"match": "*.org", "auth": "u:p", "keep_cookies": True, "cookies": {"a": "b"}}]
    }
    Identities(parse(raw))


# ---------------------------------------------------------------------------------- cookies.txt

COOKIES = """# Netscape HTTP Cookie File
shop.example\tFALSE\t/\tFALSE\t0\tsession\tabc
#HttpOnly_.example.org\tTRUE\t/in\tTRUE\t4102444800\tdeep\t1
.example.org\tTRUE\t/\tFALSE\t4102444800\twide\t2
shop.example\tFALSE\t/\tFALSE\t946684800\told\texpired
other.test\tFALSE\t/\tFALSE\t0\tother\tsecret
"""


def filed(tmp_path: Path, **more: object) -> Identities:
    (tmp_path / "cookies.txt").write_text(COOKIES)
    hosts = (Host("*", cookie_file="cookies.txt", **more),)  # type: ignore[arg-type]
    return Identities(Config(hosts=hosts, folder=str(tmp_path)))


def cookies(identities: Identities, text: str) -> set[str]:
    url = URL(text)
    identity = identities.at(url.host_port_subcomponent or "")
    assert identity is not None
    found = identity.headers_for(url, {}).get("Cookie", "")
    return set(found.split("; ")) - {""}


def test_a_cookie_of_the_file_goes_where_a_browser_would_send_it(tmp_path: Path) -> None:
    identities = filed(tmp_path)
    assert cookies(identities, "http://shop.example/p") == {"session=abc"}
    assert cookies(identities, "http://a.shop.example/p") == set()
    assert cookies(identities, "http://www.example.org/in/x") == {"wide=2"}
    assert cookies(identities, "https://www.example.org/in/x") == {"wide=2", "deep=1"}
    assert cookies(identities, "https://www.example.org/out") == {"wide=2"}
    assert cookies(identities, "https://notexample.org/in") == set()
    assert cookies(identities, "http://127.0.0.1:80/") == set()


def test_settings_outweigh_the_file(tmp_path: Path) -> None:
    identities = filed(tmp_path, cookies={"session": "new"})
    assert cookies(identities, "http://shop.example/p") == {"session=new"}


FAR_OFF = b"# Netscape HTTP Cookie File\n#" + b" " * 9000 + b"\xff"


@pytest.mark.parametrize(
    "text", [b"", b"not cookies\n", b"\xff\xfe\0", b"a\tb\n", b"# Netscape x\na\n", FAR_OFF]
)
def test_a_file_that_is_no_cookies_txt_is_refused(tmp_path: Path, text: bytes) -> None:
    (tmp_path / "c.txt").write_bytes(text)
    config = Config(hosts=(Host("a.org", cookie_file="c.txt"),), folder=str(tmp_path))
    with pytest.raises(ConfigError, match=r"'a\.org': cookie_file c\.txt"):
        Identities(config)


def test_a_folder_is_no_cookies_txt(tmp_path: Path) -> None:
    config = Config(hosts=(Host("a.org", cookie_file="."),), folder=str(tmp_path))
    with pytest.raises(ConfigError, match="is a directory"):
        Identities(config)
