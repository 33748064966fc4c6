"""TLS settings of a client: what is refused and why, and handshakes with a peer."""

from __future__ import annotations

import ssl
from pathlib import Path
from typing import Any

import pytest

from barnabas.client.errors import Disconnected, SslAuthentication
from barnabas.client.network.tls import tls_context
from barnabas.config_def import InvalidConfig
from barnabas.protocol.messages.describe_cluster_request import DescribeClusterRequest
from barnabas.protocol.messages.describe_cluster_response import DescribeClusterResponse
from barnabas.protocol.messages.fetch_request import FetchRequest
from barnabas.protocol.messages.fetch_response import FetchableTopicResponse, FetchResponse, PartitionData
from barnabas.protocol.slices import Records
from tests import certificates
from tests.certificates import Certificates
from tests.client_network import config_of, network, on_loop
from tests.unit.client.peer import Peer


@pytest.fixture(scope="module")
def files(tmp_path_factory: pytest.TempPathFactory) -> Certificates:
    return certificates.make(tmp_path_factory.mktemp("certificates"))


def context(**settings: Any) -> ssl.SSLContext:
    named = {name.replace("_", "."): value for name, value in settings.items()}
    return tls_context(config_of({"bootstrap.servers": "h:1", "security.protocol": "SSL"} | named))


def test_checks_certificates_and_hosts_unless_told_otherwise(files: Certificates) -> None:
    made = context(ssl_truststore_location=str(files.authority))
    assert made.check_hostname and made.verify_mode is ssl.CERT_REQUIRED
    assert (made.minimum_version, made.maximum_version) == (ssl.TLSVersion.TLSv1_2, ssl.TLSVersion.TLSv1_3)
    unchecked = context(ssl_truststore_location=str(files.authority), ssl_endpoint_identification_algorithm="")
    assert not unchecked.check_hostname and unchecked.verify_mode is ssl.CERT_REQUIRED


def test_without_a_truststore_the_systems_is_used() -> None:
    assert context().verify_mode is ssl.CERT_REQUIRED


def test_versions_can_be_chosen() -> None:
    made = context(ssl_enabled_protocols="TLSv1.3")
    assert made.minimum_version is made.maximum_version is ssl.TLSVersion.TLSv1_3
    with pytest.raises(InvalidConfig, match=r"ssl\.enabled\.protocols"):
        context(ssl_enabled_protocols="SSLv3")


@pytest.mark.parametrize("store", ["keystore", "truststore"])
def test_java_stores_are_refused_with_the_way_to_convert_them(store: str, tmp_path: Path) -> None:
    file = tmp_path / "store.jks"
    file.write_bytes(bytes.fromhex("feedfeed00000002"))
    for settings in ({}, {f"ssl_{store}_type": "PKCS12", f"ssl_{store}_password": "secret"}):
        with pytest.raises(InvalidConfig, match=rf"is a JKS file.*keytool -importkeystore.*set ssl\.{store}\.location=.*store\.jks\.p12"):
            context(**{f"ssl_{store}_location": str(file), **settings})


def test_wrong_settings(files: Certificates, tmp_path: Path) -> None:
    key, begin, chain = files.client_store.read_text().partition("-----BEGIN CERTIFICATE-----")
    missing = str(tmp_path / "nothing.pem")
    for settings, words in (
        ({"ssl_truststore_location": missing, "ssl_truststore_type": "PEM"}, "cannot be read"),
        ({"ssl_truststore_location": missing, "ssl_truststore_certificates": begin + chain}, "keep one of the two"),
        ({"ssl_truststore_certificates": "no certificate"}, "cannot be used"),
        ({"ssl_keystore_key": key}, "must be set together"),
        ({"ssl_keystore_key": key, "ssl_keystore_location": missing}, "keep one of the two ways"),
        ({"ssl_keystore_location": str(files.encrypted_client_store), "ssl_key_password": "wrong"}, r"ssl\.key\.password"),
        ({"ssl_keystore_location": str(files.encrypted_client_store)}, r"ssl\.key\.password"),
        ({"ssl_endpoint_identification_algorithm": "ldap"}, "https"),
        ({"ssl_engine_factory_class": lambda: "nothing"}, r"ssl\.SSLContext"),
        ({"ssl_cipher_suites": "NO-SUCH-CIPHER"}, "cannot be used"),
    ):
        with pytest.raises(InvalidConfig, match=words):
            context(**settings)


def test_pem_in_one_line_as_in_a_properties_file(files: Certificates) -> None:
    key, begin, chain = files.client_store.read_text().partition("-----BEGIN CERTIFICATE-----")
    one_line = {
        "ssl_keystore_key": " ".join(key.split("\n")),
        "ssl_keystore_certificate_chain": " ".join((begin + chain).split("\n")),
        "ssl_truststore_certificates": " ".join(files.authority.read_text().split("\n")),
    }
    assert len(context(**one_line).get_ca_certs()) == 1


def test_a_context_of_ones_own() -> None:
    own = ssl.create_default_context()
    assert context(ssl_engine_factory_class=lambda: own) is own


def server(files: Certificates, *, wants_certificate: bool = False) -> ssl.SSLContext:
    made = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    made.load_cert_chain(files.server_store)
    if wants_certificate:
        made.verify_mode = ssl.CERT_REQUIRED
        made.load_verify_locations(files.authority)
    return made


def ask(files: Certificates, tls: ssl.SSLContext, **settings: Any) -> None:
    async def run() -> None:
        async with Peer(tls=tls) as peer:
            data = bytes(3_000_000)
            part = PartitionData(partition_index=0, records=Records(data))
            peer.answers["Fetch"] = lambda request, version: FetchResponse(responses=[FetchableTopicResponse("t", partitions=[part])])
            peer.answers["DescribeCluster"] = lambda request, version: DescribeClusterResponse(cluster_id="c")
            async with network(peer.address, security_protocol="SSL", **settings) as client:
                assert await client.send(-1, DescribeClusterRequest()) == DescribeClusterResponse(cluster_id="c")
                fetched = await client.send(-1, FetchRequest(), version=12)
                assert isinstance(fetched, FetchResponse)
                records = fetched.responses[0].partitions[0].records
                assert records is not None and records.to_bytes() == data

    on_loop(run)


def test_a_handshake_and_large_answers(files: Certificates) -> None:
    ask(files, server(files), ssl_truststore_location=str(files.authority))


def test_mutual(files: Certificates) -> None:
    store = {"ssl_keystore_location": str(files.client_store)}
    ask(files, server(files, wants_certificate=True), ssl_truststore_location=str(files.authority), **store)


def test_a_stranger_is_not_trusted(files: Certificates) -> None:
    with pytest.raises(SslAuthentication, match=r"ssl\.truststore"):
        ask(files, server(files), ssl_truststore_location=str(files.stranger))


def test_no_certificate_where_one_is_wanted(files: Certificates) -> None:
    # With an alert it is an SslAuthentication; some servers just close.
    with pytest.raises((SslAuthentication, Disconnected), match=r"ssl\.keystore"):
        ask(files, server(files, wants_certificate=True), ssl_truststore_location=str(files.authority))
