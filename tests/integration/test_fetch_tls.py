"""Real TLS exchanges, with certificates made here."""

import asyncio
import ssl
from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from functools import lru_cache
from ipaddress import ip_address
from pathlib import Path

import msgspec
import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID
from proxies import Names, Proxy

from salticus.checks.fetch import settings
from salticus.checks.fetch_server import Server, reply
from salticus.clock import SystemClock
from salticus.config import Config, Host
from salticus.fetch.base import Answer
from salticus.fetch.http import HttpEngine
from salticus.fetch.identity import Identities
from salticus.fetch.polite import PoliteFetcher
from salticus.types import Status, Target

PAGE = reply(b"secret page", Content_Type="text/html")
NOW = datetime.now(UTC)
DAY = timedelta(days=1)
Key = ec.EllipticCurvePrivateKey


@dataclass
class Made:
    """A certificate and its key."""

    certificate: x509.Certificate
    key: Key

    def write(self, folder: Path) -> Path:
        path = folder / "made.pem"
        private = self.key.private_bytes(
            serialization.Encoding.PEM,
            serialization.PrivateFormat.PKCS8,
            serialization.NoEncryption(),
        )
        path.write_bytes(private + self.certificate.public_bytes(serialization.Encoding.PEM))
        return path


def name(text: str) -> x509.Name:
    return x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, text)])


def make(
    host: str = "127.0.0.1",
    *,
    by: Made | None = None,
    since: datetime = NOW - 2 * DAY,
    until: datetime = NOW + DAY,
) -> Made:
    """A certificate for a host, signed by another, or by itself as an authority."""
    key = ec.generate_private_key(ec.SECP256R1())
    issuer = name(host) if by is None else by.certificate.subject
    place = x509.IPAddress(ip_address(host)) if host[0].isdigit() else x509.DNSName(host)
    builder = (
        x509.CertificateBuilder()
        .subject_name(name(host))
        .issuer_name(issuer)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(since)
        .not_valid_after(until)
        .add_extension(x509.SubjectAlternativeName([place]), critical=False)
        .add_extension(x509.BasicConstraints(ca=by is None, path_length=None), critical=True)
    )
    return Made(builder.sign(key if by is None else by.key, hashes.SHA256()), key)


@lru_cache
def authority() -> Made:
    return make("authority.test")


def trusting() -> ssl.SSLContext:
    """A context that trusts our authority, and verifies as the default one does."""
    pem = authority().certificate.public_bytes(serialization.Encoding.PEM).decode()
    return ssl.create_default_context(cadata=pem)


def secured(made: Made, folder: Path) -> ssl.SSLContext:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(made.write(folder))
    return context


class SecureServer(Server):
    """The same server over TLS."""

    context: ssl.SSLContext

    async def __aenter__(self) -> "SecureServer":
        self._tasks = set()
        self._news = asyncio.Event()
        self._server = await asyncio.start_server(
            self._serve, "127.0.0.1", self.port, ssl=self.context
        )
        self.port = self._server.sockets[0].getsockname()[1]
        return self

    def url(self, path: str) -> str:
        return f"https://{self.host}{path}"


def secure_server(made: Made, folder: Path) -> SecureServer:
    server = SecureServer({"/p": PAGE})
    server.context = secured(made, folder)
    return server


def engine_of(config: Config | None = None, context: ssl.SSLContext | None = None) -> HttpEngine:
    config = config or settings(timeout=60.0)
    return HttpEngine(
        config.fetch, SystemClock(), identities=Identities(config), resolver=Names(), ssl=context
    )


def exchange(made: Made, folder: Path, context: ssl.SSLContext | None) -> Answer:
    async def main() -> Answer:
        async with secure_server(made, folder) as server:
            engine = engine_of(context=context)
            try:
                answer = await engine.get(server.url("/p"), {})
            finally:
                await engine.close()
            assert (answer.status is Status.OK) == bool(server.arrivals)
            return answer

    return asyncio.run(main())


def test_a_host_that_proves_its_name_is_fetched(tmp_path: Path) -> None:
    answer = exchange(make(by=authority()), tmp_path, trusting())
    assert (answer.status, answer.body) == (Status.OK, b"secret page"), answer.fault


CASES: list[tuple[Callable[[], Made], bool, str]] = [
    (
        lambda: make(by=authority(), since=NOW - 9 * DAY, until=NOW - DAY),
        True,
        "has expired; its owner must renew it",
    ),
    (
        lambda: make(by=authority(), since=NOW + DAY, until=NOW + 2 * DAY),
        True,
        "is not valid yet; is the clock of this machine right?",
    ),
    (lambda: make("other.test", by=authority()), True, "is for another name; check the address"),
    (lambda: make("127.0.0.2", by=authority()), True, "is for another name; check the address"),
    (lambda: make(), True, "is self-signed; if you trust it, name it in"),
    (lambda: make(by=authority()), False, "is not signed by an authority that this machine trusts"),
    (lambda: make(by=make("x.test")), True, "is not signed by an authority that this machine"),
]


