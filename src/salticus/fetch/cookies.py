"""Cookies of one host: those of a cookies.txt, those of the settings, those that it set itself."""

from __future__ import annotations

import warnings
from collections.abc import Iterable, Mapping
from http.cookiejar import (
    Cookie,
    CookieJar,
    DefaultCookiePolicy,
    LoadError,
    MozillaCookieJar,
)
from typing import TYPE_CHECKING
from urllib.request import Request

from salticus.errors import InputError

if TYPE_CHECKING:
    import aiohttp
    from yarl import URL


def cookies_txt(path: str) -> list[Cookie]:
    """The cookies of a file as browsers export it; InputError if it is none.

    Those that have expired are left out, those that a browser would drop when it closes are not.
    """
    jar = MozillaCookieJar(path)
    try:
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
            from aiohttp import CookieJar as HostJar

            self._kept = HostJar(unsafe=True)  # addresses may have cookies too
        self._kept.update_cookies_from_headers(list(headers), url)

    def _from_file(self, url: URL) -> dict[str, str]:
        """The cookies of the file that are for this URL: domain, path, expiry and security fit."""
        request = Request(str(url))
        self._filed.add_cookie_header(request)
        pairs = (pair.partition("=") for pair in (request.get_header("Cookie") or "").split("; "))
        return {name: value for name, _, value in pairs if name}
