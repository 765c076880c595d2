"""The words that rows and columns share: purposes, statuses, what is known of change."""

from __future__ import annotations

from enum import IntEnum


class Purpose(IntEnum):
    """Why a visit is made. Only EXPLORE visits carry a propensity that may serve as a weight."""

    POLICY = 0
    EXPLORE = 1
    PANEL = 2
    INSTA = 3
    LIMIT = 4
    MANUAL = 5
    DISCOVER = 6  # a source that another one names, read to find pages

    @property
    def label(self) -> str:
        return self.name.lower()

    @property
    def charged(self) -> bool:
        """Whether the budget pays: not for the panel, which has its own, nor for the user's."""
        return self not in (Purpose.PANEL, Purpose.MANUAL)


class Status(IntEnum):
    """How a visit ended. Only OK and NOT_MODIFIED say anything about change."""

    OK = 0
    NOT_MODIFIED = 1
    GONE = 2  # 404, 410
    LOST = 3  # the page answers but no longer has the value it had
    DISALLOWED = 4  # by robots.txt
    UNSAFE = 5  # the address is private, loopback, link-local or otherwise off limits
    BUSY = 6  # 429 or 503: the host asked for patience
    TIMEOUT = 7
    TOO_LARGE = 8
    REDIRECTS = 9  # too many, circular, or to nowhere
    NETWORK = 10  # name, connection, TLS or protocol failed
    HTTP = 11  # any other status code
    BROKEN = 12  # the body could not be decoded or read
    SOFT_404 = 13  # answered like any page, but says that there is no such page
    BLOCKED = 14  # we are not let in: refused, a captcha, a consent wall
    CERTIFICATE = 15  # TLS: the host cannot prove its name

    @property
    def label(self) -> str:
        return self.name.lower()


ANSWERED = frozenset({Status.OK, Status.NOT_MODIFIED})

CHANGED, UNCHANGED, UNKNOWN = 1, 0, -1

KINDS = ("offer", "article", "page", "source")  # a column holds the place of a kind; -1 = another

STATUS = {s.label: s for s in Status}
PURPOSE = {p.label: p for p in Purpose}
