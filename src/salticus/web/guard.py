"""Keeps the desk open for everyone: whoever sends slowly or badly costs only their own request.

A browser that shows a foreign page can be made to send requests to any address, this machine's
included; what it cannot hide is the name that it asks for (Host) and the page that asks (Origin).
"""

from __future__ import annotations

import asyncio
import logging
import re
from collections.abc import Awaitable, Callable, Collection
from ipaddress import ip_address

import msgspec
from aiohttp import web

from salticus.errors import SalticusError
from salticus.fetch.codecs import TooLarge, Undecodable
from salticus.fetch.codecs import read as read_body

MOST_CONNECTIONS = 256
LARGEST = 10_000_000  # bytes of a request, unpacked
HEADERS_S = 30.0  # from the connection, or from the last answer, until the headers are there
BODY_S = 30.0  # from the headers until the body is there
LINGER_S = 1.0  # for which the rest of a request is read that was refused already
END_S = 5.0  # for the answers that are being made when the desk closes

_HOST = re.compile(r"(\[[0-9a-f:.]+\]|[^\s:@/\\?#\[\]]+)(?::\d+)?")
_LOOPBACK = frozenset({"localhost", "127.0.0.1", "::1"})

logger = logging.getLogger(__name__)
_quiet = logging.getLogger(f"{__name__}.connections")
_quiet.setLevel(logging.CRITICAL)  # connections that break are the other side's affair

BODY = web.RequestKey("body", bytes)
Handler = Callable[[web.Request], Awaitable[web.StreamResponse]]


class Guard:
    """Receives requests whole before they are answered, over a bounded number of connections.

    Laws: a new connection is always let in; if there are too many, the oldest one that waits for
    a request is closed for it. Whatever comes in is answered in JSON, and stops nothing. What is
    meant for another host, or asked by another site's page, is refused (`trusted` names may ask).
    """

    def __init__(self, app: web.Application, listen: str, trusted: Collection[str] = ()) -> None:
        self._listen = listen
        self._trusted = frozenset(name.lower() for name in trusted)
        app.middlewares.append(self._received)
        self.runner = web.AppRunner(
            app,
            access_log=None,
            auto_decompress=False,
            handle_signals=False,
            keepalive_timeout=HEADERS_S,
            lingering_time=LINGER_S,
            logger=_quiet,
            shutdown_timeout=END_S,
        )
        self._answering: set[web.RequestHandler] = set()

    def connected(self) -> asyncio.Protocol:
        waiting = self._open()
        for each in waiting[: max(0, len(waiting) + 1 - MOST_CONNECTIONS)]:
            _close(each)
        return self._server()

    async def close(self) -> None:
        """Answer what was received whole, and close all connections."""
        for each in self._open():
            if each not in self._answering:
                _close(each)
        await self.runner.cleanup()

    def _open(self) -> list[web.RequestHandler]:
        """The open connections, first those that wait for a request, and the oldest of them."""
        found = (each for each in self._server.connections if each.transport is not None)
        return sorted(found, key=self._answering.__contains__)

    @property
    def _server(self) -> web.Server:
        if self.runner.server is None:
            raise RuntimeError("set up the runner first")
        return self.runner.server

    @web.middleware
    async def _received(self, request: web.Request, handler: Handler) -> web.StreamResponse:
        try:
            async with asyncio.timeout(BODY_S):
                request[BODY] = await read_body(
                    request.content, request.headers.get("Content-Encoding"), LARGEST
                )
        except TimeoutError:
            return _refused(408, f"the request took longer than {BODY_S:g} s")
        except TooLarge:
            return _refused(413, f"more than {LARGEST:,} bytes")
        except (Undecodable, web.RequestPayloadError, ConnectionError) as error:
            return _refused(400, f"the body cannot be read: {error}")
        if why := self._foreign(request):
            return _refused(403, why)
        self._answering.add(request.protocol)
        try:
            return await _explained(request, handler)
        finally:
            self._answering.discard(request.protocol)

    def _foreign(self, request: web.Request) -> str:
        address = request.transport and request.transport.get_extra_info("sockname")
        names = own_names(address[0] if address else "") | own_names(self._listen)
        host, origin = (request.headers.get(name) for name in ("Host", "Origin"))
        return foreign(host or "", origin, names, self._trusted)


async def _explained(request: web.Request, handler: Handler) -> web.StreamResponse:
    try:
        return await handler(request)
    except web.HTTPException:
        raise
    except (msgspec.MsgspecError, SalticusError, ValueError) as error:
        return web.json_response({"error": str(error)}, status=400)
    except Exception:
        logger.exception("%s could not be answered", request.path)
        return web.json_response({"error": "the desk failed; see its log"}, status=500)


def _refused(status: int, why: str) -> web.Response:
    answer = web.json_response({"error": why}, status=status)
    answer.force_close()
    return answer


def _close(connection: web.RequestHandler) -> None:
    transport = connection.transport
    connection.force_close()
    if transport is not None:
        transport.abort()  # without waiting for whoever does not read


def foreign(host: str, origin: str | None, names: Collection[str], trusted: Collection[str]) -> str:
    """What is foreign about a request, in words; empty if nothing is.

    `names` are the desk's own; pages of `trusted` hosts may send requests too.

    >>> foreign("127.0.0.1:8470", "http://127.0.0.1:8470", own_names("127.0.0.1"), ())
    ''
    >>> foreign("127.0.0.1:8470", "https://evil.example", own_names("127.0.0.1"), ())
    'a page of https://evil.example may not ask this desk; see desk.allowed_hosts'
    """
    name = name_of(host)
    if not name or name not in {*names, *trusted}:
        return f"this desk is not {host!r}; see desk.allowed_hosts"
    if origin is None:
        return ""
    scheme, _, asking = origin.lower().partition("://")
    own = asking == host.lower() or name_of(asking) in trusted
    if scheme not in ("http", "https") or not own:
        return f"a page of {origin} may not ask this desk; see desk.allowed_hosts"
    return ""


def name_of(host: str) -> str:
    """The name in a Host header or an Origin, without its port; empty if there is none.

    >>> name_of("Localhost:8470"), name_of("[::1]"), name_of("a@b")
    ('localhost', '::1', '')
    """
    found = _HOST.fullmatch(host.lower())
    return found[1].strip("[]").rstrip(".") if found else ""


def own_names(address: str) -> frozenset[str]:
    """The names of an address at which the desk was asked."""
    return (_LOOPBACK if is_loopback(address) else frozenset()) | {address.lower()}


def is_loopback(host: str) -> bool:
    """Whether only this machine can reach an address.

    >>> [is_loopback(host) for host in ("127.0.0.1", "localhost", "0.0.0.0", "desk.example")]
    [True, True, False, False]
    """
    try:
        return ip_address(host).is_loopback
    except ValueError:
        return host.lower() == "localhost"
