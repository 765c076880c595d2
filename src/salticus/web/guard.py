"""Keeps the desk open for everyone: whoever sends slowly or badly costs only their own request."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable, Collection

import msgspec
from aiohttp import web

from salticus.errors import SalticusError
from salticus.fetch.codecs import TooLarge, Undecodable
from salticus.fetch.codecs import read as read_body
from salticus.web.origins import foreign, own_names

MOST_CONNECTIONS = 256
LARGEST = 10_000_000  # bytes of a request, unpacked
HEADERS_S = 30.0  # from the connection, or from the last answer, until the headers are there
BODY_S = 30.0  # from the headers until the body is there
LINGER_S = 1.0  # for which the rest of a request is read that was refused already
END_S = 5.0  # for the answers that are being made when the desk closes

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
        """The protocol for a new connection."""
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
    """What is wrong with a request is said in JSON."""
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
