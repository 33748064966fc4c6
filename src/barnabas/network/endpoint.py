"""Where a listener listens: one entry of `listeners`."""

from __future__ import annotations

from dataclasses import dataclass

PLAINTEXT = "PLAINTEXT"
SSL = "SSL"
SASL_PLAINTEXT = "SASL_PLAINTEXT"
SASL_SSL = "SASL_SSL"


@dataclass(frozen=True)
class EndPoint:
    """An empty host stands for every address of the machine, port 0 for any port that is free."""

    listener_name: str
    host: str = ""
    port: int = 9092
    security_protocol: str = PLAINTEXT

    @property
    def uses_tls(self) -> bool:
        return self.security_protocol in (SSL, SASL_SSL)

    def __str__(self) -> str:
        return f"{self.listener_name}://{host_and_port(self.host, self.port)}"


def host_and_port(host: str, port: int) -> str:
    """An address as Kafka writes it: IPv6 in brackets."""
    return f"[{host}]:{port}" if ":" in host else f"{host}:{port}"
