"""A proxy, and a table of names, for tests of how pages are reached."""

from __future__ import annotations

import asyncio
import socket
from collections.abc import Mapping
from dataclasses import dataclass, field
from ssl import SSLContext
from typing import Self

from aiohttp.abc import AbstractResolver, ResolveResult


@dataclass
class Proxy:
    """A proxy on 127.0.0.1: answers plain requests itself, and tunnels CONNECT to the port `to`.

    Without `to`, CONNECT is answered like the rest. `heads` holds what it was asked.
    """

    answer: bytes = b""
    to: int | None = None
    ssl: SSLContext | None = None
    heads: list[str] = field(default_factory=list)
    port: int = 0

    async def __aenter__(self) -> Self:
        self._server = await asyncio.start_server(self._serve, "127.0.0.1", 0, ssl=self.ssl)
        self.port = self._server.sockets[0].getsockname()[1]
        return self

    async def __aexit__(self, *error: object) -> None:
        self._server.close()

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            while head := (await reader.readuntil(b"\r\n\r\n")).decode("latin-1"):
                self.heads.append(head)
                if self.to is not None and head.startswith("CONNECT "):
                    await self._tunnel(reader, writer)
                    return
                writer.write(self.answer)
        except (OSError, asyncio.IncompleteReadError, asyncio.CancelledError):
            pass
        finally:
            writer.close()

    async def _tunnel(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        there, back = await asyncio.open_connection("127.0.0.1", self.to)
        writer.write(b"HTTP/1.1 200 Connected\r\n\r\n")
        await asyncio.gather(_pump(reader, back), _pump(there, writer), return_exceptions=True)


async def _pump(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    try:
        while data := await reader.read(65_536):
            writer.write(data)
    finally:
        writer.close()


class Names(AbstractResolver):
    """Resolves names from a table, each list of addresses in turn, the last one for ever.

    No other name is known, and nobody outside is asked. `asked` holds the names looked up.
    """

    def __init__(self, table: Mapping[str, list[list[str]]] | None = None) -> None:
        self.table = {name: list(answers) for name, answers in (table or {}).items()}
        self.asked: list[str] = []

    async def resolve(
        self, host: str, port: int = 0, family: socket.AddressFamily = socket.AF_UNSPEC
    ) -> list[ResolveResult]:
        """The addresses that come next for a host."""
        self.asked.append(host)
        if host not in self.table:
            raise socket.gaierror(socket.EAI_NONAME, "no such name")
        answers = self.table[host]
        found = answers.pop(0) if len(answers) > 1 else answers[0]
        return [_entry(host, port, address) for address in found]

    async def close(self) -> None:
        """Nothing to close."""


def _entry(host: str, port: int, address: str) -> ResolveResult:
    family = socket.AF_INET6 if ":" in address else socket.AF_INET
    return ResolveResult(hostname=host, host=address, port=port, family=family, proto=0, flags=0)
