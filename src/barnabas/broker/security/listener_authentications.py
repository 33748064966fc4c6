"""The authentication of each listener of a broker, made from its settings."""

from __future__ import annotations

from typing import TYPE_CHECKING

from barnabas.broker.security.authentication import ListenerAuthentication, NoSasl
from barnabas.broker.security.principal_builder import principal_builder

if TYPE_CHECKING:
    from barnabas.broker.config import BrokerConfig


def listener_authentications(config: BrokerConfig) -> dict[str, ListenerAuthentication]:
    """By listener name. Raises InvalidConfig."""
    return {
        endpoint.listener_name: NoSasl(endpoint.security_protocol, principal_builder(config, endpoint.listener_name))
        for endpoint in config.broker_listeners
        if not endpoint.security_protocol.uses_sasl
    }
