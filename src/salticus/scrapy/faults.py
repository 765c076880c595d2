"""What a failure in Scrapy means: a status, and words for people."""

from __future__ import annotations

from scrapy.exceptions import IgnoreRequest

from salticus.fetch.faults import in_one_line
from salticus.types import Status

# By name: Scrapy has errors of its own since 2.15, before it they were those of Twisted.
_STATUS = {
    "DownloadTimeoutError": Status.TIMEOUT,
    "TCPTimedOutError": Status.TIMEOUT,
    "TimeoutError": Status.TIMEOUT,
    "DownloadCancelledError": Status.TOO_LARGE,
    "ResponseDataLossError": Status.BROKEN,
}


def status_of(error: BaseException) -> Status:
    """The status that names a request that brought no response.

    A request that a middleware refuses, for robots.txt or another reason, is disallowed.

    >>> status_of(IgnoreRequest("Forbidden by robots.txt")).label
    'disallowed'
    """
    if isinstance(error, IgnoreRequest):
        return Status.REDIRECTS if "redirections" in str(error) else Status.DISALLOWED
    return _STATUS.get(type(error).__name__, Status.NETWORK)


def words_for(error: BaseException) -> str:
    """What went wrong, in one line.

    >>> words_for(ValueError("no price"))
    'ValueError: no price'
    """
    said = str(error)
    if isinstance(error, IgnoreRequest) and said:
        return in_one_line(said)
    return in_one_line(f"{type(error).__name__}: {said}" if said else type(error).__name__)
