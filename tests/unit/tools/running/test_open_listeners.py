"""A listener that other machines reach and that authenticates nobody gets one line with the fix."""

from __future__ import annotations

import pytest

from barnabas.broker.config import BrokerConfig
from barnabas.tools.running.open_listeners import open_listeners_remark


def remark(**properties: str) -> str | None:
    named = {name.replace("_", "."): text for name, text in properties.items()}
    return open_listeners_remark(BrokerConfig({"advertised.listeners": named["listeners"].replace("0.0.0.0", "here"), **named}))


@pytest.mark.parametrize(
    "listener", ["PLAINTEXT://:9092", "PLAINTEXT://0.0.0.0:9092", "PLAINTEXT://[::]:9092", "PLAINTEXT://10.0.0.1:9092"]
)
def test_an_open_listener_is_named_once(listener: str) -> None:
    assert "barnabas up --secure" in (remark(listeners=listener) or "")


@pytest.mark.parametrize("listener", ["PLAINTEXT://localhost:9092", "PLAINTEXT://127.0.0.1:9092", "PLAINTEXT://[::1]:9092"])
def test_a_listener_for_this_machine_is_not_named(listener: str) -> None:
    assert remark(listeners=listener) is None


def test_a_listener_that_authenticates_is_not_named() -> None:
    sasl = {"listeners": "SASL_PLAINTEXT://:9092", "security_inter_broker_protocol": "SASL_PLAINTEXT"}
    tls = {"listeners": "SSL://:9092", "security_inter_broker_protocol": "SSL"}
    assert remark(**sasl) is remark(**tls, ssl_client_auth="required") is None
    assert remark(**tls) and remark(**tls, ssl_client_auth="requested")
