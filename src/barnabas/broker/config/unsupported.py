"""Settings that this broker does not support and cannot safely ignore. They stop the start, with a message that says what to do.

Unsupported settings that can safely be ignored are not checked here.
"""

from __future__ import annotations

from barnabas.broker.config import BrokerConfig
from barnabas.config_def import InvalidConfig


def refuse_unsupported(config: BrokerConfig) -> None:
    """Raises InvalidConfig."""
    for endpoint in config.broker_listeners:
        if endpoint.security_protocol.uses_sasl:
            raise InvalidConfig(
                f"Listener {endpoint.listener_name} uses {endpoint.security_protocol.name}, and SASL is not spoken here yet: "
                "use PLAINTEXT or SSL (with ssl.client.auth=required) in listener.security.protocol.map"
            )
