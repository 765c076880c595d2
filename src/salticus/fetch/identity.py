"""As whom a host is asked: proxy, headers, cookies and password of the `[[hosts]]` settings.

The first pattern that sets a value wins; headers and cookies of several patterns are put together.
An identity belongs to the host that was matched. Every exchange asks for that of its own host, so
a redirect takes nothing along.
"""

from __future__ import annotations

import os
import re
import warnings
from base64 import b64encode
from collections.abc import Iterable, Mapping
from functools import lru_cache
from http.cookiejar import Cookie, CookieJar, DefaultCookiePolicy, LoadError, MozillaCookieJar
from pathlib import Path
from typing import Any
from urllib.request import Request

import aiohttp
from msgspec.structs import replace
from yarl import URL

from salticus.config import Config, Host, matches
from salticus.errors import ConfigError, InputError

_HOSTS = 65_536  # identities held at a time
_TOKEN = re.compile(r"[!#$%&'*+.^_`|~0-9A-Za-z-]+")  # RFC 9110: what a header may be called
_COOKIE = re.compile(r"[\x21\x23-\x2b\x2d-\x3a\x3c-\x5b\x5d-\x7e]*")  # RFC 6265: its value
_OURS = {
    "cookie": "write it under cookies",
    "proxy-authorization": "write it into the proxy's URL",
    "user-agent": "fetch.contact is what hosts are told",
    "accept-encoding": "it is chosen by what can be read",
    "range": "pages are fetched whole",
    **dict.fromkeys(
        ("host", "connection", "content-length", "transfer-encoding", "te", "upgrade", "expect"),
        "it belongs to the connection",
    ),
    **dict.fromkeys(
        ("if-none-match", "if-modified-since", "if-match", "if-unmodified-since", "if-range"),
        "it is taken from the last answer",
    ),
}


class Identity:
    """As whom one host is asked. Nothing of it may be logged or shown."""

    def __init__(self, tables: list[Host], filed: Mapping[str, list[Cookie]]) -> None:
        self.headers = _headers(tables)
        auth = _first(tables, "auth")
        self.signs_in = any(name.lower() == "authorization" for name in self.headers)
        if auth is not None and not self.signs_in:
            self.headers["Authorization"], self.signs_in = basic(auth), True
        file, keep = _first(tables, "cookie_file"), bool(_first(tables, "keep_cookies"))
        given = {name: t.cookies[name] for t in reversed(tables) for name in t.cookies}
        cookies = Cookies(given, filed[file] if file else (), keep=keep)
        self.cookies = cookies if given or file or keep else None
        proxy = URL(_first(tables, "proxy") or "")
        self.proxy = proxy.with_user(None) if proxy.host else None
        self.proxy_auth = basic(f"{proxy.user}:{proxy.password or ''}") if proxy.user else None

    def headers_for(self, url: URL, headers: Mapping[str, str]) -> dict[str, str]:
        """The headers of one request, those of its own included."""
        sent = {**self.headers, **headers}
        if self.cookies is not None and (cookies := self.cookies.header(url)):
            sent["Cookie"] = cookies
        if self.proxy_auth is not None and url.scheme == "http":
            sent["Proxy-Authorization"] = self.proxy_auth
        return sent


class Identities:
    """The identities of all hosts. Environment and files are read once, when this is made.

    >>> config = Config(hosts=(Host("*.example.org", auth="me:secret"),))
    >>> identities = Identities(config)
    >>> identities.at("shop.example.org").headers
    {'Authorization': 'Basic bWU6c2VjcmV0'}
    >>> identities.at("example.net") is None
    True
    """

    def __init__(self, config: Config) -> None:
        self._filed: dict[str, list[Cookie]] = {}
        self._tables = [self._checked(table, config.folder) for table in config.hosts]
        self.at = lru_cache(maxsize=_HOSTS)(self._at)

    def __bool__(self) -> bool:
        return any(map(_says_anything, self._tables))

    def _at(self, host: str) -> Identity | None:
        """The identity for a host (with its port, if it is unusual); None if it has none."""
        tables = [table for table in self._tables if matches(host, table.match)]
        return Identity(tables, self._filed) if any(map(_says_anything, tables)) else None

    def _checked(self, table: Host, folder: str) -> Host:
        """The table with its secrets filled in; ConfigError names pattern and key, no value."""
        try:
            given = replace(
                table,
                proxy=table.proxy and _from_environment("proxy", table.proxy),
                headers=_all_from_environment("headers", table.headers),
                cookies=_all_from_environment("cookies", table.cookies),
                auth=table.auth and _from_environment("auth", table.auth),
            )
            _check(given)
            if given.cookie_file is not None:
                self._read(given.cookie_file, folder)
        except InputError as error:
            raise ConfigError(f"hosts that match {table.match!r}: {error}") from None
        return given

    def _read(self, name: str, folder: str) -> None:
        try:
            self._filed[name] = cookies_txt(str(Path(folder) / name))
        except InputError as error:
            raise InputError(f"cookie_file {name}: {error}") from None


def basic(auth: str) -> str:
    """The Authorization header for "user:password"."""
    return f"Basic {b64encode(auth.encode()).decode()}"


