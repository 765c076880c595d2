"""Where an answer leads: redirects, and what a complete answer means."""

from __future__ import annotations

from yarl import URL

from salticus.fetch.base import Answer
from salticus.fetch.faults import in_one_line
from salticus.fetch.hosts import BUSY_CODES
from salticus.types import Status

_REDIRECTS = frozenset({301, 302, 303, 307, 308})
_FOR_GOOD = frozenset({301, 308})
_LONGEST = 8192  # characters of a URL; no server takes longer ones
_BLOCKED = {
    401: "the server answered 401: it wants a user and a password (auth in [[hosts]])",
    403: "the server answered 403: it does not let us in",
    407: "the server answered 407: a proxy wants a user and a password",
    451: "the server answered 451: withheld for legal reasons",
}


def redirects(answer: Answer) -> bool:
    """Whether the answer sends us elsewhere."""
    return answer.code in _REDIRECTS and answer.status is Status.OK


def is_page(answer: Answer) -> bool:
    """Whether the answer is complete and HTML, as far as it says."""
    html = not answer.content_type or "html" in answer.content_type.lower()
    return 200 <= answer.code < 300 and answer.status is Status.OK and html


def for_good(answer: Answer) -> bool:
    """Whether a redirect says that the page will not come back."""
    return answer.code in _FOR_GOOD


def location(base: str, told: str | None) -> tuple[str, str] | None:
    """The URL and the host that a redirect leads to; None if it is not a web address.

    >>> location("http://a.org/x", "//B.org:8080/y#z"), location("http://a.org/", "mailto:x")
    (('http://b.org:8080/y', 'b.org:8080'), None)
    """
    if not told or len(told) > _LONGEST or not told.isprintable():
        return None
    try:
        url = URL(base).join(URL(told)).with_fragment(None)
        host = url.host_port_subcomponent
        if url.scheme not in ("http", "https") or not url.raw_host or not host or " " in host:
            return None
        return str(url.with_user(None)), host
    except (ValueError, IndexError):  # IndexError: of x://user:password@, which has no host
        return None


def lost(answer: Answer, fault: str) -> Answer:
    """The end of a chain of redirects that leads to no page."""
    return Answer(answer.url, Status.REDIRECTS, answer.answered_at, answer.code, fault=fault)


def after_redirect(answer: Answer) -> Answer:
    """An answer whose fault, if it has one, says that a redirect led there."""
    if answer.status is not Status.OK:
        answer.fault = in_one_line(f"{answer.fault} (after a redirect to {answer.url})")
    return answer


def meaning(code: int, *, conditional: bool) -> tuple[Status, str | None]:
    """What a complete answer means, and in words what is wrong with it.

    >>> meaning(404, conditional=False)
    (<Status.GONE: 2>, 'the server answered 404')
    """
    if 200 <= code < 300:
        return Status.OK, None
    if code == 304 and conditional:
        return Status.NOT_MODIFIED, None
    fault = f"the server answered {code}"
    if code in (404, 410):
        return Status.GONE, fault
    if code in _BLOCKED:
        return Status.BLOCKED, _BLOCKED[code]
    return Status.BUSY if code in BUSY_CODES else Status.HTTP, fault
