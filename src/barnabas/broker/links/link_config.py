"""The client settings that secure connections to other brokers, from the settings of the inter-broker listener."""

from __future__ import annotations

from typing import Final

from barnabas.broker.config import BrokerConfig
from barnabas.broker.config.definitions.security import TLS_STORE_CONFIGS

_TLS: Final = ("ssl.cipher.suites", "ssl.enabled.protocols", "ssl.endpoint.identification.algorithm", *TLS_STORE_CONFIGS)


def link_config(config: BrokerConfig) -> dict[str, object]:
    name = config.inter_broker_listener_name
    endpoint = next((listener for listener in config.broker_listeners if listener.listener_name == name), None)
    if endpoint is None or not endpoint.security_protocol.uses_tls:
        return {}
    settings = {key: config.for_listener(name, key) for key in _TLS}
    return {"security.protocol": "SSL", **{key: value for key, value in settings.items() if value is not None}}
