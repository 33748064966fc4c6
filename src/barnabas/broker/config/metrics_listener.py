"""The settings of metrics that are more than one value: metrics.listener, metrics.dialects, metrics.otlp.headers."""

from __future__ import annotations

import re
from dataclasses import dataclass
from ipaddress import ip_address
from typing import Final
from urllib.parse import urlsplit

LISTENER_NAME: Final = "METRICS"  # listener.name.metrics.ssl.* are the settings of its TLS that differ from ssl.*
NO_AUTHENTICATION: Final = "none"
BASIC: Final = "basic"
JMX_EXPORTER: Final = "jmx_exporter"
KAFKA_EXPORTER: Final = "kafka_exporter"
STRIMZI_REPORTER: Final = "strimzi_reporter"
CONFLUENT: Final = "confluent"
REDPANDA: Final = "redpanda"
KMINION: Final = "kminion"
DIALECTS: Final = (JMX_EXPORTER, KAFKA_EXPORTER, STRIMZI_REPORTER, CONFLUENT, REDPANDA, KMINION)
DIALECTS_SHOWN: Final = (JMX_EXPORTER, KAFKA_EXPORTER)  # the default

_HEADER_NAME: Final = re.compile(r"[!#$%&'*+.^_`|~0-9A-Za-z-]+")


@dataclass(frozen=True)
class MetricsListener:
    """An empty host means all addresses. Port 0 is any that is free."""

    host: str
    port: int
    uses_tls: bool = False

    @property
    def scheme(self) -> str:
        return "https" if self.uses_tls else "http"

    @property
    def is_local(self) -> bool:
        """Whether only this machine can connect."""
        try:
            return ip_address(self.host).is_loopback
        except ValueError:
            return self.host == "localhost"

    @classmethod
    def parse(cls, text: str) -> MetricsListener:
        """Raises ValueError with the reason."""
        url = urlsplit(text)
        if url.scheme not in ("http", "https") or url.path not in ("", "/") or url.query or url.fragment or "@" in url.netloc:
            raise ValueError("it must be http://HOST:PORT or https://HOST:PORT, such as http://localhost:9404")
        try:
            port = url.port
        except ValueError:
            port = None
        if port is None:
            raise ValueError("it needs a port from 0 to 65535, such as http://localhost:9404")
        return cls(url.hostname or "", port, url.scheme == "https")


def parse_headers(text: str) -> dict[str, str]:
    """Of `Authorization=Bearer abc,X-Scope=team`. Raises ValueError, without a value in the message."""
    headers: dict[str, str] = {}
    for number, part in enumerate(filter(None, (part.strip() for part in text.split(","))), 1):
        name, equals, value = (word.strip() for word in part.partition("="))
        if not equals or _HEADER_NAME.fullmatch(name) is None or not value.isprintable() or not value.isascii():
            raise ValueError(f"entry {number} must be NAME=VALUE, with a name and a value that a header of HTTP can have")
        headers[name] = value
    return headers
