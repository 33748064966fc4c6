"""Settings about metrics that Kafka does not have: Kafka leaves metrics to JMX and to agents that read it.

DescribeConfigs shows them only where they are set.
"""

from __future__ import annotations

from typing import Any, Final
from urllib.parse import urlsplit

from barnabas.broker.config.keys import LIST, LONG, LOW, MEDIUM, PASSWORD, READ_ONLY, STRING, BrokerConfigKey, key
from barnabas.broker.config.metrics_listener import BASIC, DIALECTS, DIALECTS_SHOWN, NO_AUTHENTICATION, MetricsListener, parse_headers
from barnabas.config_def import InvalidConfig, ListOf, OneOf, Range


class _Listener:
    """Accepts http://HOST:PORT and https://HOST:PORT."""

    def check(self, name: str, value: Any) -> None:
        if value is not None:
            try:
                MetricsListener.parse(value)
            except ValueError as error:
                raise InvalidConfig(f"{name}={value}: {error}") from None

    def __str__(self) -> str:
        return "http://HOST:PORT or https://HOST:PORT"


class _Url:
    """Accepts a URL of http or https."""

    def check(self, name: str, value: Any) -> None:
        if value is None:
            return
        url = urlsplit(value)
        if url.scheme not in ("http", "https") or not url.hostname or "@" in url.netloc:
            raise InvalidConfig(f"{name}={value}: it must be a URL, such as http://localhost:4318/v1/metrics")

    def __str__(self) -> str:
        return "a URL of http or https"


class _Headers:
    """Accepts NAME=VALUE with commas between them."""

    def check(self, name: str, value: Any) -> None:
        if value is not None:
            try:
                parse_headers(value)
            except ValueError as error:
                raise InvalidConfig(f"{name} cannot be read: {error}") from None

    def __str__(self) -> str:
        return "NAME=VALUE,…"


# fmt: off
KEYS: Final[tuple[BrokerConfigKey, ...]] = (
    key("metrics.dialects", LIST, DIALECTS_SHOWN, ListOf(DIALECTS, empty=False), LOW, READ_ONLY,
        "The sets of names that metrics are shown under: jmx_exporter are those of jmx_exporter and Strimzi for Kafka's MBeans, "
        "kafka_exporter those of kafka_exporter, strimzi_reporter those of Strimzi Metrics Reporter, confluent those of Confluent's "
        "jmx-monitoring-stacks, redpanda those of Redpanda's public metrics, kminion those of KMinion. A name that two of them have is "
        "that of the first.", hidden=True),
    key("metrics.listener", STRING, None, _Listener(), MEDIUM, READ_ONLY,
        "The address http://HOST:PORT of metrics (/metrics, in the text format of Prometheus) and of health (/health/live, /health/ready, "
        "/health/cluster). If the port is taken, one of the next is used. Without it nothing is shown. https://HOST:PORT uses the TLS of "
        "ssl.*, or of listener.name.metrics.ssl.*.", hidden=True),
    key("metrics.listener.authentication", STRING, NO_AUTHENTICATION, OneOf((NO_AUTHENTICATION, BASIC)), MEDIUM, READ_ONLY,
        "With basic, /metrics and /health/cluster need the name and password of a user of PLAIN or SCRAM, by HTTP Basic authentication. "
        "This needs https, or the address of localhost.", hidden=True),
    key("metrics.otlp.endpoint", STRING, None, _Url(), MEDIUM, READ_ONLY,
        "The URL that metrics are pushed to by OTLP over HTTP, such as http://localhost:4318/v1/metrics. Without it nothing is pushed.",
        hidden=True),
    key("metrics.otlp.headers", PASSWORD, None, _Headers(), LOW, READ_ONLY,
        "Headers of each push, NAME=VALUE with commas between them, such as the authorization of the receiver.", hidden=True),
    key("metrics.otlp.interval.ms", LONG, 60_000, Range(1000), LOW, READ_ONLY,
        "The time between two pushes.", hidden=True),
)
# fmt: on
