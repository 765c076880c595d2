"""What an exception of aiohttp's means: a status, and words for people."""

from __future__ import annotations

from aiohttp import ClientConnectorError, ClientPayloadError, ClientResponseError

from salticus.fetch.address import Refused
from salticus.fetch.body import TooLarge, Undecodable
from salticus.types import Status


def status_of(error: Exception, otherwise: Status = Status.NETWORK) -> Status:
    """The status that names a failed exchange."""
    if isinstance(error, TimeoutError):
        return Status.TIMEOUT
    if isinstance(error, TooLarge):
        return Status.TOO_LARGE
    if isinstance(error, Undecodable | ClientPayloadError):
        return Status.BROKEN
    return Status.UNSAFE if isinstance(_cause(error), Refused) else otherwise


def words_for(error: Exception) -> str:
    """What went wrong, in one line of at most 300 characters, whatever the server put into it.

    >>> words_for(TimeoutError())
    'no complete answer within the time limit'
    """
    text = " ".join(_text(_cause(error)).split())
    return text[:300].encode("utf-8", "replace").decode()


def _text(error: Exception) -> str:
    if isinstance(error, TimeoutError):
        return "no complete answer within the time limit"
    if isinstance(error, ClientPayloadError):
        return "the body broke off or is not valid HTTP"
    if isinstance(error, ClientResponseError):
        return f"the answer is not valid HTTP: {error.message}"
    if isinstance(error, ClientConnectorError):
        return f"cannot connect to {error.host}: {error.os_error.strerror or error.os_error}"
    return str(error) or type(error).__name__


def _cause(error: Exception) -> Exception:
    """aiohttp wraps what the resolver raised."""
    inner = getattr(error, "os_error", None)
    return inner if isinstance(inner, Refused) else error
