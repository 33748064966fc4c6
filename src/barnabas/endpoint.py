"""The address and security protocol of a listener: one entry of `listeners`.

The configuration parses it, the network layer binds to it, and the registration of the broker in the metadata store publishes it.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import IntEnum


class SecurityProtocol(IntEnum):
    """Kafka's security protocols, with the numbers of UpdateMetadata and LeaderAndIsr."""

    PLAINTEXT = 0
    SSL = 1
    SASL_PLAINTEXT = 2
    SASL_SSL = 3

    @property
    def uses_sasl(self) -> bool:
        return self in (SecurityProtocol.SASL_PLAINTEXT, SecurityProtocol.SASL_SSL)

    @property
    def uses_tls(self) -> bool:
        return self in (SecurityProtocol.SSL, SecurityProtocol.SASL_SSL)


@dataclass(frozen=True, slots=True)
class EndPoint:
    """One listener. An empty host means every address of the machine, port 0 means any free port."""

    listener_name: str
    host: str = ""
    port: int = 9092
    security_protocol: SecurityProtocol = SecurityProtocol.PLAINTEXT

    def __str__(self) -> str:
        return f"{self.listener_name}://{host_and_port(self.host, self.port)}"


def host_and_port(host: str, port: int) -> str:
    """An address as Kafka writes it: IPv6 in brackets."""
    return f"[{host}]:{port}" if ":" in host else f"{host}:{port}"
