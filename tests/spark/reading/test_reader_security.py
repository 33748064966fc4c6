"""Reading from an Apache Kafka that wants to know who asks: planned and read with the options `kafka.*`, without a Spark."""

from __future__ import annotations

from collections.abc import Generator

import pytest

from barnabas.client.errors import AuthenticationError
from tests import certificates
from tests.integration.client import secure_kafka
from tests.integration.client.secure_kafka import SecureKafka, with_sasl, with_tls
from tests.spark.reader_world import batch_reader, fill, offsets_read, planned

pytestmark = pytest.mark.java
TOPIC = "guarded"


@pytest.fixture(scope="module")
def secure(tmp_path_factory: pytest.TempPathFactory) -> Generator[SecureKafka, None, None]:
    directory = tmp_path_factory.mktemp("secure")
    with secure_kafka.running(directory, certificates.make(tmp_path_factory.mktemp("certificates"))) as kafka:
        fill(kafka.addresses["PLAINTEXT"], TOPIC, (3,))
        yield kafka


def options(settings: dict[str, object]) -> dict[str, object]:
    return {"subscribe": TOPIC, **{f"kafka.{name.replace('_', '.')}": value for name, value in settings.items()}}


def test_mutual_tls(secure: SecureKafka) -> None:
    files = secure.certificates
    reader = batch_reader(secure.addresses["MUTUAL"], options(with_tls(files, ssl_keystore_location=str(files.client_store))))
    assert offsets_read(reader, reader.partitions()) == [(0, 0), (0, 1), (0, 2)]


def test_a_password_over_tls(secure: SecureKafka) -> None:
    settings = {**with_sasl("SCRAM-SHA-512"), **with_tls(secure.certificates), "security_protocol": "SASL_SSL"}
    reader = batch_reader(secure.addresses["SASLTLS"], options(settings))
    assert offsets_read(reader, reader.partitions()) == [(0, 0), (0, 1), (0, 2)]


def test_a_wrong_password_ends_the_query_at_once(secure: SecureKafka) -> None:
    with pytest.raises(AuthenticationError, match="Authentication failed"):
        planned(secure.addresses["SASL"], options(with_sasl("PLAIN", sasl_password="wrong")))
