"""TLS of the clients' network against our own broker."""

from __future__ import annotations

import socket
from pathlib import Path
from typing import Any

import pytest

from barnabas.client.errors import Disconnected, SslAuthentication
from barnabas.protocol.messages.describe_cluster_request import DescribeClusterRequest
from barnabas.protocol.messages.describe_cluster_response import DescribeClusterResponse
from tests import broker, certificates
from tests.certificates import Certificates
from tests.client_network import network, on_loop


@pytest.fixture(scope="module")
def files(tmp_path_factory: pytest.TempPathFactory) -> Certificates:
    return certificates.make(tmp_path_factory.mktemp("certificates"))


def test_tls_and_mutual_tls_with_our_broker(files: Certificates, tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as one, socket.create_server(("127.0.0.1", 0)) as other:
        tls, mutual = one.getsockname()[1], other.getsockname()[1]
    settings = {
        "listeners": f"PLAINTEXT://127.0.0.1:0,TLS://127.0.0.1:{tls},MUTUAL://127.0.0.1:{mutual}",
        "advertised.listeners": f"PLAINTEXT://127.0.0.1:0,TLS://localhost:{tls},MUTUAL://localhost:{mutual}",
        "listener.security.protocol.map": "PLAINTEXT:PLAINTEXT,TLS:SSL,MUTUAL:SSL",
        "inter.broker.listener.name": "PLAINTEXT",
        "ssl.keystore.type": "PEM",
        "ssl.keystore.location": str(files.server_store),
        "ssl.truststore.type": "PEM",
        "ssl.truststore.location": str(files.authority),
        "listener.name.mutual.ssl.client.auth": "required",
    }
    options = [word for key, value in settings.items() for word in ("--override", f"{key}={value}")]
    trusting: dict[str, Any] = {"security_protocol": "SSL", "ssl_truststore_location": str(files.authority)}

    async def ask(port: int, **given: Any) -> None:
        async with network(f"localhost:{port}", **given) as client:
            assert isinstance(await client.send_to_any(DescribeClusterRequest(), timeout_ms=5000), DescribeClusterResponse)
            await client.metadata.wait_for_update(client.metadata.request_update(), 5000)
            assert client.metadata.cluster.nodes[0].port == port

    with broker.running(tmp_path, options):
        on_loop(ask, tls, **trusting)
        on_loop(ask, mutual, **trusting, ssl_keystore_location=str(files.client_store))
        with pytest.raises(SslAuthentication, match=r"ssl\.truststore"):
            on_loop(ask, tls, security_protocol="SSL", ssl_truststore_location=str(files.stranger))
        with pytest.raises((SslAuthentication, Disconnected, TimeoutError), match=r"ssl\.keystore"):
            on_loop(ask, mutual, **trusting)
