"""TLS to ZooKeeper: each connection of a session uses the certificates that the files have then."""

from __future__ import annotations

import asyncio
import ssl
import struct
from pathlib import Path
from random import Random
from typing import Any

from barnabas.metadata.zookeeper.address import Ensemble, Server
from barnabas.metadata.zookeeper.session import PASSWORD_BYTES, ZooKeeperOptions, ZooKeeperSession
from barnabas.security.tls.contexts import server_context
from barnabas.security.tls.key_store import read_key_store
from barnabas.security.tls.renewed_context import RenewedContext
from barnabas.security.tls.settings import TlsSettings
from tests.unit.security import certificates

TIMEOUT_S = 60
ACCEPTED = struct.pack(">iiiqi", 20 + PASSWORD_BYTES, 0, 6000, 1, PASSWORD_BYTES) + bytes(PASSWORD_BYTES)


class AtOnce(Random):
    """No pause between two attempts to connect."""

    def random(self) -> float:
        return 0.0


def stores(tmp_path: Path, name: str) -> TlsSettings:
    (tmp_path / f"{name}.pem").write_text(certificates.key_store(name, "localhost"))
    (tmp_path / "ca.pem").write_text(certificates.authority().own.pem)
    values = {
        "ssl.keystore.location": str(tmp_path / f"{name}.pem"),
        "ssl.truststore.location": str(tmp_path / "ca.pem"),
        "ssl.protocol": "TLSv1.3",
    }
    return TlsSettings(values)


def of_server(settings: TlsSettings) -> ssl.SSLContext:
    key = read_key_store(settings)
    assert key is not None
    return server_context(settings, key, ssl.CERT_REQUIRED)


def test_a_certificate_that_was_replaced_is_shown_to_the_next_server(tmp_path: Path) -> None:
    asyncio.run(_reconnected(tmp_path))


async def _reconnected(tmp_path: Path) -> None:
    shown: asyncio.Queue[str] = asyncio.Queue()
    writers: list[asyncio.StreamWriter] = []

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        certificate: Any = writer.get_extra_info("peercert")
        writers.append(writer)
        writer.write(ACCEPTED)
        await shown.put(dict(pair[0] for pair in certificate["subject"])["commonName"])

    server = await asyncio.start_server(serve, "localhost", 0, ssl=of_server(stores(tmp_path, "zookeeper")))
    port = server.sockets[0].getsockname()[1]
    renewed = RenewedContext(stores(tmp_path, "broker"), checks_host=True)
    options = ZooKeeperOptions(Ensemble((Server("localhost", port),), ""), tls=renewed.current, random=AtOnce())
    session = ZooKeeperSession(options, lambda event: None)
    try:
        await session.open()
        assert await asyncio.wait_for(shown.get(), TIMEOUT_S) == "broker"
        (tmp_path / "broker.pem").write_text(certificates.key_store("renewed", "localhost"))
        writers[0].close()
        assert await asyncio.wait_for(shown.get(), TIMEOUT_S) == "renewed"
    finally:
        server.close()
        for writer in writers:
            writer.transport.abort()
        await session.close()
