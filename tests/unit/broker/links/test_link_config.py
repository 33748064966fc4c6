"""The client settings of connections between brokers."""

from __future__ import annotations

from random import Random

import pytest

from barnabas.broker.clock import Clock
from barnabas.broker.config import BrokerConfig
from barnabas.broker.links.broker_links import BrokerLinks
from barnabas.broker.links.link_config import PASSWORD, USERNAME, link_config, setup_timeouts
from barnabas.config_def import InvalidConfig

SCRAM = 'org.apache.kafka.common.security.scram.ScramLoginModule required username="broker" password="secret";'
SASL = {
    "listeners": "CLIENTS://:9092,BROKERS://:9093",
    "listener.security.protocol.map": "CLIENTS:SASL_SSL,BROKERS:SASL_PLAINTEXT",
    "inter.broker.listener.name": "BROKERS",
    "sasl.enabled.mechanisms": "SCRAM-SHA-512,PLAIN",
    "sasl.mechanism.inter.broker.protocol": "SCRAM-SHA-512",
}
SCRAM_JAAS = "listener.name.brokers.scram-sha-512.sasl.jaas.config"


def settings(properties: dict[str, str], listener_name: str | None = None) -> dict[str, object]:
    return link_config(BrokerConfig.from_properties(properties), listener_name)


def test_a_plaintext_listener_needs_nothing() -> None:
    assert settings({"listeners": "PLAINTEXT://:9092"}) == {"security.protocol": "PLAINTEXT"}


def test_the_jaas_text_is_that_of_the_listener_and_the_mechanism() -> None:
    made = settings({**SASL, SCRAM_JAAS: SCRAM, "listener.name.clients.scram-sha-512.sasl.jaas.config": "other required;"})
    assert made["security.protocol"] == "SASL_PLAINTEXT"
    assert made["sasl.mechanism"] == "SCRAM-SHA-512"
    assert made["sasl.jaas.config"] == SCRAM
    assert "ssl.keystore.location" not in made


def test_plain_settings_take_the_place_of_a_jaas_text() -> None:
    made = settings({**SASL, USERNAME: "broker", PASSWORD: "secret"})
    assert (made["sasl.username"], made["sasl.password"]) == ("broker", "secret")
    assert "sasl.jaas.config" not in made


def test_the_settings_are_those_of_a_client() -> None:
    BrokerLinks("broker-1-fetcher-0", Clock(), Random(1), settings=settings({**SASL, SCRAM_JAAS: SCRAM}))


def test_sasl_over_tls_has_both() -> None:
    properties = {**SASL, "listener.security.protocol.map": "CLIENTS:SSL,BROKERS:SASL_SSL", SCRAM_JAAS: SCRAM}
    made = settings({**properties, "listener.name.brokers.ssl.truststore.location": "/ca.pem", "ssl.truststore.type": "PEM"})
    assert made["security.protocol"] == "SASL_SSL"
    assert made["ssl.truststore.location"] == "/ca.pem"
    assert made["ssl.truststore.type"] == "PEM"
    assert made["sasl.jaas.config"] == SCRAM


def test_the_controller_uses_the_control_plane_listener_with_its_own_protocol() -> None:
    properties = {
        "listeners": "PLAINTEXT://:9092,CONTROL://:9093",
        "listener.security.protocol.map": "PLAINTEXT:PLAINTEXT,CONTROL:SSL",
        "control.plane.listener.name": "CONTROL",
        "listener.name.control.ssl.keystore.location": "/control.pem",
    }
    assert settings(properties) == {"security.protocol": "PLAINTEXT"}
    made = settings(properties, "CONTROL")
    assert made["security.protocol"] == "SSL"
    assert made["ssl.keystore.location"] == "/control.pem"


def test_a_token_for_oauthbearer_comes_from_the_settings_of_the_listener() -> None:
    made = settings(
        {
            **SASL,
            "sasl.enabled.mechanisms": "OAUTHBEARER",
            "sasl.mechanism.inter.broker.protocol": "OAUTHBEARER",
            "listener.name.brokers.sasl.oauthbearer.token.endpoint.url": "file:///token",
        }
    )
    assert made["sasl.mechanism"] == "OAUTHBEARER"
    assert made["sasl.oauthbearer.token.endpoint.url"] == "file:///token"


@pytest.mark.parametrize(
    "properties",
    [{}, {SCRAM_JAAS: 'Module required user_alice="x";'}, {SCRAM_JAAS: 'Module required username="broker";'}],
)
def test_a_broker_without_a_user_is_told_which_settings_have_it(properties: dict[str, str]) -> None:
    with pytest.raises(InvalidConfig, match=f"no user for the listener BROKERS.*{USERNAME}.*{SCRAM_JAAS}"):
        settings({**SASL, **properties})


def test_half_a_user_is_refused() -> None:
    with pytest.raises(InvalidConfig, match="must be set together"):
        settings({**SASL, USERNAME: "broker"})


def test_attempts_to_connect_end_after_the_timeouts_of_the_broker() -> None:
    config = BrokerConfig.from_properties({"socket.connection.setup.timeout.ms": "123", "socket.connection.setup.timeout.max.ms": "456"})
    assert setup_timeouts(config) == {"socket.connection.setup.timeout.ms": 123, "socket.connection.setup.timeout.max.ms": 456}