@pytest.mark.parametrize(("made", "known", "words"), CASES)
def test_a_host_that_does_not_is_named_with_advice(
    made: Callable[[], Made], known: bool, words: str, tmp_path: Path
) -> None:
    answer = exchange(made(), tmp_path, trusting() if known else None)
    assert answer.status is Status.CERTIFICATE, answer.fault
    assert (answer.fault or "").startswith(f"the certificate of 127.0.0.1 {words}"), answer.fault
    assert answer.body == b""


def test_a_visit_ends_as_certificate_though_robots_is_asked_first(tmp_path: Path) -> None:
    async def main() -> None:
        async with secure_server(make(), tmp_path) as server:
            config = settings(retries=2, timeout=60.0)
            fetcher = PoliteFetcher(engine_of(config), config, SystemClock())
            for _ in range(2):
                fetched = await fetcher.fetch(server.target("/p"))
                assert fetched is not None
                assert fetched.status is Status.CERTIFICATE
                assert "is self-signed" in (fetched.fault or "")
            assert fetcher.host(server.host).strikes == 1, "it is asked once, and not again"
            await fetcher.close()
            assert server.arrivals == []

    asyncio.run(main())


def with_raw_server(first: bytes | None) -> Answer:
    """An exchange with something that is no TLS server: it says `first`, or nothing at all."""

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.read(100)
        if first is None:
            await reader.read()  # until the other side gives up
        else:
            writer.write(first)
        writer.close()

    async def main() -> Answer:
        server = await asyncio.start_server(serve, "127.0.0.1", 0)
        async with server:
            engine = engine_of(settings() if first is None else None)
            answer = await engine.get(
                f"https://127.0.0.1:{server.sockets[0].getsockname()[1]}/", {}
            )
            await engine.close()
            await asyncio.sleep(0)
            return answer

    return asyncio.run(main())


def test_no_tls_where_tls_is_expected_is_a_network_failure() -> None:
    answer = with_raw_server(reply(status="400 Speak plainly"))
    expected = "cannot make a secure connection to 127.0.0.1: "
    assert answer.status is Status.NETWORK
    assert (answer.fault or "").startswith(expected), answer.fault


def test_a_handshake_that_never_comes_is_a_time_out() -> None:
    answer = with_raw_server(None)
    expected = (Status.TIMEOUT, "no complete answer within the time limit")
    assert (answer.status, answer.fault) == expected


# ------------------------------------------------------------------------------ through a proxy


@pytest.mark.parametrize("secure_proxy", [False, True])
def test_a_tunnel_carries_a_verified_exchange(tmp_path: Path, secure_proxy: bool) -> None:
    async def main() -> None:
        async with secure_server(make("shop.test", by=authority()), tmp_path) as server:
            context = secured(make(by=authority()), tmp_path) if secure_proxy else None
            async with Proxy(to=server.port, ssl=context) as tunnel:
                place = f"{'https' if secure_proxy else 'http'}://me:hush@127.0.0.1:{tunnel.port}"
                hosts = (Host("*.test", proxy=place, headers={"X-Key": "hush"}),)
                config = settings(allow=("*.test",), timeout=60.0)
                engine = engine_of(msgspec.structs.replace(config, hosts=hosts), trusting())
                answer = await engine.get("https://shop.test/p", {})
                assert (answer.status, answer.body) == (Status.OK, b"secret page"), answer.fault
                if not secure_proxy:  # asyncio trips over TLS that fails within TLS
                    other = await engine.get("https://other.test/p", {})
                    assert other.status is Status.CERTIFICATE, other.fault
                    assert "the certificate of other.test is for another" in (other.fault or "")
                await engine.close()
        assert tunnel.heads[0].startswith("CONNECT shop.test:443 HTTP/1.1\r\n")
        assert "X-Key" not in tunnel.heads[0]
        assert "Proxy-Authorization: Basic " in tunnel.heads[0]

    asyncio.run(main())


def test_nothing_secret_reaches_a_host_that_cannot_prove_its_name(tmp_path: Path) -> None:
    async def main() -> None:
        async with secure_server(make("other.test", by=authority()), tmp_path) as server:
            config = msgspec.structs.replace(
                settings(timeout=60.0), hosts=(Host("*", auth="me:hush"),)
            )
            engine = engine_of(config, trusting())
            fetcher = PoliteFetcher(engine, config, SystemClock())
            target = Target(page=1, url=server.url("/p"), host=server.host)
            fetched = await fetcher.fetch(target)
            assert fetched is not None
            assert fetched.status is Status.CERTIFICATE
            assert server.arrivals == []
            await fetcher.close()

    asyncio.run(main())
