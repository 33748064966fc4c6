"""How this broker secures its connections to the others: the settings of its inter-broker listener as those of a client."""

from __future__ import annotations

from typing import Final

from barnabas.broker.config import BrokerConfig

_TLS: Final = (
    "ssl.cipher.suites",
    "ssl.enabled.protocols",
    "ssl.endpoint.identification.algorithm",
    "ssl.key.password",
    "ssl.keystore.certificate.chain",
    "ssl.keystore.key",
    "ssl.keystore.location",
    "ssl.keystore.password",
    "ssl.keystore.type",
    "ssl.truststore.certificates",
    "ssl.truststore.location",
    "ssl.truststore.password",
    "ssl.truststore.type",
)


def link_settings(config: BrokerConfig) -> dict[str, object]:
    name = config.inter_broker_listener_name
    endpoint = next((each for each in config.broker_listeners if each.listener_name == name), None)
    if endpoint is None or not endpoint.security_protocol.uses_tls:
        return {}
    given = {key: config.for_listener(name, key) for key in _TLS}
    return {"security.protocol": "SSL", **{key: value for key, value in given.items() if value is not None}}
