"""What an exception of aiohttp's means: a status, and words for people."""

from __future__ import annotations

import ssl

import aiohttp

from salticus.fetch.address import Refused
from salticus.fetch.codecs import TooLarge, Undecodable
from salticus.types import Status

_LENGTH = 300  # characters
_UNTRUSTED = (
    "is not signed by an authority that this machine trusts; if you trust it, name its "
    "certificate in the environment variable SSL_CERT_FILE"
)
_CERTIFICATES = {
    9: "is not valid yet; is the clock of this machine right?",
    10: "has expired; its owner must renew it",
    18: "is self-signed; if you trust it, name it in the environment variable SSL_CERT_FILE",
    19: _UNTRUSTED,
    20: _UNTRUSTED,
    21: _UNTRUSTED,
    23: "has been revoked; its owner must renew it",
    62: "is for another name; check the address, or tell its owner",
    64: "is for another name; check the address, or tell its owner",
}  # by OpenSSL's verify codes
_PARSER = (
    ("Got more than", "a line or header of it is too long"),
    ("Too many headers", "it has too many headers"),
    ("Bad status line", "it does not begin like one, or goes on after its end"),
    ("Invalid HTTP header", "a header of it has characters that none may have"),
)
_PROXY = {407: ": it wants a user and a password", 403: ": it does not let us through"}


class Chatter(aiohttp.ClientResponseError):
    """Interim answers without end."""


def status_of(error: Exception, otherwise: Status = Status.NETWORK) -> Status:
    """The status that names a failed exchange."""
    if isinstance(error, TimeoutError):
        return Status.TIMEOUT
    if isinstance(error, TooLarge):
        return Status.TOO_LARGE
    if isinstance(error, Undecodable | aiohttp.ClientPayloadError):
        return Status.BROKEN
    if isinstance(error, aiohttp.ClientConnectorCertificateError):
        return Status.CERTIFICATE
    if isinstance(error, aiohttp.ClientHttpProxyError) and error.status in (401, 403, 407):
        return Status.BLOCKED
    return Status.UNSAFE if isinstance(_cause(error), Refused) else otherwise


def words_for(error: Exception, *, begun: bool = False) -> str:
    """What went wrong, in one line of at most 300 characters, whatever the server put into it.

    `begun` says that the headers had come.

    >>> words_for(TimeoutError())
    'no complete answer within the time limit'
    """
    if begun and isinstance(error, TimeoutError):
        return "the answer began, but was not complete within the time limit"
    return in_one_line(_text(_cause(error)))


def in_one_line(text: str) -> str:
    """Text that can be stored and shown: one line, no control characters, not too long.

    >>> in_one_line("a\\x1b[31m\\r\\nb")
    'a [31m b'
    """
    printable = (c if c.isprintable() else " " for c in text[: 4 * _LENGTH])
    return " ".join("".join(printable).split())[:_LENGTH].encode("utf-8", "replace").decode()


def _text(error: Exception) -> str:
    if isinstance(error, TimeoutError):
        return "no complete answer within the time limit"
    if isinstance(error, aiohttp.ClientPayloadError):
        return "the body broke off or is not valid HTTP"
    if isinstance(error, aiohttp.ClientHttpProxyError):
        return f"the proxy answered {error.status}" + _PROXY.get(error.status, "")
    if isinstance(error, Chatter):
        return error.message
    if isinstance(error, aiohttp.ClientResponseError):
        return f"the answer is not valid HTTP: {_protocol(error.message)}"
    return _connection(error)


def _protocol(message: str) -> str:
    """What a parser complains of, without the bytes that it quotes over several lines.

    >>> _protocol("Duplicate Content-Length:\\n\\n  b'x\\\\x00'\\n     ^")
    'Duplicate Content-Length'
    """
    for start, words in _PARSER:
        if message.lstrip().startswith(start):
            return words
    return message.strip().partition("\n")[0].partition(" when reading:")[0].rstrip(" :.")


def _connection(error: Exception) -> str:
    if isinstance(error, aiohttp.ClientConnectorCertificateError):
        return _certificate(error)
    if isinstance(error, aiohttp.ClientConnectorSSLError):
        reason = getattr(error.os_error, "reason", None) or "handshake failed"
        shown = str(reason).replace("_", " ").lower()
        return f"cannot make a secure connection to {error.host}: {shown}"
    if isinstance(error, aiohttp.ClientConnectorDNSError):
        return f"cannot find the host {error.host}: {error.os_error.strerror or error.os_error}"
    if isinstance(error, aiohttp.ClientConnectorError):
        proxy = "the proxy " if isinstance(error, aiohttp.ClientProxyConnectionError) else ""
        cause = error.os_error
        reason = cause.strerror or str(cause) or type(cause).__name__
        return f"cannot connect to {proxy}{error.host}: {reason}"
    return str(error) or type(error).__name__


def _certificate(error: aiohttp.ClientConnectorCertificateError) -> str:
    cause = error.certificate_error
    if not isinstance(cause, ssl.SSLCertVerificationError):
        return f"the certificate of {error.host} cannot be verified: {cause}"
    otherwise = f"cannot be verified: {cause.verify_message}"
    return f"the certificate of {error.host} {_CERTIFICATES.get(cause.verify_code, otherwise)}"


def _cause(error: Exception) -> Exception:
    """aiohttp wraps what the resolver raised."""
    inner = getattr(error, "os_error", None)
    return inner if isinstance(inner, Refused) else error
