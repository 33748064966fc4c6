"""DataFrames written to and read from a secured broker of ours on a real Spark, over SASL_SSL, with each mechanism.

GSSAPI needs a key distribution center: tests/integration/kerberos/test_clients.py.
"""

from __future__ import annotations

from collections.abc import Generator
from typing import TYPE_CHECKING

import pytest

from barnabas.client import Admin, NewTopic
from tests import certificates
from tests.integration.client import secure_kafka
from tests.integration.client.secure_kafka import SCRAM, SecureKafka, with_sasl, with_tls, with_token

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

ROWS = 5


@pytest.fixture(scope="module")
def secured(tmp_path_factory: pytest.TempPathFactory) -> Generator[SecureKafka, None, None]:
    files = certificates.make(tmp_path_factory.mktemp("certificates"))
    with secure_kafka.running_ours(tmp_path_factory.mktemp("secured"), files) as kafka:
        yield kafka


@pytest.mark.parametrize("mechanism", ["PLAIN", *SCRAM, "OAUTHBEARER"])
def test_rows_are_written_and_read_over_sasl_ssl(spark: SparkSession, secured: SecureKafka, mechanism: str) -> None:
    login = with_token() if mechanism == "OAUTHBEARER" else with_sasl(mechanism)
    settings = {
        **with_tls(secured.certificates),
        **login,
        "security_protocol": "SASL_SSL",
        "bootstrap_servers": secured.addresses["SASLTLS"],
    }
    options = {f"kafka.{name.replace('_', '.')}": str(value) for name, value in settings.items()}
    topic = f"spark-{mechanism.lower()}"
    with Admin(**settings) as admin:
        admin.create_topics([NewTopic(topic, 1, 1)]).all()
    rows = spark.range(ROWS).coalesce(1).selectExpr("cast(id as string) as value")
    rows.write.format("barnabas").options(**options, topic=topic).mode("append").save()
    read = spark.read.format("barnabas").options(**options, subscribe=topic).load()
    assert sorted(bytes(row["value"]) for row in read.select("value").collect()) == [b"%d" % number for number in range(ROWS)]