def _first(tables: list[Host], key: str) -> Any:
    return next((said for t in tables if (said := getattr(t, key)) is not None), None)


def _says_anything(table: Host) -> bool:
    given = (table.proxy, table.headers, table.cookies, table.cookie_file, table.auth)
    return any(given) or table.keep_cookies is True


def _headers(tables: list[Host]) -> dict[str, str]:
    """The headers of all tables; a name is the same in upper and in lower case."""
    merged: dict[str, tuple[str, str]] = {}
    for table in tables:
        for name, value in table.headers.items():
            merged.setdefault(name.lower(), (name, value))
    return dict(merged.values())


def _from_environment(key: str, value: str) -> str:
    """A value, read from the environment if it is written ``env:NAME``."""
    if not value.startswith("env:"):
        return value
    name = value.removeprefix("env:")
    if name not in os.environ:
        raise InputError(f"{key}: the environment has no variable {name}")
    return os.environ[name]


def _all_from_environment(key: str, table: Mapping[str, str]) -> dict[str, str]:
    return {name: _from_environment(f"{key}.{name}", value) for name, value in table.items()}


def _check(table: Host) -> None:
    for name, value in table.headers.items():
        _check_header(name, value)
    for name, value in table.cookies.items():
        if not _TOKEN.fullmatch(name) or not _COOKIE.fullmatch(value.strip('"')):
            raise InputError(f"cookies.{name:.40}: a cookie has no space, comma or semicolon")
    if table.auth is not None and (":" not in table.auth or not table.auth.isprintable()):
        raise InputError("auth: write it as user:password")
    if table.proxy is not None:
        _check_proxy(table.proxy)


def _check_header(name: str, value: str) -> None:
    shown = f"headers.{name[:40]!r}"
    if not _TOKEN.fullmatch(name):
        raise InputError(f"{shown}: not the name of a header")
    if name.lower() in _OURS:
        raise InputError(f"{shown}: cannot be set; {_OURS[name.lower()]}")
    if not value.replace("\t", " ").isprintable():
        raise InputError(f"{shown}: the value must be one line of printable characters")


def _check_proxy(proxy: str) -> None:
    try:
        url = URL(proxy)
        usable = bool(url.host) and proxy.isprintable() and " " not in proxy
    except ValueError:
        url, usable = URL(), False
    if url.scheme.startswith("socks"):
        raise InputError("proxy: SOCKS is not spoken; give an http:// or https:// proxy")
    if not usable or url.scheme not in ("http", "https"):
        raise InputError("proxy: write it as http://host:port or http://user:password@host:port")


def cookies_txt(path: str) -> list[Cookie]:
    """The cookies of a file as browsers export it; InputError if it is none.

    Those that have expired are left out, those that a browser would drop when it closes are not.
    """
    jar = MozillaCookieJar(path)
    try:
        Path(path).read_text("utf-8")  # the jar stumbles over bytes that are no text
        with warnings.catch_warnings():  # it shows a traceback for a line that it cannot read
            warnings.simplefilter("ignore")
            jar.load(ignore_discard=True, ignore_expires=True)
    except LoadError:
        raise InputError("is not a cookies.txt in Netscape's format") from None
    except (OSError, UnicodeDecodeError) as error:
        reason = getattr(error, "strerror", None) or "is not text"
        raise InputError(str(reason).lower()) from None
    for cookie in jar:
        cookie.expires = cookie.expires or None  # browsers write 0 where there is no end
    return [cookie for cookie in jar if not cookie.is_expired()]


class Cookies:
    """What is sent to one host as its cookies.

    Where several have the same name, one that the host set outweighs one of the settings, and that
    one of the file. Law: what one host sets is never sent to another.
    """

    def __init__(
        self, given: Mapping[str, str], filed: Iterable[Cookie] = (), *, keep: bool = False
    ) -> None:
        self.given = dict(given)
        self.keep = keep
        exact = DefaultCookiePolicy(strict_ns_domain=DefaultCookiePolicy.DomainStrictNonDomain)
        self._filed = CookieJar(exact)
        for cookie in filed:
            self._filed.set_cookie(cookie)
        self._kept: aiohttp.CookieJar | None = None

    def header(self, url: URL) -> str:
        """The Cookie header for a URL; empty if there is nothing to send."""
        pairs = self._from_file(url) | self.given if len(self._filed) else dict(self.given)
        if self._kept is not None:
            kept = self._kept.filter_cookies(url)
            pairs |= {name: morsel.coded_value for name, morsel in kept.items()}
        return "; ".join(f"{name}={value}" for name, value in pairs.items())

    def learn(self, headers: Iterable[str], url: URL) -> None:
        """Keep what the host set, in memory, within a browser's limits."""
        if not self.keep:
            return
        if self._kept is None:
            self._kept = aiohttp.CookieJar(unsafe=True)  # addresses may have cookies too
        self._kept.update_cookies_from_headers(list(headers), url)

    def _from_file(self, url: URL) -> dict[str, str]:
        """The cookies of the file that are for this URL: domain, path, expiry and security fit."""
        request = Request(str(url))
        self._filed.add_cookie_header(request)
        pairs = (pair.partition("=") for pair in (request.get_header("Cookie") or "").split("; "))
        return {name: value for name, _, value in pairs if name}
