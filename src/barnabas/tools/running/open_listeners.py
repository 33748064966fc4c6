"""Which listeners accept everybody: those that other machines can reach and that authenticate nobody."""

from __future__ import annotations

from ipaddress import ip_address

from barnabas.broker.config import BrokerConfig
from barnabas.endpoint import EndPoint, SecurityProtocol


def open_listeners_remark(config: BrokerConfig) -> str | None:
    """One line for the log, with the fix; None if no listener is open to other machines."""
    names = [
        str(endpoint) for endpoint in config.broker_listeners if not is_loopback(endpoint.host) and not _authenticates(config, endpoint)
    ]
    if not names:
        return None
    return (
        f"EVERYBODY WHO REACHES {', '.join(names)} MAY DO EVERYTHING: the listener authenticates nobody, and is not only for this machine. "
        "Listen on localhost, or authenticate clients: barnabas up --secure, a SASL_SSL listener, or ssl.client.auth=required"
    )


def is_loopback(host: str) -> bool:
    """False for an empty host, which is every address."""
    try:
        return ip_address(host).is_loopback
    except ValueError:
        return host == "localhost" or host.endswith(".localhost")


def _authenticates(config: BrokerConfig, endpoint: EndPoint) -> bool:
    if endpoint.security_protocol is SecurityProtocol.SSL:
        return str(config.for_listener(endpoint.listener_name, "ssl.client.auth")).lower() == "required"
    return endpoint.security_protocol.uses_sasl
